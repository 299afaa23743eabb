//! A machine in a room, in step with the same machine here.
//!
//! The room is told what the child is told, in the same order, and must make the same steps. What a
//! step asks for is performed only after the room asked for it too. A room that says anything else
//! is not listened to any more: the machine is replayed into a fresh one, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::child::{ChildRequest, Isolation};
use moothall_core::guest::SaidStep;
use moothall_core::sandbox::{GuestPath, SandboxFailure, SandboxFailureKind};
use moothall_core::{EffectId, EffectResult, RunId, Sha256Hex, Step, Workflow as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::children::{build, inside};
use crate::rooms::{Lobby, Room};

/// Fresh rooms after one that said something else than it should.
const AFTER_A_LIE: u32 = 1;

/// Fresh rooms after one that was lost.
const AFTER_A_LOSS: u32 = 2;

/// A result that the machine is told.
pub(crate) type Told = (EffectId, EffectResult);

/// A child in its rooms, one after the other.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) lobby: Arc<Lobby>,
    pub(crate) run_id: RunId,
    /// The effect that started the child.
    pub(crate) id: EffectId,
    pub(crate) request: ChildRequest,
    /// Everything that the machine was told so far, in order.
    pub(crate) told: Vec<Told>,
    /// What it is told from now on.
    pub(crate) more: UnboundedReceiver<Told>,
    /// How many steps the room made as it should, the first one included.
    pub(crate) agreed: UnboundedSender<(EffectId, usize)>,
}

/// Why a child has no room. The words are the same for equal reasons: they stand in receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// There was none, or the last one was lost.
    Failed(SandboxFailureKind),
    /// Rooms did not do what the machine here did.
    Differed,
}

impl NoRoom {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Failed(SandboxFailureKind::NoEngine) => {
                "no-engine: no sandbox on this host is as strong as it must be"
            }
            Self::Failed(SandboxFailureKind::Image) => {
                "image: the image of the sandbox is not built, or it is not what it was"
            }
            Self::Failed(SandboxFailureKind::Request) => {
                "request: the sandbox cannot be had with these limits"
            }
            Self::Failed(SandboxFailureKind::Lost) => {
                "lost: sandboxes could not be started, or were lost one after the other"
            }
            Self::Differed => "differed: the guest did not do what the debate does",
        }
    }
}

/// Why one room is left.
enum Fault {
    /// There is none to be had.
    NotEntered(SandboxFailure),
    /// It was lost.
    Lost(SandboxFailure),
    /// It did something else than the machine here.
    Differs(&'static str),
}

/// How a stay in one room ended well.
enum Left {
    /// The machine is at its end, and this is what is known about where it ran.
    AtTheEnd(Isolation),
    /// Others needed the room more, and now there is something to tell the machine.
    GivenBack,
}

impl Tenant {
    /// Lives in rooms until the machine is at its end or there is no room for it.
    pub(crate) async fn live(mut self) -> (EffectId, Result<Isolation, NoRoom>) {
        let mut faults = 0;
        loop {
            let fault = match self.stay().await {
                Ok(Left::AtTheEnd(isolation)) => return (self.id, Ok(isolation)),
                Ok(Left::GivenBack) => continue,
                Err(fault) => fault,
            };
            let child = self.id.as_str();
            let (no_room, patience) = match fault {
                Fault::NotEntered(SandboxFailure { kind, .. }) => (NoRoom::Failed(kind), 0),
                Fault::Lost(SandboxFailure { kind, detail }) => {
                    tracing::warn!(child, detail, "a sandbox was lost");
                    (NoRoom::Failed(kind), AFTER_A_LOSS)
                }
                Fault::Differs(what) => {
                    tracing::warn!(child, what, "a guest did something else than it should");
                    (NoRoom::Differed, AFTER_A_LIE)
                }
            };
            if faults >= patience {
                return (self.id, Err(no_room));
            }
            faults += 1;
        }
    }

    /// One room, from the first step to where it is left.
    async fn stay(&mut self) -> Result<Left, Fault> {
        let mut room = self.lobby.enter(&self.run_id, &self.id).await.map_err(Fault::NotEntered)?;
        let mut own = build(&self.request).map_err(|_| Fault::Differs("it cannot be built"))?;
        let first = own.start();
        let mut is_over = first.outcome.is_some();
        let step = room.start(inside(&self.request)).await.map_err(Fault::Lost)?;
        self.compare(0, first, &step)?;
        let mut at = 0;
        while !is_over {
            while self.told.len() <= at {
                tokio::select! {
                    biased;
                    told = next(&mut self.more) => self.told.push(told),
                    () = self.lobby.wants_back() => {
                        tracing::debug!(child = self.id.as_str(), "an idle sandbox is given back");
                        room.leave();
                        self.told.push(next(&mut self.more).await);
                        return Ok(Left::GivenBack);
                    }
                }
            }
            let Some((id, result)) = self.told.get(at).cloned() else { continue };
            at += 1;
            // The machine here took this result before; the room is not to blame if it does not.
            let Ok(expected) = own.resume(&id, result.clone()) else { continue };
            is_over = expected.outcome.is_some();
            let step = room.tell(id, result).await.map_err(Fault::Lost)?;
            self.compare(at, expected, &step)?;
        }
        let logs = read_back(&mut *room, own.files()).await?;
        let attestation = room.attestation().clone();
        room.leave();
        let class = attestation.class;
        let attestation = Some(Box::new(attestation));
        Ok(Left::AtTheEnd(Isolation { class, fallback: None, attestation, logs }))
    }

    /// Says that the room made a step as it should, or that it did not.
    fn compare(&self, at: usize, expected: Step, step: &SaidStep) -> Result<(), Fault> {
        if SaidStep::of(expected).ok().as_ref() != Some(step) {
            return Err(Fault::Differs("a step differs"));
        }
        // Nobody listens any more when the run is over.
        let _ = self.agreed.send((self.id.clone(), at + 1));
        Ok(())
    }
}

/// What the machine is told next. When nobody is there to tell it anything, the run is over, and with
/// it this task.
async fn next(more: &mut UnboundedReceiver<Told>) -> Told {
    match more.recv().await {
        Some(told) => told,
        None => std::future::pending().await,
    }
}

/// The files that the machine left in the room, which must be what they are here.
async fn read_back(
    room: &mut dyn Room,
    files: BTreeMap<GuestPath, String>,
) -> Result<BTreeMap<String, Sha256Hex>, Fault> {
    let mut logs = BTreeMap::new();
    for (path, expected) in files {
        let bytes = room.read(&path, expected.len() as u64).await.map_err(Fault::Lost)?;
        if bytes != expected.as_bytes() {
            return Err(Fault::Differs("a file differs"));
        }
        logs.insert(file_name(&path).to_owned(), Sha256Hex::of(&bytes));
    }
    Ok(logs)
}

fn file_name(path: &GuestPath) -> &str {
    let path = path.as_str();
    path.rsplit('/').next().unwrap_or(path)
}
