//! `/api/drafts`: draft listing and review.
//!
//! The journal of each workspace is the source of truth and is read through [`DraftStore`]; this
//! module keeps no state. Store operations block on locks and the disk, so they run on blocking
//! threads.

mod audit;
mod draft_events;
pub(crate) mod links;
mod rows;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use moothall_core::ErrorCode;
use moothall_core::Sha256Hex;
use moothall_core::access::{AccessScope, RunOwner};
use moothall_core::drafts::{
    ClientInfo, CommentSide, Draft, DraftId, DraftRefusal, DraftState, LineComment, Principal,
    PrincipalAccount, RelPath, ReviewDecision,
};
use moothall_core::gate::ReviewChannel;
use moothall_workspace::{
    AmendResult, DraftCaller, DraftError, DraftStore, FileAmendment, workspace_id,
};
use serde::Deserialize;
use tokio::sync::Semaphore;

pub(crate) use self::audit::show as audit;
use self::draft_events::DraftNotifier;
pub(crate) use self::draft_events::events;
use crate::access::token_label;
use crate::app::BUILD;
use crate::control::bounded;
use crate::dto::{
    DraftAmendmentRequest, DraftCommentRequest, DraftCommentSide, DraftContent, DraftDetail,
    DraftList, DraftReviewRequest, DraftReviewResponse, WorkspaceRow,
};
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::team_limiter::busy;
use crate::{ApiProblem, AppState, CallerIdentity};

const DEFAULT_LIMIT: usize = 200;
const MAX_LIMIT: usize = 1_000;
const MAX_REASON_CHARS: usize = 2_000;

/// Maximum concurrent draft requests per workspace. Each holds a blocking thread and may wait there
/// for another process that holds the store lock.
const MAX_REQUESTS_PER_WORKSPACE: usize = 8;

/// Maximum concurrent journal reads by event streams per workspace.
const MAX_STREAM_READS_PER_WORKSPACE: usize = 2;

/// How long a request waits for a permit before it is refused as `busy`.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The workspaces whose drafts the server serves.
#[derive(Debug, Default)]
pub struct WorkspaceRegistry {
    all: Vec<ServedWorkspace>,
    person: String,
    account: Option<PrincipalAccount>,
    notifier: DraftNotifier,
}

/// A workspace whose drafts the server serves.
#[derive(Debug, Clone)]
pub struct ServedWorkspace {
    id: String,
    name: String,
    store: Arc<DraftStore>,
    requests: Arc<Semaphore>,
    stream_reads: Arc<Semaphore>,
}

impl ServedWorkspace {
    /// Opens the workspace in this folder.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn new(folder: &Path, store: DraftStore) -> std::io::Result<Self> {
        let id = workspace_id(folder)?;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self {
            id,
            name: name.unwrap_or_else(|| "/".to_owned()),
            store: Arc::new(store),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS_PER_WORKSPACE)),
            stream_reads: Arc::new(Semaphore::new(MAX_STREAM_READS_PER_WORKSPACE)),
        })
    }
}

impl WorkspaceRegistry {
    /// Serves these workspaces. Requests without a token are attributed to `person`.
    pub fn new(all: Vec<ServedWorkspace>, person: String) -> Self {
        Self { all, person, account: None, notifier: DraftNotifier::default() }
    }

    /// Sets the user id of that person on this machine.
    pub fn with_user(self, uid: u32) -> Self {
        Self { account: Some(PrincipalAccount::User(uid)), ..self }
    }

    fn rows(&self) -> Vec<WorkspaceRow> {
        let row =
            |one: &ServedWorkspace| WorkspaceRow { id: one.id.clone(), name: one.name.clone() };
        self.all.iter().map(row).collect()
    }

    /// Reports whether the journals of all workspaces are writable. Only journals whose last write
    /// failed are tested again.
    pub(crate) async fn check_journals(&self) -> bool {
        for one in self.all.iter().filter(|one| one.store.is_journal_failing()) {
            let store = Arc::clone(&one.store);
            let checked = tokio::task::spawn_blocking(move || store.check_journal()).await;
            if !matches!(checked, Ok(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// Finds a draft and its workspace.
    fn find(&self, id: DraftId) -> Result<(&ServedWorkspace, Draft), DraftError> {
        let gate = DraftCaller::new(Principal::gate());
        for one in &self.all {
            match one.store.status(&gate, id) {
                Err(DraftError::Refused(DraftRefusal::Unknown)) => {}
                found => return Ok((one, found?)),
            }
        }
        Err(DraftRefusal::Unknown.into())
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct DraftListQuery {
    state: Option<DraftState>,
    limit: Option<usize>,
}

pub(crate) async fn list(
    Shared(app): Shared<AppState>,
    QueryParams(query): QueryParams<DraftListQuery>,
) -> Result<Json<DraftList>, ApiProblem> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    blocking(app, move |app| {
        let gate = DraftCaller::new(Principal::gate());
        let mut found = Vec::new();
        let mut cursor = draft_events::DraftStreamCursor::default();
        for one in &app.workspaces.all {
            // Read the cursor before the list: an event in between is then delivered twice instead
            // of being lost.
            cursor.set(&one.id, one.store.notifications_after(u64::MAX).head);
            let drafts = one.store.list(&gate)?;
            found.extend(drafts.into_iter().map(|draft| (one, draft)));
        }
        let waiting = found.iter().filter(|(_, one)| one.state == DraftState::Escalated).count();
        found.retain(|(_, draft)| query.state.is_none_or(|state| draft.state == state));
        found.sort_by_key(|(_, draft)| std::cmp::Reverse((draft.touched, draft.id)));
        let drafts = found.iter().take(limit).map(|(one, draft)| rows::row(one, draft));
        Ok(DraftList {
            workspaces: app.workspaces.rows(),
            drafts: drafts.collect(),
            waiting: waiting as u64,
            cursor: cursor.to_string(),
        })
    })
    .await
}

pub(crate) async fn show(
    Shared(app): Shared<AppState>,
    PathParams(draft): PathParams<String>,
) -> Result<Json<DraftDetail>, ApiProblem> {
    let id = id_of(&draft)?;
    blocking(app, move |app| {
        let (one, _) = app.workspaces.find(id)?;
        rows::detail(one, id)
    })
    .await
}

/// Returns the proposed content for editing.
pub(crate) async fn content(
    Shared(app): Shared<AppState>,
    caller: CallerIdentity,
    PathParams(draft): PathParams<String>,
) -> Result<Json<DraftContent>, ApiProblem> {
    caller.may_with(AccessScope::Review, &RunOwner::local())?;
    let id = id_of(&draft)?;
    blocking(app, move |app| {
        let (one, _) = app.workspaces.find(id)?;
        rows::content(one, id)
    })
    .await
}

pub(crate) async fn comment(
    Shared(app): Shared<AppState>,
    caller: CallerIdentity,
    PathParams(draft): PathParams<String>,
    JsonBody(request): JsonBody<DraftCommentRequest>,
) -> Result<Json<DraftReviewResponse>, ApiProblem> {
    caller.may_with(AccessScope::Review, &RunOwner::local())?;
    let id = id_of(&draft)?;
    let seal = seal_of("seal", &request.seal)?;
    let path = RelPath::parse(&request.path)
        .map_err(|fault| ApiProblem::bad_request(format!("`path`: {fault}")))?;
    let side = match request.side {
        DraftCommentSide::Old => CommentSide::Old,
        DraftCommentSide::New => CommentSide::New,
    };
    let text = bounded("text", request.text, MAX_REASON_CHARS)?;
    let comment = LineComment { path, side, line: request.line, text };
    let person = reviewer(&app, &caller).await?;
    let commented = blocking(app.clone(), move |app| {
        let (one, _) = app.workspaces.find(id)?;
        let drafts = one.store.comment(&person, id, seal, vec![comment])?;
        let drafts = drafts.iter().map(|draft| rows::row(one, draft)).collect();
        Ok(DraftReviewResponse { drafts, undecided: None })
    });
    let commented = commented.await?;
    app.workspaces.notifier.notify();
    Ok(commented)
}

pub(crate) async fn approve(
    app: Shared<AppState>,
    caller: CallerIdentity,
    draft: PathParams<String>,
    body: JsonBody<DraftReviewRequest>,
) -> Result<Json<DraftReviewResponse>, ApiProblem> {
    decide(app, caller, draft, body, ReviewDecision::Approve).await
}

pub(crate) async fn reject(
    app: Shared<AppState>,
    caller: CallerIdentity,
    draft: PathParams<String>,
    body: JsonBody<DraftReviewRequest>,
) -> Result<Json<DraftReviewResponse>, ApiProblem> {
    decide(app, caller, draft, body, ReviewDecision::Reject).await
}

pub(crate) async fn send_back(
    app: Shared<AppState>,
    caller: CallerIdentity,
    draft: PathParams<String>,
    body: JsonBody<DraftReviewRequest>,
) -> Result<Json<DraftReviewResponse>, ApiProblem> {
    decide(app, caller, draft, body, ReviewDecision::SendBack).await
}

async fn decide(
    Shared(app): Shared<AppState>,
    caller: CallerIdentity,
    PathParams(draft): PathParams<String>,
    JsonBody(request): JsonBody<DraftReviewRequest>,
    decision: ReviewDecision,
) -> Result<Json<DraftReviewResponse>, ApiProblem> {
    caller.may_with(AccessScope::Review, &RunOwner::local())?;
    let id = id_of(&draft)?;
    let seal = seal_of("seal", &request.seal)?;
    let confirmed = request.confirm.as_deref().map(|text| seal_of("confirm", text)).transpose()?;
    let amendments = amendments_of(request.files.unwrap_or_default())?;
    if decision != ReviewDecision::Approve && !amendments.is_empty() {
        return Err(ApiProblem::bad_request("`files` is only for approvals"));
    }
    let reason = bounded("reason", request.reason.unwrap_or_default(), MAX_REASON_CHARS)?;
    let person = reviewer(&app, &caller).await?;
    let reviewed = blocking(app.clone(), move |app| {
        let (one, _) = app.workspaces.find(id)?;
        if decision == ReviewDecision::Approve
            && !one.store.policy().channels.contains(&ReviewChannel::Web)
        {
            return Ok(None);
        }
        if decision == ReviewDecision::Approve && !rows::detail(one, id)?.shows_all {
            return Err(DraftError::Input(
                "the change is too large to show in full here; review it with `moothall review`"
                    .to_owned(),
            ));
        }
        let result = match amendments.is_empty() {
            true => {
                one.store.review(&person, id, seal, decision, &reason).map(AmendResult::Decided)?
            }
            false => one.store.amend(&person, id, seal, &amendments, confirmed, &reason)?,
        };
        rows::review_response(one, id, &result).map(Some)
    });
    let Json(reviewed) = reviewed.await?;
    // Notify open streams immediately instead of at the next poll.
    app.workspaces.notifier.notify();
    reviewed.map(Json).ok_or_else(|| {
        ApiProblem::new(
            StatusCode::FORBIDDEN,
            ErrorCode::ChannelClosed,
            "the policy does not allow approvals in the web UI",
        )
        .with_hint("add `web` to `[review] channels` in the policy, or use `moothall review`")
    })
}

fn seal_of(name: &str, text: &str) -> Result<Sha256Hex, ApiProblem> {
    Sha256Hex::parse(text)
        .ok_or_else(|| ApiProblem::bad_request(format!("`{name}` must be 64 hexadecimal digits")))
}

fn amendments_of(
    files: Vec<DraftAmendmentRequest>,
) -> Result<BTreeMap<DraftId, FileAmendment>, ApiProblem> {
    let mut amendments = BTreeMap::new();
    for DraftAmendmentRequest { draft_id, hunks, content } in files {
        let ids = |hunks: Vec<String>| {
            hunks.iter().map(|text| seal_of("hunks", text)).collect::<Result<_, _>>()
        };
        let amendment = match (hunks, content) {
            (Some(hunks), None) => FileAmendment::Hunks(ids(hunks)?),
            (hunks, Some(text)) => {
                FileAmendment::Content { text, approved: hunks.map(ids).transpose()? }
            }
            (None, None) => {
                return Err(ApiProblem::bad_request("each of `files` needs `hunks` or `content`"));
            }
        };
        if amendments.insert(id_of(&draft_id)?, amendment).is_some() {
            return Err(ApiProblem::bad_request("`files` contains a draft twice"));
        }
    }
    Ok(amendments)
}

/// The reviewer: the caller's token, or the person who started the server.
async fn reviewer(app: &AppState, caller: &CallerIdentity) -> Result<DraftCaller, ApiProblem> {
    let label = token_label(app, caller).await?;
    let name = label.unwrap_or_else(|| app.workspaces.person.clone());
    let account = match caller.owner()?.token {
        Some(id) => Some(PrincipalAccount::Token(id)),
        None => app.workspaces.account.clone(),
    };
    let client = ClientInfo { name: "moothall serve".to_owned(), version: BUILD.to_owned() };
    Ok(DraftCaller {
        principal: Principal { account, ..Principal::human(name) },
        client: Some(client),
    })
}

fn id_of(text: &str) -> Result<DraftId, ApiProblem> {
    DraftId::parse(text).ok_or_else(|| problem(DraftRefusal::Unknown.into()))
}

/// Runs blocking work that may use the drafts of any workspace.
async fn blocking<T: Send + 'static>(
    app: AppState,
    work: impl FnOnce(&AppState) -> Result<T, DraftError> + Send + 'static,
) -> Result<Json<T>, ApiProblem> {
    let all: Vec<Arc<Semaphore>> =
        app.workspaces.all.iter().map(|one| Arc::clone(&one.requests)).collect();
    blocking_with(app, all, work).await
}

/// Runs blocking work under these limits. The thread owns the permits, because it keeps running
/// when its request times out.
async fn blocking_with<T: Send + 'static>(
    app: AppState,
    limits: Vec<Arc<Semaphore>>,
    work: impl FnOnce(&AppState) -> Result<T, DraftError> + Send + 'static,
) -> Result<Json<T>, ApiProblem> {
    let acquire = async {
        let mut permits = Vec::new();
        for limit in limits {
            permits.push(limit.acquire_owned().await.ok()?);
        }
        Some(permits)
    };
    let permits = tokio::time::timeout(PERMIT_TIMEOUT, acquire).await.ok().flatten();
    let permits = permits.ok_or_else(busy)?;
    let done = tokio::task::spawn_blocking(move || {
        let _permits = permits;
        work(&app)
    });
    done.await.map_err(|error| ApiProblem::internal(&error))?.map(Json).map_err(problem)
}

/// Maps errors of the draft store to HTTP problems.
fn problem(error: DraftError) -> ApiProblem {
    let code = error.code();
    let (status, hint) = match code {
        ErrorCode::Busy => return busy(),
        ErrorCode::Internal => return ApiProblem::internal(&error),
        ErrorCode::DraftNotFound => {
            (StatusCode::NOT_FOUND, "list the drafts with `GET /api/drafts`")
        }
        ErrorCode::SealDiffers => {
            (StatusCode::CONFLICT, "reload the draft: it has changed since you read it")
        }
        ErrorCode::PolicyChanged => {
            (StatusCode::CONFLICT, "reload the draft: it was checked again under the new policy")
        }
        ErrorCode::DraftState => (
            StatusCode::CONFLICT,
            "another reviewer decided first, or the agent withdrew the draft",
        ),
        ErrorCode::NotAReviewer => (StatusCode::FORBIDDEN, ""),
        ErrorCode::ContentGone => (StatusCode::GONE, ""),
        _ => (StatusCode::CONFLICT, ""),
    };
    let problem = ApiProblem::new(status, code, error.to_string());
    if hint.is_empty() { problem } else { problem.with_hint(hint) }
}
