//! Rooms that are sandboxes of this host.

use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::guest::{GuestWorkflow, SaidStep};
use moothall_core::sandbox::{
    Attestation, GuestPath, Labels, Limits, SandboxFailure, SandboxFailureKind,
};
use moothall_core::{EffectId, EffectResult, RunId};
use moothall_sandbox::{
    EngineName, Host, Lease, Policy, PoolOptions, ProbeReport, ProbedEngine, SandboxError,
    Sandboxes, Spec, choose,
};
use tokio::task::JoinHandle;

use crate::rooms::{Room, RoomFuture, Rooms};

/// The image in which nothing is but the agent.
const IMAGE: &str = "debate";

/// Sandboxes in which nothing runs but our own agent, each holding one debate.
#[derive(Debug, Clone)]
pub struct DebateRooms {
    sandboxes: Sandboxes,
    /// Nobody waits for an end but whoever ends the process.
    ending: Ending,
}

type Ending = Arc<Mutex<Vec<JoinHandle<()>>>>;

impl DebateRooms {
    /// Finds the strongest engine that the policy allows, without starting anything: no program of
    /// others runs in these rooms, so none is tried out. An image that is not built is said at once.
    pub async fn open(
        host: &Host,
        policy: &Policy,
        options: PoolOptions,
    ) -> Result<Self, SandboxError> {
        host.images().find(IMAGE)?;
        let mut found = Vec::new();
        let mut missing = Vec::new();
        let wanted = |name: &EngineName| policy.engine.is_none_or(|wanted| wanted == *name);
        for name in EngineName::ALL.into_iter().filter(wanted) {
            match host.engine(name).await {
                Ok(engine) => found.push(ProbedEngine {
                    report: ProbeReport {
                        engine: name,
                        version: engine.version().to_owned(),
                        class: engine.class(),
                        self_tests: engine.self_tests(),
                        held_by: engine.holds(),
                        start_ms: 0,
                        run_ms: 0,
                    },
                    engine,
                }),
                // Named and not there: its own words are the answer.
                Err(error) if policy.engine.is_some() => return Err(error),
                Err(error) => missing.push(format!("{name}: {error}")),
            }
        }
        let chosen = choose(&found, policy).map_err(|error| match error {
            SandboxError::TooWeak { minimum, .. } if found.is_empty() => {
                SandboxError::TooWeak { minimum, found: missing.join("; ") }
            }
            other => other,
        })?;
        Ok(Self::new(Sandboxes::new(chosen, options)))
    }

    /// Rooms in these sandboxes.
    pub fn new(sandboxes: Sandboxes) -> Self {
        Self { sandboxes, ending: Arc::default() }
    }

    /// What a debate needs: its agent, its prompts and its conversation, all of them small.
    pub fn spec() -> Spec {
        let limits = Limits {
            memory_bytes: 32 << 20,
            disk_bytes: 8 << 20,
            file_bytes: 8 << 20,
            ..Limits::default()
        };
        Spec { image: IMAGE.to_owned(), limits }
    }

    /// Starts rooms while nobody needs one yet.
    pub fn expect(&self) {
        self.sandboxes.expect(&Self::spec());
    }

    /// Rooms that wait for somebody.
    pub fn waiting(&self) -> usize {
        self.sandboxes.waiting(&Self::spec())
    }

    /// Waits until everything is gone.
    pub async fn shut_down(&self) {
        let ending = std::mem::take(&mut *lock(&self.ending));
        for end in ending {
            // A clean-up that fails is the reaper's.
            let _ = end.await;
        }
        self.sandboxes.shut_down().await;
    }
}

impl Rooms for DebateRooms {
    fn enter<'a>(&'a self, run_id: &'a RunId, id: &'a EffectId) -> RoomFuture<'a, Box<dyn Room>> {
        Box::pin(async move {
            let labels = Labels::of_effect(run_id, id);
            let lease = self.sandboxes.lease(&Self::spec(), &labels).await;
            let lease = lease.map_err(|error| error.failure())?;
            tracing::debug!(child = id.as_str(), sandbox = lease.name(), "a debate has a sandbox");
            Ok(Box::new(Guest { lease, ending: Arc::clone(&self.ending) }) as Box<dyn Room>)
        })
    }
}

/// One sandbox.
#[derive(Debug)]
struct Guest {
    lease: Lease,
    ending: Ending,
}

impl Room for Guest {
    fn start(&mut self, workflow: GuestWorkflow) -> RoomFuture<'_, SaidStep> {
        Box::pin(async move {
            let step = self.lease.session().start_workflow(workflow).await;
            step.map_err(|error| error.failure())
        })
    }

    fn tell(&mut self, id: EffectId, result: EffectResult) -> RoomFuture<'_, SaidStep> {
        Box::pin(async move {
            let step = self.lease.session().tell_result(id, result).await;
            step.map_err(|error| error.failure())
        })
    }

    fn read<'a>(&'a mut self, path: &'a GuestPath, most_bytes: u64) -> RoomFuture<'a, Vec<u8>> {
        Box::pin(async move {
            let file = self.lease.session().get(path, most_bytes).await;
            file.map_err(|error| error.failure())?.map_err(|why| SandboxFailure {
                kind: SandboxFailureKind::Lost,
                detail: format!("{path} cannot be read back: {why}"),
            })
        })
    }

    fn attestation(&self) -> &Attestation {
        self.lease.attestation()
    }

    fn leave(self: Box<Self>) {
        let Self { lease, ending } = *self;
        let mut ending = lock(&ending);
        ending.retain(|end| !end.is_finished());
        ending.push(tokio::spawn(lease.end()));
    }
}

fn lock(ending: &Ending) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
    ending.lock().unwrap_or_else(PoisonError::into_inner)
}
