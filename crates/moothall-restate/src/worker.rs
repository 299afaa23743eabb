//! A worker process that drives runs and children for Restate.

use std::fmt::{self, Debug};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::{RunId, Workflow};
use moothall_engine::IsolationMode;
use moothall_engine::durable::{ControlPoller, PerformerFactory, RecentResults, RunContext};
use moothall_models::Budget;
use moothall_store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::build::WorkerBuild;
use crate::sdk;

/// What a worker needs from the host program: models, evidence, sandboxes.
pub trait WorkerHost: Debug + Send + Sync {
    /// Loads what a run needs on this machine.
    fn open<'a>(&'a self, run_id: &'a RunId) -> OpenFuture<'a>;
}

/// The future of [`WorkerHost::open`].
pub type OpenFuture<'a> = Pin<Box<dyn Future<Output = Result<OpenedRun, OpenError>> + Send + 'a>>;

/// A run that is ready to be driven on this machine.
pub struct OpenedRun {
    /// The store of the run.
    pub store: Arc<dyn Store>,
    /// The workflow, not yet started.
    pub workflow: Box<dyn Workflow + Send>,
    /// Creates the performers of its effects.
    pub performers: Arc<dyn PerformerFactory>,
    /// Where its children are executed.
    pub isolation: IsolationMode,
    /// The initial budget.
    pub budget: Budget,
    /// Maximum number of concurrent children.
    pub parallel_children: usize,
    /// The span that started the run, as a `traceparent`.
    pub trace_parent: Option<String>,
}

impl Debug for OpenedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedRun").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// Why a run cannot be driven on this machine.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{words}")]
pub struct OpenError {
    /// The message. Must not contain secrets, because Restate stores it.
    pub words: String,
    /// Whether it may succeed later or on another machine.
    pub is_retryable: bool,
}

/// A process that drives runs for Restate.
#[derive(Debug, Clone)]
pub struct RestateWorker {
    pub(crate) program: Arc<dyn WorkerHost>,
    pub(crate) build: WorkerBuild,
    shutdown: CancellationToken,
    control: Arc<ControlPoller>,
    /// Number of steps in progress.
    busy: watch::Sender<usize>,
}

impl RestateWorker {
    /// Creates a worker. Its build is the package version unless [`Self::of_build`] is called.
    pub fn new(program: Arc<dyn WorkerHost>) -> Self {
        let (shutdown, busy) = (CancellationToken::new(), watch::Sender::new(0));
        let control = Arc::default();
        Self { program, build: WorkerBuild::of_version(), shutdown, control, busy }
    }

    /// Sets the build.
    #[must_use]
    pub fn of_build(self, build: WorkerBuild) -> Self {
        Self { build, ..self }
    }

    /// Binds the socket that Restate sends work to. Several workers on one machine can share an
    /// address.
    pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        sdk::listen(address)
    }

    /// Serves until `done` resolves. If Restate's public key (`publickeyv1_…`) is given, all other
    /// clients are rejected.
    ///
    /// Errors: the key is invalid.
    pub async fn serve(
        &self,
        listener: TcpListener,
        identity_key: Option<&str>,
        done: impl Future<Output = ()>,
    ) -> Result<(), String> {
        sdk::serve(self.clone(), listener, identity_key, done).await
    }

    /// Starts no new steps and waits up to `timeout` for those in progress, because their results
    /// are paid for. Restate gives the remaining work to other workers.
    pub async fn shut_down(&self, timeout: Duration) {
        self.shutdown.cancel();
        let mut busy = self.busy.subscribe();
        // The wait itself cannot fail, because `self` owns the sender. Steps that time out are
        // repeated by another worker.
        let _ = tokio::time::timeout(timeout, busy.wait_for(|busy| *busy == 0)).await;
    }

    /// Whether steps are in progress.
    pub fn is_busy(&self) -> bool {
        *self.busy.borrow() > 0
    }

    /// Counts a step until the guard is dropped; `None` if the worker is shutting down.
    pub(crate) fn begin(&self) -> Option<StepGuard> {
        if self.shutdown.is_cancelled() {
            return None;
        }
        self.busy.send_modify(|busy| *busy += 1);
        Some(StepGuard(self.busy.clone()))
    }

    pub(crate) async fn open(
        &self,
        run_id: &RunId,
    ) -> Result<(Arc<RunContext>, Box<dyn Workflow + Send>), OpenError> {
        let opened = self.program.open(run_id).await?;
        let OpenedRun {
            store,
            workflow,
            performers,
            isolation,
            budget,
            parallel_children,
            trace_parent,
        } = opened;
        let (run_id, recent) = (run_id.clone(), RecentResults::default());
        let control = Arc::clone(&self.control);
        let context = RunContext {
            store,
            run_id,
            performers,
            budget,
            isolation,
            parallel_children,
            recent,
            control,
            trace_parent,
        };
        Ok((Arc::new(context), workflow))
    }
}

/// Guard of a step in progress.
#[derive(Debug)]
pub(crate) struct StepGuard(watch::Sender<usize>);

impl Drop for StepGuard {
    fn drop(&mut self) {
        self.0.send_modify(|busy| *busy = busy.saturating_sub(1));
    }
}
