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
use crate::children::{build, entry_of, failed_outcome};
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
    Started(EffectId, Step),
    /// The child could not be built.
    Ended(EffectCompletion),
}

pub(crate) struct ChildScheduler {
    run_id: RunId,
    isolation: IsolationMode,
    max_live: usize,
    /// In request order.
    queued: VecDeque<QueuedChild>,
    live: BTreeMap<EffectId, LiveChild>,
    /// Tasks of the children that run in guests.
    guest_tasks: JoinSet<(EffectId, Result<ChildIsolation, GuestUnavailable>)>,
    confirmed_tx: UnboundedSender<(EffectId, usize)>,
    confirmed_rx: UnboundedReceiver<(EffectId, usize)>,
}

struct LiveChild {
    by: EffectOrigin,
    request_sha256: Sha256Hex,
    request: ChildRequest,
    machine: GuestStateMachine,
    /// Steps made by the machine, including the first.
    steps: usize,
    outcome: Option<Outcome>,
    placement: ChildPlacement,
    /// Effects that the guest has not confirmed yet, with the step that requested them.
    held: VecDeque<(usize, Vec<PendingEffect>)>,
}

/// Where a child runs.
enum ChildPlacement {
    Local(ChildIsolation),
    /// In no guest yet, because the journal had the results of all its effects so far. Holds the
    /// results it was resumed with.
    Replayed(Vec<guest_runner::Told>),
    /// In a guest sandbox.
    Guest {
        results_tx: UnboundedSender<guest_runner::Told>,
        /// Number of steps the guest has confirmed.
        confirmed: usize,
    },
}

impl ChildScheduler {
    pub(crate) fn new(run_id: RunId, isolation: IsolationMode, max_live: usize) -> Self {
        let (confirmed_tx, confirmed_rx) = mpsc::unbounded_channel();
        Self {
            run_id,
            isolation,
            max_live,
            queued: VecDeque::new(),
            live: BTreeMap::new(),
            guest_tasks: JoinSet::new(),
            confirmed_tx,
            confirmed_rx,
        }
    }

    /// Queues a child.
    pub(crate) fn enqueue(&mut self, queued: QueuedChild) {
        self.queued.push_back(queued);
    }

    /// Starts the next queued child unless the limit is reached.
    pub(crate) fn start_next(&mut self) -> Option<ChildStart> {
        if self.live.len() >= self.max_live {
            return None;
        }
        let QueuedChild { by, id, request_sha256, request } = self.queued.pop_front()?;
        let mut machine = match build(&request) {
            Ok(machine) => machine,
            Err(error) => {
                let outcome = failed_outcome(&id, "debate.invalid", error.to_string());
                let end = ChildEnd { outcome, isolation: ChildIsolation::none(None) };
                return Some(ChildStart::Ended(completion(by, id, request_sha256, end)));
            }
        };
        let step = machine.start();
        let placement = match self.isolation {
            IsolationMode::None => ChildPlacement::Local(ChildIsolation::none(None)),
            IsolationMode::Guests { .. } => ChildPlacement::Replayed(Vec::new()),
        };
        let child = LiveChild {
            by,
            request_sha256,
            request,
            machine,
            steps: 1,
            outcome: None,
            placement,
            held: VecDeque::new(),
        };
        self.live.insert(id.clone(), child);
        Some(ChildStart::Started(id, step))
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
        match &mut child.placement {
            ChildPlacement::Local(_) => {}
            ChildPlacement::Replayed(delivered) => delivered.push((id.clone(), result.clone())),
            // If the guest task has ended, its error has been or will be reported through `next_update`.
            ChildPlacement::Guest { results_tx, .. } => {
                drop(results_tx.send((id.clone(), result.clone())))
            }
        }
        child.steps += 1;
        Ok(Some(child.machine.resume(id, result)?))
    }

    /// Records a child's step: the effects that the journal has no result for, and the outcome.
    pub(crate) fn stepped(
        &mut self,
        id: &EffectId,
        pending: Vec<PendingEffect>,
        outcome: Option<Outcome>,
    ) -> ChildUpdate {
        let Some(child) = self.live.get_mut(id) else { return ChildUpdate::default() };
        child.outcome = outcome;
        if let ChildPlacement::Local(_) = child.placement {
            return ChildUpdate { released: pending, ended: self.take_end(id) };
        }
        let needs_guest = !pending.is_empty() || child.outcome.is_some();
        if !pending.is_empty() {
            child.held.push_back((child.steps, pending));
        }
        if needs_guest
            && let ChildPlacement::Replayed(delivered) = &mut child.placement
            && let IsolationMode::Guests { guest_pool, .. } = &self.isolation
        {
            let (results_tx, results) = mpsc::unbounded_channel();
            let runner = GuestRunner {
                guest_pool: Arc::clone(guest_pool),
                run_id: self.run_id.clone(),
                id: id.clone(),
                request: child.request.clone(),
                delivered: std::mem::take(delivered),
                results,
                confirmed: self.confirmed_tx.clone(),
            };
            child.placement = ChildPlacement::Guest { results_tx, confirmed: 0 };
            self.guest_tasks.spawn(runner.run());
        }
        ChildUpdate::default()
    }

    /// Whether a guest will report something without further input.
    pub(crate) fn has_pending_reports(&self) -> bool {
        self.live.values().any(|child| match &child.placement {
            ChildPlacement::Guest { confirmed, .. } => {
                *confirmed < child.steps || child.outcome.is_some()
            }
            ChildPlacement::Local(_) | ChildPlacement::Replayed(_) => false,
        })
    }

    /// Waits for a report from a guest. `None` if one of our tasks panicked.
    pub(crate) async fn next_update(&mut self) -> Option<ChildUpdate> {
        tokio::select! {
            Some(ended) = self.guest_tasks.join_next() => {
                let (id, ended) = ended.ok()?;
                Some(match ended {
                    // The guest has finished and confirmed every step.
                    Ok(isolation) => self.run_locally(&id, isolation),
                    Err(unavailable) => self.on_guest_unavailable(&id, unavailable),
                })
            }
            Some((id, steps)) = self.confirmed_rx.recv() => Some(self.confirm(&id, steps)),
            else => std::future::pending().await,
        }
    }

    fn confirm(&mut self, id: &EffectId, steps: usize) -> ChildUpdate {
        let mut released = Vec::new();
        if let Some(child) = self.live.get_mut(id)
            && let ChildPlacement::Guest { confirmed, .. } = &mut child.placement
        {
            *confirmed = steps.max(*confirmed);
            while let Some((_, pending)) = child.held.pop_front_if(|(step, _)| *step <= *confirmed)
            {
                released.extend(pending);
            }
        }
        ChildUpdate { released, ended: None }
    }

    fn on_guest_unavailable(
        &mut self,
        id: &EffectId,
        unavailable: GuestUnavailable,
    ) -> ChildUpdate {
        let isolation = ChildIsolation::none(Some(unavailable.reason().to_owned()));
        if let IsolationMode::Guests { on_failure: GuestFailurePolicy::Fail, .. } = self.isolation
            && let Some(child) = self.live.get_mut(id)
        {
            let why = unavailable.reason().to_owned();
            child.outcome = Some(failed_outcome(id, "debate.no-sandbox", why));
            child.held.clear();
        }
        self.run_locally(id, isolation)
    }

    /// Runs the child in this process from now on and releases all effects held back.
    fn run_locally(&mut self, id: &EffectId, isolation: ChildIsolation) -> ChildUpdate {
        let Some(child) = self.live.get_mut(id) else { return ChildUpdate::default() };
        child.placement = ChildPlacement::Local(isolation);
        let released = child.held.drain(..).flat_map(|(_, pending)| pending).collect();
        ChildUpdate { released, ended: self.take_end(id) }
    }

    /// Removes a child that runs in this process and has an outcome, and returns its result.
    fn take_end(&mut self, id: &EffectId) -> Option<EffectCompletion> {
        let child = self.live.get_mut(id)?;
        let ChildPlacement::Local(isolation) = &child.placement else { return None };
        let end = ChildEnd { outcome: child.outcome.take()?, isolation: isolation.clone() };
        let LiveChild { by, request_sha256, .. } = self.live.remove(id)?;
        Some(completion(by, id.clone(), request_sha256, end))
    }
}

/// The end of a child as a result for the machine that started it.
fn completion(
    to: EffectOrigin,
    id: EffectId,
    request_sha256: Sha256Hex,
    end: ChildEnd,
) -> EffectCompletion {
    let entry = entry_of(request_sha256, end);
    EffectCompletion { to, id, result: entry.result.clone(), entry: Some(entry) }
}
