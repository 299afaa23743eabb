//! The children of a run: the queue, the live ones, and effects held back until their guest
//! confirms them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildIsolation, ChildRequest};
use moothall_core::guest::GuestStateMachine;
use moothall_core::{EffectId, EffectResult, Outcome, RunId, Sha256Hex, Step, Workflow as _};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::pending_effect::{EffectCompletion, EffectOrigin, PendingEffect};
use crate::children::{build, entry_of, not_tried};
use crate::error::EngineError;
use crate::guest_runner::{self, GuestRunner, GuestUnavailable};
use crate::guests::{GuestFailurePolicy, IsolationMode};

#[derive(Debug)]
pub(crate) struct QueuedChild {
    pub(crate) by: EffectOrigin,
    pub(crate) id: EffectId,
    pub(crate) request_sha256: Sha256Hex,
    pub(crate) request: ChildRequest,
}

/// What follows from an event of a child.
#[derive(Debug, Default)]
pub(crate) struct ChildUpdate {
    /// Effects that may be performed now.
    pub(crate) released: Vec<PendingEffect>,
    /// The result of a child that finished.
    pub(crate) ended: Option<EffectCompletion>,
}

#[derive(Debug)]
pub(crate) enum ChildStart {
    /// The child is live and made its first step.
    Lives(EffectId, Step),
    /// The child could not be built.
    Ended(EffectCompletion),
}

pub(crate) struct ChildScheduler {
    run_id: RunId,
    walls: IsolationMode,
    most: usize,
    /// In request order.
    wanted: VecDeque<QueuedChild>,
    live: BTreeMap<EffectId, LiveChild>,
    /// Tasks of the children that run in guests.
    tenants: JoinSet<(EffectId, Result<ChildIsolation, GuestUnavailable>)>,
    say_agreed: UnboundedSender<(EffectId, usize)>,
    hear_agreed: UnboundedReceiver<(EffectId, usize)>,
}

struct LiveChild {
    by: EffectOrigin,
    request_sha256: Sha256Hex,
    request: ChildRequest,
    machine: GuestStateMachine,
    /// Steps made by the machine, including the first.
    steps: usize,
    outcome: Option<Outcome>,
    home: ChildPlacement,
    /// Effects that the guest has not confirmed yet, with the step that requested them.
    held: VecDeque<(usize, Vec<PendingEffect>)>,
}

/// Where a child runs.
enum ChildPlacement {
    Here(ChildIsolation),
    /// In no guest yet, because the journal had the results of all its effects so far. Holds the
    /// results it was resumed with.
    Replayed(Vec<guest_runner::Told>),
    /// In a guest sandbox.
    Room {
        tell: UnboundedSender<guest_runner::Told>,
        /// Number of steps the guest has confirmed.
        agreed: usize,
    },
}

impl ChildScheduler {
    pub(crate) fn new(run_id: RunId, walls: IsolationMode, most: usize) -> Self {
        let (say_agreed, hear_agreed) = mpsc::unbounded_channel();
        Self {
            run_id,
            walls,
            most,
            wanted: VecDeque::new(),
            live: BTreeMap::new(),
            tenants: JoinSet::new(),
            say_agreed,
            hear_agreed,
        }
    }

    /// Queues a child.
    pub(crate) fn want(&mut self, wanted: QueuedChild) {
        self.wanted.push_back(wanted);
    }

    /// Starts the next queued child unless the limit is reached.
    pub(crate) fn start_next(&mut self) -> Option<ChildStart> {
        if self.live.len() >= self.most {
            return None;
        }
        let QueuedChild { by, id, request_sha256, request } = self.wanted.pop_front()?;
        let mut machine = match build(&request) {
            Ok(machine) => machine,
            Err(error) => {
                let outcome = not_tried(&id, "debate.invalid", error.to_string());
                let end = ChildEnd { outcome, isolation: ChildIsolation::none(None) };
                return Some(ChildStart::Ended(answer(by, id, request_sha256, end)));
            }
        };
        let step = machine.start();
        let home = match self.walls {
            IsolationMode::None => ChildPlacement::Here(ChildIsolation::none(None)),
            IsolationMode::Rooms { .. } => ChildPlacement::Replayed(Vec::new()),
        };
        let child = LiveChild {
            by,
            request_sha256,
            request,
            machine,
            steps: 1,
            outcome: None,
            home,
            held: VecDeque::new(),
        };
        self.live.insert(id.clone(), child);
        Some(ChildStart::Lives(id, step))
    }

    /// Resumes a child with a result and returns its step, or `None` if the child is no longer
    /// live.
    pub(crate) fn resume(
        &mut self,
        child: &EffectId,
        id: &EffectId,
        result: EffectResult,
    ) -> Result<Option<Step>, EngineError> {
        let Some(child) = self.live.get_mut(child) else { return Ok(None) };
        match &mut child.home {
            ChildPlacement::Here(_) => {}
            ChildPlacement::Replayed(told) => told.push((id.clone(), result.clone())),
            // If the guest task has ended, its error has been or will be reported through `hear`.
            ChildPlacement::Room { tell, .. } => drop(tell.send((id.clone(), result.clone()))),
        }
        child.steps += 1;
        Ok(Some(child.machine.resume(id, result)?))
    }

    /// Records a child's step: the effects that the journal has no result for, and the outcome.
    pub(crate) fn stepped(
        &mut self,
        id: &EffectId,
        asked: Vec<PendingEffect>,
        outcome: Option<Outcome>,
    ) -> ChildUpdate {
        let Some(child) = self.live.get_mut(id) else { return ChildUpdate::default() };
        child.outcome = outcome;
        if let ChildPlacement::Here(_) = child.home {
            return ChildUpdate { released: asked, ended: self.end_of(id) };
        }
        let must_have_room = !asked.is_empty() || child.outcome.is_some();
        if !asked.is_empty() {
            child.held.push_back((child.steps, asked));
        }
        if must_have_room
            && let ChildPlacement::Replayed(told) = &mut child.home
            && let IsolationMode::Rooms { lobby, .. } = &self.walls
        {
            let (tell, more) = mpsc::unbounded_channel();
            let tenant = GuestRunner {
                lobby: Arc::clone(lobby),
                run_id: self.run_id.clone(),
                id: id.clone(),
                request: child.request.clone(),
                told: std::mem::take(told),
                more,
                agreed: self.say_agreed.clone(),
            };
            child.home = ChildPlacement::Room { tell, agreed: 0 };
            self.tenants.spawn(tenant.live());
        }
        ChildUpdate::default()
    }

    /// Whether a guest will report something without further input.
    pub(crate) fn are_busy(&self) -> bool {
        self.live.values().any(|child| match &child.home {
            ChildPlacement::Room { agreed, .. } => *agreed < child.steps || child.outcome.is_some(),
            ChildPlacement::Here(_) | ChildPlacement::Replayed(_) => false,
        })
    }

    /// Waits for a report from a guest. `None` if one of our tasks panicked.
    pub(crate) async fn hear(&mut self) -> Option<ChildUpdate> {
        tokio::select! {
            Some(ended) = self.tenants.join_next() => {
                let (id, ended) = ended.ok()?;
                Some(match ended {
                    // The guest has finished and confirmed every step.
                    Ok(isolation) => self.settle(&id, isolation),
                    Err(no_room) => self.has_no_room(&id, no_room),
                })
            }
            Some((id, steps)) = self.hear_agreed.recv() => Some(self.agreed(&id, steps)),
            else => std::future::pending().await,
        }
    }

    fn agreed(&mut self, id: &EffectId, steps: usize) -> ChildUpdate {
        let mut released = Vec::new();
        if let Some(child) = self.live.get_mut(id)
            && let ChildPlacement::Room { agreed, .. } = &mut child.home
        {
            *agreed = steps.max(*agreed);
            while let Some((_, asked)) = child.held.pop_front_if(|(step, _)| *step <= *agreed) {
                released.extend(asked);
            }
        }
        ChildUpdate { released, ended: None }
    }

    fn has_no_room(&mut self, id: &EffectId, no_room: GuestUnavailable) -> ChildUpdate {
        let isolation = ChildIsolation::none(Some(no_room.words().to_owned()));
        if let IsolationMode::Rooms { on_failure: GuestFailurePolicy::Fail, .. } = self.walls
            && let Some(child) = self.live.get_mut(id)
        {
            let why = no_room.words().to_owned();
            child.outcome = Some(not_tried(id, "debate.no-sandbox", why));
            child.held.clear();
        }
        self.settle(id, isolation)
    }

    /// Runs the child in this process from now on and releases all effects held back.
    fn settle(&mut self, id: &EffectId, isolation: ChildIsolation) -> ChildUpdate {
        let Some(child) = self.live.get_mut(id) else { return ChildUpdate::default() };
        child.home = ChildPlacement::Here(isolation);
        let released = child.held.drain(..).flat_map(|(_, asked)| asked).collect();
        ChildUpdate { released, ended: self.end_of(id) }
    }

    /// Removes a child that runs in this process and has an outcome, and returns its result.
    fn end_of(&mut self, id: &EffectId) -> Option<EffectCompletion> {
        let child = self.live.get_mut(id)?;
        let ChildPlacement::Here(isolation) = &child.home else { return None };
        let end = ChildEnd { outcome: child.outcome.take()?, isolation: isolation.clone() };
        let LiveChild { by, request_sha256, .. } = self.live.remove(id)?;
        Some(answer(by, id.clone(), request_sha256, end))
    }
}

/// The end of a child as a result for the machine that started it.
fn answer(
    to: EffectOrigin,
    id: EffectId,
    request_sha256: Sha256Hex,
    end: ChildEnd,
) -> EffectCompletion {
    let entry = entry_of(request_sha256, end);
    EffectCompletion { to, id, result: entry.result.clone(), entry: Some(entry) }
}
