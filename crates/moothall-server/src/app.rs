//! What all requests share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::access::Scope;
use moothall_store::{RunMatch, RunRow, Store, Teams};
use tokio_util::sync::CancellationToken;

use crate::shelf::Shelf;
use crate::team_limiter::TeamLimiter;
use crate::{Access, Desk, Feed, Metrics, Problem, Who, Workspaces};

/// Runs that are replayed at once, to show what they wrote.
const READINGS: usize = 16;
const READINGS_PER_TEAM: usize = 4;

/// PDF exports that run at once; each is a process that takes about a second of one core.
const PDF_EXPORTS: usize = 4;
const PDF_EXPORTS_PER_TEAM: usize = 2;

/// What a server is made of.
#[derive(Clone)]
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) access: Arc<Access>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) workspaces: Arc<Workspaces>,
    /// Runs that are read and replayed.
    pub(crate) readings: Arc<TeamLimiter>,
    /// Processes that typeset memos as PDF.
    pub(crate) pdf_exports: Arc<TeamLimiter>,
    pub(crate) options: Options,
    /// Cancelled when the server is about to end: streams say goodbye.
    pub(crate) closing: CancellationToken,
}

/// How streams behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Between two signs of life on a stream.
    pub heartbeat: Duration,
    /// After about so long a stream ends and its reader comes back.
    pub max_age: Duration,
    /// How long a request for a page of events may wait for one.
    pub longest_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(15),
            max_age: Duration::from_secs(30 * 60),
            longest_wait: Duration::from_secs(25),
        }
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The build, as streams say it: a page of another build reloads itself.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

impl App {
    /// A server over this store. `closing` ends its streams.
    pub fn new(
        store: Arc<dyn Store>,
        desk: Arc<dyn Desk>,
        feed: Arc<Feed>,
        access: Access,
        closing: CancellationToken,
    ) -> Self {
        Self {
            store,
            desk,
            feed,
            access: Arc::new(access),
            metrics: Arc::default(),
            shelf: Arc::default(),
            workspaces: Arc::default(),
            readings: Arc::new(TeamLimiter::new(READINGS_PER_TEAM, READINGS)),
            pdf_exports: Arc::new(TeamLimiter::new(PDF_EXPORTS_PER_TEAM, PDF_EXPORTS)),
            options: Options::default(),
            closing,
        }
    }

    /// Counts in these metrics, which others may count in, too.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Shows the drafts of these workspaces.
    #[must_use]
    pub fn with_workspaces(self, workspaces: Arc<Workspaces>) -> Self {
        Self { workspaces, ..self }
    }

    /// With other times.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The run that a caller means by its id or an unmistakable beginning of it, if they may do this
    /// to it. Every request about a run comes through here.
    pub(crate) async fn find(
        &self,
        who: &Who,
        scope: Scope,
        words: &str,
    ) -> Result<RunRow, Problem> {
        let shaped = words.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if words.len() < 4 || words.len() > 36 || !shaped {
            return Err(Problem::no_such_run(words));
        }
        // What another team has is not there, not even as a reason to write more of an id.
        let id = match self.store.find_runs(words, Teams::Only(who.owner()?.team)).await? {
            RunMatch::One(id) => id,
            RunMatch::None => return Err(Problem::no_such_run(words)),
            RunMatch::Several(_) => {
                return Err(Problem::conflict(
                    ErrorCode::RunAmbiguous,
                    "this is the beginning of several ids",
                )
                .with_hint("write more of it"));
            }
        };
        let row = self.store.run(&id).await?.ok_or_else(|| Problem::no_such_run(words))?;
        who.may_with(scope, &row.owner)?;
        Ok(row)
    }
}
