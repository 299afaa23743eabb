//! Guests that run in sandboxes on this host.

use std::sync::{Arc, Mutex, PoisonError};

use moothall_core::guest::{GuestWorkflow, StepSummary};
use moothall_core::sandbox::{
    GuestPath, IsolationClass, SandboxAttestation, SandboxFailure, SandboxFailureKind,
    SandboxLabels,
};
use moothall_core::{EffectId, EffectResult, RunId};
use moothall_sandbox::{
    PoolOptions, SandboxError, SandboxHost, SandboxLease, SandboxPolicy, SandboxRunner, SandboxSpec,
};
use tokio::task::JoinHandle;

use crate::guests::{GuestFuture, GuestProvider, GuestSession};

/// Provides sandboxes that run only our own agent, one debate each.
#[derive(Debug, Clone)]
pub struct DebateSandboxes {
    sandboxes: SandboxRunner,
    /// The company that the debates are about, for listings.
    ticker: String,
    /// Sandbox shutdowns in progress. Only `shut_down` awaits them.
    cleanups: Ending,
}

type Ending = Arc<Mutex<Vec<JoinHandle<()>>>>;

impl DebateSandboxes {
    /// Image that contains only the guest agent.
    pub const IMAGE: &str = "debate";

    /// Chooses the strongest engine that the policy allows and that passes the probe, which runs once
    /// for an image and a host. Fails early if the image is missing.
    pub async fn open(
        host: &SandboxHost,
        policy: &SandboxPolicy,
        options: PoolOptions,
    ) -> Result<Self, SandboxError> {
        let chosen = host.choose(policy, Self::IMAGE).await?;
        Ok(Self::new(SandboxRunner::new(chosen, options)))
    }

    /// The isolation class of the chosen engine.
    pub fn class(&self) -> IsolationClass {
        self.sandboxes.engine().class()
    }

    /// Uses the given sandboxes.
    pub fn new(sandboxes: SandboxRunner) -> Self {
        Self { sandboxes, ticker: String::new(), cleanups: Arc::default() }
    }

    /// Sets the company that listings show.
    #[must_use]
    pub fn with_ticker(self, ticker: &str) -> Self {
        Self { ticker: ticker.to_owned(), ..self }
    }

    /// Image and limits of a debate sandbox.
    pub fn spec() -> SandboxSpec {
        SandboxSpec::agent_only(Self::IMAGE)
    }

    /// Starts sandboxes ahead of demand.
    pub fn prewarm(&self) {
        self.sandboxes.prewarm(&Self::spec());
    }

    /// Number of started sandboxes that are idle.
    pub fn idle_count(&self) -> usize {
        self.sandboxes.idle_count(&Self::spec())
    }

    /// Waits until all sandboxes have shut down.
    pub async fn shut_down(&self) {
        let cleanups = std::mem::take(&mut *lock(&self.cleanups));
        for end in cleanups {
            // The reaper removes what a failed cleanup leaves behind.
            let _ = end.await;
        }
        self.sandboxes.shut_down().await;
    }
}

impl GuestProvider for DebateSandboxes {
    fn acquire<'a>(
        &'a self,
        run_id: &'a RunId,
        id: &'a EffectId,
    ) -> GuestFuture<'a, Box<dyn GuestSession>> {
        Box::pin(async move {
            let labels = SandboxLabels::of_effect(run_id, id)
                .with("stage", "debate")
                .with("move", id.as_str())
                .with("ticker", &self.ticker);
            let lease = self.sandboxes.lease(&Self::spec(), &labels).await;
            let lease = lease.map_err(|error| error.failure())?;
            tracing::debug!(
                child = id.as_str(),
                sandbox = lease.name(),
                "sandbox assigned to debate"
            );
            Ok(Box::new(SandboxGuest { lease, cleanups: Arc::clone(&self.cleanups) })
                as Box<dyn GuestSession>)
        })
    }
}

#[derive(Debug)]
struct SandboxGuest {
    lease: SandboxLease,
    cleanups: Ending,
}

impl GuestSession for SandboxGuest {
    fn start(&mut self, workflow: GuestWorkflow) -> GuestFuture<'_, StepSummary> {
        Box::pin(async move {
            let step = self.lease.session().start_workflow(workflow).await;
            step.map_err(|error| error.failure())
        })
    }

    fn resume(&mut self, id: EffectId, result: EffectResult) -> GuestFuture<'_, StepSummary> {
        Box::pin(async move {
            let step = self.lease.session().resume_workflow(id, result).await;
            step.map_err(|error| error.failure())
        })
    }

    fn read<'a>(&'a mut self, path: &'a GuestPath, most_bytes: u64) -> GuestFuture<'a, Vec<u8>> {
        Box::pin(async move {
            let file = self.lease.session().get(path, most_bytes).await;
            file.map_err(|error| error.failure())?.map_err(|why| SandboxFailure {
                kind: SandboxFailureKind::Lost,
                detail: format!("cannot read {path} from the guest: {why}"),
            })
        })
    }

    fn attestation(&self) -> &SandboxAttestation {
        self.lease.attestation()
    }

    fn release(self: Box<Self>) {
        let Self { lease, cleanups } = *self;
        let mut cleanups = lock(&cleanups);
        cleanups.retain(|end| !end.is_finished());
        cleanups.push(tokio::spawn(lease.end()));
    }
}

fn lock(cleanups: &Ending) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
    cleanups.lock().unwrap_or_else(PoisonError::into_inner)
}
