//! The children of a run: who waits to be started, who lives, and what is held until a room agrees.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use moothall_core::child::{ChildEnd, ChildRequest, Isolation};
use moothall_core::guest::GuestMachine;
use moothall_core::{EffectId, EffectResult, Outcome, RunId, Sha256Hex, Step, Workflow as _};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::asked::{Answer, Asked, Asker};
use crate::children::{build, entry_of, not_tried};
use crate::error::EngineError;
use crate::guest_machine::{self, NoRoom, Tenant};
use crate::rooms::{OnFailure, Walls};

/// A child that was asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) by: Asker,
    pub(super) id: EffectId,
    pub(super) request_sha256: Sha256Hex,
    pub(super) request: ChildRequest,
}

/// What there is to do after something happened to a child.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Effects that may be performed.
    pub(super) released: Vec<Asked>,
    /// A child came to its end.
    pub(super) ended: Option<Answer>,
}

/// A child that was started.
#[derive(Debug)]
pub(super) enum Started {
    /// It made its first step.
    Lives(EffectId, Step),
    /// It cannot be.
    Ended(Answer),
}

/// The children of one run.
pub(super) struct Children {
    run_id: RunId,
    walls: Walls,
    most: usize,
    /// In the order in which they were asked for.
    wanted: VecDeque<Wanted>,
    live: BTreeMap<EffectId, Child>,
    /// Those that live in rooms.
    tenants: JoinSet<(EffectId, Result<Isolation, NoRoom>)>,
    say_agreed: UnboundedSender<(EffectId, usize)>,
    hear_agreed: UnboundedReceiver<(EffectId, usize)>,
}

struct Child {
    by: Asker,
    request_sha256: Sha256Hex,
    request: ChildRequest,
    machine: GuestMachine,
    /// Steps that the machine made, the first one included.
    steps: usize,
    outcome: Option<Outcome>,
    home: Home,
    /// Effects that no room agreed to yet, by the step that asked for them.
    held: VecDeque<(usize, Vec<Asked>)>,
}

/// Where a child lives.
enum Home {
    /// In this process.
    Here(Isolation),
    /// Nowhere yet: everything it asked for so far was in the journal. What it was told.
    Replayed(Vec<guest_machine::Told>),
    /// In a room.
    Room {
        tell: UnboundedSender<guest_machine::Told>,
        /// Steps that the room made as it should.
        agreed: usize,
    },
}

impl Children {
    pub(super) fn new(run_id: RunId, walls: Walls, most: usize) -> Self {
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

    /// Somebody asked for a child.
    pub(super) fn want(&mut self, wanted: Wanted) {
        self.wanted.push_back(wanted);
    }

    /// Starts the next child, if there is one and not too many live.
    pub(super) fn start_next(&mut self) -> Option<Started> {
        if self.live.len() >= self.most {
            return None;
        }
        let Wanted { by, id, request_sha256, request } = self.wanted.pop_front()?;
        let mut machine = match build(&request) {
            Ok(machine) => machine,
            Err(error) => {
                let outcome = not_tried(&id, "debate.invalid", error.to_string());
                let end = ChildEnd { outcome, isolation: Isolation::none(None) };
                return Some(Started::Ended(answer(by, id, request_sha256, end)));
            }
        };
        let step = machine.start();
        let home = match self.walls {
            Walls::None => Home::Here(Isolation::none(None)),
            Walls::Rooms { .. } => Home::Replayed(Vec::new()),
        };
        let child = Child {
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
        Some(Started::Lives(id, step))
    }

    /// Tells a child a result; its step. `None` where the child was given up.
    pub(super) fn resume(
        &mut self,
        child: &EffectId,
        id: &EffectId,
        result: EffectResult,
    ) -> Result<Option<Step>, EngineError> {
        let Some(child) = self.live.get_mut(child) else { return Ok(None) };
        match &mut child.home {
            Home::Here(_) => {}
            Home::Replayed(told) => told.push((id.clone(), result.clone())),
            // A tenant that is gone has said why, or is about to.
            Home::Room { tell, .. } => drop(tell.send((id.clone(), result.clone()))),
        }
        child.steps += 1;
        Ok(Some(child.machine.resume(id, result)?))
    }

    /// A child made a step: what it asks for and the journal does not answer, and its end.
    pub(super) fn stepped(
        &mut self,
        id: &EffectId,
        asked: Vec<Asked>,
        outcome: Option<Outcome>,
    ) -> Told {
        let Some(child) = self.live.get_mut(id) else { return Told::default() };
        child.outcome = outcome;
        if let Home::Here(_) = child.home {
            return Told { released: asked, ended: self.end_of(id) };
        }
        let must_have_room = !asked.is_empty() || child.outcome.is_some();
        if !asked.is_empty() {
            child.held.push_back((child.steps, asked));
        }
        if must_have_room
            && let Home::Replayed(told) = &mut child.home
            && let Walls::Rooms { lobby, .. } = &self.walls
        {
            let (tell, more) = mpsc::unbounded_channel();
            let tenant = Tenant {
                lobby: Arc::clone(lobby),
                run_id: self.run_id.clone(),
                id: id.clone(),
                request: child.request.clone(),
                told: std::mem::take(told),
                more,
                agreed: self.say_agreed.clone(),
            };
            child.home = Home::Room { tell, agreed: 0 };
            self.tenants.spawn(tenant.live());
        }
        Told::default()
    }

    /// Whether something will be heard of a room without anything being told to it.
    pub(super) fn are_busy(&self) -> bool {
        self.live.values().any(|child| match &child.home {
            Home::Room { agreed, .. } => *agreed < child.steps || child.outcome.is_some(),
            Home::Here(_) | Home::Replayed(_) => false,
        })
    }

    /// Waits for a word of a room. `None` if a task of ours panicked.
    pub(super) async fn hear(&mut self) -> Option<Told> {
        tokio::select! {
            Some(ended) = self.tenants.join_next() => {
                let (id, ended) = ended.ok()?;
                Some(match ended {
                    // The room is done, and everything in it was as it should be.
                    Ok(isolation) => self.settle(&id, isolation),
                    Err(no_room) => self.has_no_room(&id, no_room),
                })
            }
            Some((id, steps)) = self.hear_agreed.recv() => Some(self.agreed(&id, steps)),
            else => std::future::pending().await,
        }
    }

    fn agreed(&mut self, id: &EffectId, steps: usize) -> Told {
        let mut released = Vec::new();
        if let Some(child) = self.live.get_mut(id)
            && let Home::Room { agreed, .. } = &mut child.home
        {
            *agreed = steps.max(*agreed);
            while let Some((_, asked)) = child.held.pop_front_if(|(step, _)| *step <= *agreed) {
                released.extend(asked);
            }
        }
        Told { released, ended: None }
    }

    fn has_no_room(&mut self, id: &EffectId, no_room: NoRoom) -> Told {
        let isolation = Isolation::none(Some(no_room.words().to_owned()));
        if let Walls::Rooms { on_failure: OnFailure::Fail, .. } = self.walls
            && let Some(child) = self.live.get_mut(id)
        {
            let why = no_room.words().to_owned();
            child.outcome = Some(not_tried(id, "debate.no-sandbox", why));
            child.held.clear();
        }
        self.settle(id, isolation)
    }

    /// The child lives here from now on, and whatever was held is free.
    fn settle(&mut self, id: &EffectId, isolation: Isolation) -> Told {
        let Some(child) = self.live.get_mut(id) else { return Told::default() };
        child.home = Home::Here(isolation);
        let released = child.held.drain(..).flat_map(|(_, asked)| asked).collect();
        Told { released, ended: self.end_of(id) }
    }

    /// The end of a child that lives here and has an outcome.
    fn end_of(&mut self, id: &EffectId) -> Option<Answer> {
        let child = self.live.get_mut(id)?;
        let Home::Here(isolation) = &child.home else { return None };
        let end = ChildEnd { outcome: child.outcome.take()?, isolation: isolation.clone() };
        let Child { by, request_sha256, .. } = self.live.remove(id)?;
        Some(answer(by, id.clone(), request_sha256, end))
    }
}

/// The end of a child as the answer to whoever asked for it.
fn answer(to: Asker, id: EffectId, request_sha256: Sha256Hex, end: ChildEnd) -> Answer {
    let entry = entry_of(request_sha256, end);
    Answer { to, id, result: entry.result.clone(), entry: Some(entry) }
}
