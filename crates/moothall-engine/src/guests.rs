//! Guests: isolated environments outside this process that run a child's machine.
//!
//! A guest holds only the machine. The journal, the budget and all API keys stay in this process,
//! which also performs the effects that the guest requests. So a guest can be returned at any time
//! and its machine replayed into another one.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moothall_core::guest::{GuestWorkflow, StepSummary};
use moothall_core::sandbox::{GuestPath, SandboxAttestation, SandboxFailure};
use moothall_core::{EffectId, EffectResult, RunId};
use tokio::sync::watch;

/// Default time a guest may be idle while other children wait for one.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The future of one request to a guest. Boxed because the provider is chosen at run time.
pub type GuestFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SandboxFailure>> + Send + 'a>>;

/// Provides guests.
///
/// Implementors must guarantee:
/// - Every guest is new and has never been used.
/// - A request waits while no guest is free. A failure means that waiting would not help; all
///   retries have been made.
/// - Dropping the future leaves nothing behind.
pub trait GuestProvider: Debug + Send + Sync {
    /// Provides a guest for the child that this effect started.
    fn acquire<'a>(
        &'a self,
        run_id: &'a RunId,
        id: &'a EffectId,
    ) -> GuestFuture<'a, Box<dyn GuestSession>>;
}

/// A guest with a machine in it. Its output is untrusted.
///
/// Implementors must guarantee: every wait is bounded, a guest is unusable after a failure, and
/// dropping a guest ends it.
pub trait GuestSession: Debug + Send {
    /// Starts the machine and returns its first step.
    fn start(&mut self, workflow: GuestWorkflow) -> GuestFuture<'_, StepSummary>;

    /// Resumes the machine with a result and returns its next step.
    fn resume(&mut self, id: EffectId, result: EffectResult) -> GuestFuture<'_, StepSummary>;

    /// Reads a file written by the machine, up to `most_bytes`.
    fn read<'a>(&'a mut self, path: &'a GuestPath, most_bytes: u64) -> GuestFuture<'a, Vec<u8>>;

    /// What is known about the isolation.
    fn attestation(&self) -> &SandboxAttestation;

    /// Releases the guest. Cleanup continues in the background.
    fn release(self: Box<Self>);
}

/// Where the children of a run are executed.
#[derive(Debug, Clone)]
pub enum IsolationMode {
    /// In this process, as configured.
    None,
    /// Each in its own guest.
    Guests {
        /// The source of guests.
        guest_pool: Arc<GuestPool>,
        /// What to do if a child gets no guest or its guests fail.
        on_failure: GuestFailurePolicy,
    },
}

/// What to do with a child whose guest fails or is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestFailurePolicy {
    /// Continue in this process; the child's result records the fallback and its reason.
    Fallback,
    /// End the child without a result.
    Fail,
}

/// Hands out guests and tracks how many children wait for one. Can be shared by several runs.
#[derive(Debug)]
pub struct GuestPool {
    provider: Box<dyn GuestProvider>,
    idle: Duration,
    /// Number of children waiting for a guest.
    waiting: watch::Sender<usize>,
    /// Whether the lack of guests was already logged, so that fifteen debates do not log it fifteen
    /// times.
    warned: AtomicBool,
}

impl GuestPool {
    /// Hands out guests from this provider.
    pub fn new(provider: impl GuestProvider + 'static) -> Self {
        let (waiting, warned) = (watch::Sender::new(0), AtomicBool::new(false));
        Self { provider: Box::new(provider), idle: DEFAULT_IDLE_TIMEOUT, waiting, warned }
    }

    /// Has no guests: every request fails immediately with this reason.
    pub fn unavailable(why: SandboxFailure) -> Self {
        Self::new(UnavailableProvider(why))
    }

    /// Sets how long a guest may be idle while other children wait for one.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    pub(crate) async fn acquire(
        &self,
        run_id: &RunId,
        id: &EffectId,
    ) -> Result<Box<dyn GuestSession>, SandboxFailure> {
        let _waiter = GuestWaiter::new(&self.waiting);
        let guest = self.provider.acquire(run_id, id).await;
        if let Err(SandboxFailure { detail, .. }) = &guest
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            // The user was told before the run, and the event of the debate says it again.
            tracing::info!(child = id.as_str(), detail, "no sandbox available for debates");
        }
        guest
    }

    /// Returns when a guest that is idle from now on should be returned.
    pub(crate) async fn reclaim_requested(&self) {
        tokio::time::sleep(self.idle).await;
        let mut waiting = self.waiting.subscribe();
        // Cannot fail: `self` owns the sender.
        let _ = waiting.wait_for(|waiting| *waiting > 0).await;
    }
}

/// Counts as one waiting child until dropped.
struct GuestWaiter<'a>(&'a watch::Sender<usize>);

impl<'a> GuestWaiter<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|waiting| *waiting += 1);
        Self(waiting)
    }
}

impl Drop for GuestWaiter<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

/// A provider without guests.
#[derive(Debug)]
struct UnavailableProvider(SandboxFailure);

impl GuestProvider for UnavailableProvider {
    fn acquire<'a>(
        &'a self,
        _: &'a RunId,
        _: &'a EffectId,
    ) -> GuestFuture<'a, Box<dyn GuestSession>> {
        Box::pin(async { Err(self.0.clone()) })
    }
}
