//! A worker: drives whatever part of a run it is given.

use std::fmt::{self, Debug};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::{RunId, Workflow};
use moothall_engine::Walls;
use moothall_engine::waves::{Hands, Heard, Lookout, Stage};
use moothall_models::Budget;
use moothall_store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::build::Build;
use crate::sdk;

/// What a worker needs of the program around it: models, evidence, sandboxes.
pub trait Program: Debug + Send + Sync {
    /// Finds what a run needs on this machine.
    fn open<'a>(&'a self, run_id: &'a RunId) -> OpenFuture<'a>;
}

/// The future of [`Program::open`].
pub type OpenFuture<'a> = Pin<Box<dyn Future<Output = Result<Opened, OpenError>> + Send + 'a>>;

/// A run that can be driven on this machine.
pub struct Opened {
    /// Where it is kept.
    pub store: Arc<dyn Store>,
    /// Its workflow, at its beginning.
    pub workflow: Box<dyn Workflow + Send>,
    /// Who performs its effects.
    pub hands: Arc<dyn Hands>,
    /// Where its children live.
    pub walls: Walls,
    /// The budget with which it began.
    pub budget: Budget,
    /// Children that live at once, at most.
    pub parallel_children: usize,
}

impl Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// Why a run cannot be driven on this machine.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{words}")]
pub struct OpenError {
    /// In words, without anything secret: Restate keeps them.
    pub words: String,
    /// Whether it may be otherwise later, or on another machine.
    pub is_retryable: bool,
}

/// One process that drives runs for Restate.
#[derive(Debug, Clone)]
pub struct Worker {
    pub(crate) program: Arc<dyn Program>,
    pub(crate) build: Build,
    leaving: CancellationToken,
    lookout: Arc<Lookout>,
    /// Steps under way.
    busy: watch::Sender<usize>,
}

impl Worker {
    /// A worker that nobody has given anything yet. Its build is this version, unless it is said more
    /// closely.
    pub fn new(program: Arc<dyn Program>) -> Self {
        let (leaving, busy) = (CancellationToken::new(), watch::Sender::new(0));
        let lookout = Arc::default();
        Self { program, build: Build::of_version(), leaving, lookout, busy }
    }

    /// The same, of this build.
    #[must_use]
    pub fn of_build(self, build: Build) -> Self {
        Self { build, ..self }
    }

    /// Listens where Restate will send work; several workers of one machine may share an address.
    pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        sdk::listen(address)
    }

    /// Serves until `done`. With Restate's public key (`publickeyv1_…`) nobody else is served.
    ///
    /// Errors: where the key is none.
    pub async fn serve(
        &self,
        listener: TcpListener,
        identity_key: Option<&str>,
        done: impl Future<Output = ()>,
    ) -> Result<(), String> {
        sdk::serve(self.clone(), listener, identity_key, done).await
    }

    /// Begins no further step, and waits at most so long for those under way: their answers are paid
    /// for. Restate gives what is left to other workers.
    pub async fn leave(&self, patience: Duration) {
        self.leaving.cancel();
        let mut busy = self.busy.subscribe();
        // The sender lives as long as we do; whoever is not done by then is done again elsewhere.
        let _ = tokio::time::timeout(patience, busy.wait_for(|busy| *busy == 0)).await;
    }

    /// Whether steps are under way.
    pub fn is_busy(&self) -> bool {
        *self.busy.borrow() > 0
    }

    /// Counts a step as long as the guard lives; `None` where no step may begin.
    pub(crate) fn begin(&self) -> Option<Busy> {
        if self.leaving.is_cancelled() {
            return None;
        }
        self.busy.send_modify(|busy| *busy += 1);
        Some(Busy(self.busy.clone()))
    }

    pub(crate) async fn open(
        &self,
        run_id: &RunId,
    ) -> Result<(Arc<Stage>, Box<dyn Workflow + Send>), OpenError> {
        let opened = self.program.open(run_id).await?;
        let Opened { store, workflow, hands, walls, budget, parallel_children } = opened;
        let (run_id, heard) = (run_id.clone(), Heard::default());
        let lookout = Arc::clone(&self.lookout);
        let stage =
            Stage { store, run_id, hands, budget, walls, parallel_children, heard, lookout };
        Ok((Arc::new(stage), workflow))
    }
}

/// A step under way.
#[derive(Debug)]
pub(crate) struct Busy(watch::Sender<usize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|busy| *busy = busy.saturating_sub(1));
    }
}
