//! Runs a child's machine in a guest, in lockstep with the same machine in this process.
//!
//! The guest gets the same results in the same order and must make the same steps. An effect is
//! performed only after the guest has requested it too. A guest that deviates is dropped, and the
//! machine is replayed into a fresh guest, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::child::{ChildIsolation, ChildRequest};
use moothall_core::guest::StepSummary;
use moothall_core::sandbox::{GuestPath, SandboxFailure, SandboxFailureKind};
use moothall_core::{EffectId, EffectResult, RunId, Sha256Hex, Step, Workflow as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::children::{build, guest_workflow};
use crate::guests::{GuestPool, GuestSession};

/// Fresh guests after a deviation.
const MAX_RETRIES_AFTER_DEVIATION: u32 = 1;

/// Fresh guests after one was lost.
const MAX_RETRIES_AFTER_LOSS: u32 = 2;

/// A result that a machine is resumed with.
pub(crate) type Told = (EffectId, EffectResult);

/// A child and the guests it runs in, one at a time.
#[derive(Debug)]
pub(crate) struct GuestRunner {
    pub(crate) guest_pool: Arc<GuestPool>,
    pub(crate) run_id: RunId,
    /// The effect that started the child.
    pub(crate) id: EffectId,
    pub(crate) request: ChildRequest,
    /// All results delivered so far, in order.
    pub(crate) delivered: Vec<Told>,
    /// Results still to come.
    pub(crate) results: UnboundedReceiver<Told>,
    /// Reports the number of confirmed steps, including the first.
    pub(crate) confirmed: UnboundedSender<(EffectId, usize)>,
}

/// Why a child has no guest. Receipts contain these texts, so equal reasons must have equal texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestUnavailable {
    /// No guest could be started, or the last one was lost.
    Failed(SandboxFailureKind),
    /// The guests deviated from the machine in this process.
    Differed,
}

impl GuestUnavailable {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Failed(SandboxFailureKind::NoEngine) => {
                "no-engine: this host has no sandbox that is strong enough"
            }
            Self::Failed(SandboxFailureKind::Image) => {
                "image: the image of the sandbox is missing or was changed"
            }
            Self::Failed(SandboxFailureKind::Request) => {
                "request: no sandbox supports these limits"
            }
            Self::Failed(SandboxFailureKind::Lost) => {
                "lost: sandboxes could not be started, or were lost"
            }
            Self::Differed => "differed: the guest had other results than the debate itself",
        }
    }
}

/// Why one guest was abandoned.
enum GuestFault {
    /// No guest is available.
    Unavailable(SandboxFailure),
    /// The guest was lost.
    Lost(SandboxFailure),
    /// The guest deviated from the machine in this process.
    Differs(&'static str),
}

/// How the use of one guest ended without a fault.
enum GuestExit {
    /// The machine finished; describes where it ran.
    Finished(ChildIsolation),
    /// The guest was returned because others were waiting, and now there is a new result to
    /// deliver.
    Reclaimed,
}

impl GuestRunner {
    /// Runs in guests until the machine finishes or no guest is available.
    pub(crate) async fn run(mut self) -> (EffectId, Result<ChildIsolation, GuestUnavailable>) {
        let mut faults = 0;
        loop {
            let fault = match self.run_in_guest().await {
                Ok(GuestExit::Finished(isolation)) => return (self.id, Ok(isolation)),
                Ok(GuestExit::Reclaimed) => continue,
                Err(fault) => fault,
            };
            let child = self.id.as_str();
            let (unavailable, max_retries) = match fault {
                GuestFault::Unavailable(SandboxFailure { kind, .. }) => {
                    (GuestUnavailable::Failed(kind), 0)
                }
                GuestFault::Lost(SandboxFailure { kind, detail }) => {
                    tracing::warn!(child, detail, "sandbox lost");
                    (GuestUnavailable::Failed(kind), MAX_RETRIES_AFTER_LOSS)
                }
                GuestFault::Differs(what) => {
                    tracing::warn!(child, what, "guest deviated from the local workflow");
                    (GuestUnavailable::Differed, MAX_RETRIES_AFTER_DEVIATION)
                }
            };
            if faults >= max_retries {
                return (self.id, Err(unavailable));
            }
            faults += 1;
        }
    }

    /// Uses one guest from the first step until it is given up.
    async fn run_in_guest(&mut self) -> Result<GuestExit, GuestFault> {
        let mut guest = self
            .guest_pool
            .acquire(&self.run_id, &self.id)
            .await
            .map_err(GuestFault::Unavailable)?;
        let mut local =
            build(&self.request).map_err(|_| GuestFault::Differs("cannot build the workflow"))?;
        let first = local.start();
        let mut is_finished = first.outcome.is_some();
        let step = guest.start(guest_workflow(&self.request)).await.map_err(GuestFault::Lost)?;
        self.compare(0, first, &step)?;
        let mut at = 0;
        while !is_finished {
            while self.delivered.len() <= at {
                tokio::select! {
                    biased;
                    delivered = next(&mut self.results) => self.delivered.push(delivered),
                    () = self.guest_pool.reclaim_requested() => {
                        tracing::debug!(child = self.id.as_str(), "idle sandbox returned to the pool");
                        guest.release();
                        self.delivered.push(next(&mut self.results).await);
                        return Ok(GuestExit::Reclaimed);
                    }
                }
            }
            let Some((id, result)) = self.delivered.get(at).cloned() else { continue };
            at += 1;
            // The local machine rejects this result although it accepted it before; the guest is
            // not at fault.
            let Ok(expected) = local.resume(&id, result.clone()) else { continue };
            is_finished = expected.outcome.is_some();
            let step = guest.resume(id, result).await.map_err(GuestFault::Lost)?;
            self.compare(at, expected, &step)?;
        }
        let logs = read_back(&mut *guest, local.files()).await?;
        let attestation = guest.attestation().clone();
        guest.release();
        let class = attestation.class;
        let attestation = Some(Box::new(attestation));
        Ok(GuestExit::Finished(ChildIsolation { class, fallback: None, attestation, logs }))
    }

    /// Reports the step as confirmed, or fails if it deviates.
    fn compare(&self, at: usize, expected: Step, step: &StepSummary) -> Result<(), GuestFault> {
        if StepSummary::of(expected).ok().as_ref() != Some(step) {
            return Err(GuestFault::Differs("step differs"));
        }
        // Sending fails only when the run is over.
        let _ = self.confirmed.send((self.id.clone(), at + 1));
        Ok(())
    }
}

/// The next result. If the sender is gone the run is over, so this waits until the task is aborted.
async fn next(results: &mut UnboundedReceiver<Told>) -> Told {
    match results.recv().await {
        Some(delivered) => delivered,
        None => std::future::pending().await,
    }
}

/// Reads the machine's files from the guest and checks that they match the local ones.
async fn read_back(
    guest: &mut dyn GuestSession,
    files: BTreeMap<GuestPath, String>,
) -> Result<BTreeMap<String, Sha256Hex>, GuestFault> {
    let mut logs = BTreeMap::new();
    for (path, expected) in files {
        let bytes = guest.read(&path, expected.len() as u64).await.map_err(GuestFault::Lost)?;
        if bytes != expected.as_bytes() {
            return Err(GuestFault::Differs("file differs"));
        }
        logs.insert(file_name(&path).to_owned(), Sha256Hex::of(&bytes));
    }
    Ok(logs)
}

fn file_name(path: &GuestPath) -> &str {
    let path = path.as_str();
    path.rsplit('/').next().unwrap_or(path)
}
