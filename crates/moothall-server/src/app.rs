//! Application state shared by all requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moothall_core::ErrorCode;
use moothall_core::access::AccessScope;
use moothall_store::{RunMatch, RunRow, Store, TeamFilter};
use tokio_util::sync::CancellationToken;

use crate::calls::CallLogCache;
use crate::consultation_cache::ConsultationCache;
use crate::run_list::ListViewCache;
use crate::team_limiter::TeamLimiter;
use crate::{
    AccessControl, ApiProblem, CallerIdentity, EventFeed, ReviewLinkStore, RunService,
    ServerMetrics, WorkspaceRegistry,
};

/// Maximum concurrent replays of runs for documents and artifacts.
const MAX_REPLAYS: usize = 16;
const MAX_REPLAYS_PER_TEAM: usize = 4;

/// Maximum concurrent PDF exports. Each one is a process that uses one core for about a second.
const MAX_PDF_EXPORTS: usize = 4;
const MAX_PDF_EXPORTS_PER_TEAM: usize = 2;

/// Maximum concurrent requests with files, which are held in memory.
const MAX_UPLOADS: usize = 4;
const MAX_UPLOADS_PER_TEAM: usize = 2;

/// Shared state of a server.
#[derive(Clone)]
pub struct AppState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) run_service: Arc<dyn RunService>,
    pub(crate) feed: Arc<EventFeed>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) consultation_cache: Arc<ConsultationCache>,
    pub(crate) call_logs: Arc<CallLogCache>,
    pub(crate) list_views: Arc<ListViewCache>,
    pub(crate) workspaces: Arc<WorkspaceRegistry>,
    /// Without them, every review link is refused.
    pub(crate) review_links: Option<Arc<ReviewLinkStore>>,
    /// Limits concurrent replays of runs.
    pub(crate) replays: Arc<TeamLimiter>,
    /// Limits concurrent processes that typeset memos as PDF.
    pub(crate) pdf_exports: Arc<TeamLimiter>,
    /// Limits concurrent requests with files.
    pub(crate) uploads: Arc<TeamLimiter>,
    pub(crate) options: EventStreamOptions,
    /// Cancelled on shutdown; streams then send a final message and end.
    pub(crate) closing: CancellationToken,
}

/// Timing of event streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStreamOptions {
    /// Interval between keep-alive messages on a stream.
    pub heartbeat: Duration,
    /// A stream ends after about this time, and its client reconnects.
    pub max_age: Duration,
    /// Maximum time that a request for a page of events waits for new events.
    pub longest_wait: Duration,
}

impl Default for EventStreamOptions {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(15),
            max_age: Duration::from_secs(30 * 60),
            longest_wait: Duration::from_secs(25),
        }
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppState").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Build version that streams announce. A page of another build reloads itself.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

impl AppState {
    /// Creates a server over this store. Cancelling `closing` ends its streams.
    pub fn new(
        store: Arc<dyn Store>,
        run_service: Arc<dyn RunService>,
        feed: Arc<EventFeed>,
        access: AccessControl,
        closing: CancellationToken,
    ) -> Self {
        Self {
            store,
            run_service,
            feed,
            access: Arc::new(access),
            metrics: Arc::default(),
            consultation_cache: Arc::default(),
            call_logs: Arc::default(),
            list_views: Arc::default(),
            workspaces: Arc::default(),
            review_links: None,
            replays: Arc::new(TeamLimiter::new(MAX_REPLAYS_PER_TEAM, MAX_REPLAYS)),
            pdf_exports: Arc::new(TeamLimiter::new(MAX_PDF_EXPORTS_PER_TEAM, MAX_PDF_EXPORTS)),
            uploads: Arc::new(TeamLimiter::new(MAX_UPLOADS_PER_TEAM, MAX_UPLOADS)),
            options: EventStreamOptions::default(),
            closing,
        }
    }

    /// Uses these metrics, which may be shared with other components.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<ServerMetrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Serves the drafts of these workspaces.
    #[must_use]
    pub fn with_workspaces(self, workspaces: Arc<WorkspaceRegistry>) -> Self {
        Self { workspaces, ..self }
    }

    /// Accepts review links that this store's key signed.
    #[must_use]
    pub fn with_review_links(self, links: ReviewLinkStore) -> Self {
        Self { review_links: Some(Arc::new(links)), ..self }
    }

    /// Sets the stream timing.
    #[must_use]
    pub fn with_options(self, options: EventStreamOptions) -> Self {
        Self { options, ..self }
    }

    /// Finds a run by its id or an unambiguous prefix, and checks that the caller has `scope` on
    /// it. Every request for a run must use this function.
    pub(crate) async fn find(
        &self,
        caller: &CallerIdentity,
        scope: AccessScope,
        prefix: &str,
    ) -> Result<RunRow, ApiProblem> {
        let is_hex = prefix.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if prefix.len() < 4 || prefix.len() > 36 || !is_hex {
            return Err(ApiProblem::no_such_run(prefix));
        }
        // Search only the caller's team: runs of other teams must not even make a prefix ambiguous.
        let id = match self.store.find_runs(prefix, TeamFilter::Only(caller.owner()?.team)).await? {
            RunMatch::One(id) => id,
            RunMatch::None => return Err(ApiProblem::no_such_run(prefix)),
            RunMatch::Several(_) => {
                return Err(ApiProblem::conflict(
                    ErrorCode::RunAmbiguous,
                    "ambiguous run id: several runs start with it",
                )
                .with_hint("use a longer prefix of the id"));
            }
        };
        let row = self.store.run(&id).await?.ok_or_else(|| ApiProblem::no_such_run(prefix))?;
        caller.may_with(scope, &row.owner)?;
        Ok(row)
    }
}
