//! `/api/drafts`: what workers propose, and what people say about it.
//!
//! The journal of a workspace is the truth, and [`DraftStore`] reads it; nothing is kept here. Its
//! operations wait for locks and the disk, so each runs where waiting is allowed.

mod audit;
mod live;
mod rows;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use moothall_core::ErrorCode;
use moothall_core::Sha256Hex;
use moothall_core::access::{Owner, Scope};
use moothall_core::drafts::{Account, Client, Draft, DraftId, Principal, Refusal, Say, State};
use moothall_core::gate::Channel;
use moothall_workspace::{Caller, DraftError, DraftStore, workspace_id};
use serde::Deserialize;
use tokio::sync::Semaphore;

pub(crate) use self::audit::show as audit;
use self::live::Bell;
pub(crate) use self::live::events;
use crate::access::token_label;
use crate::app::BUILD;
use crate::asked::{Asked, Body, Named};
use crate::control::bounded;
use crate::team_limiter::busy;
use crate::wire::{DraftDetail, DraftList, SaidOnDraft, SayOnDraft, WorkspaceRow};
use crate::{App, Problem, Who};

const USUAL_LIMIT: usize = 200;
const MOST: usize = 1_000;
const MAX_REASON_CHARS: usize = 2_000;

/// Requests that use the drafts of one workspace at once. Each holds a blocking thread, and may wait
/// there for another process that holds the lock of the store.
const MAX_REQUESTS_PER_WORKSPACE: usize = 8;

/// Streams that read the news of one workspace at once.
const MAX_STREAM_READS_PER_WORKSPACE: usize = 2;

/// How long a request waits for others before it is refused as `busy`.
const BUSY_AFTER: Duration = Duration::from_secs(1);

/// The workspaces whose drafts are shown.
#[derive(Debug, Default)]
pub struct Workspaces {
    all: Vec<Workspace>,
    person: String,
    account: Option<Account>,
    bell: Bell,
}

/// A workspace whose drafts are shown.
#[derive(Debug, Clone)]
pub struct Workspace {
    id: String,
    name: String,
    store: Arc<DraftStore>,
    requests: Arc<Semaphore>,
    stream_reads: Arc<Semaphore>,
}

impl Workspace {
    /// The workspace in this folder.
    ///
    /// Errors: those of the folder.
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

impl Workspaces {
    /// These. Whoever comes without a token is this person.
    pub fn new(all: Vec<Workspace>, person: String) -> Self {
        Self { all, person, account: None, bell: Bell::default() }
    }

    /// That person is this user of the machine.
    pub fn with_user(self, uid: u32) -> Self {
        Self { account: Some(Account::User(uid)), ..self }
    }

    fn rows(&self) -> Vec<WorkspaceRow> {
        let row = |one: &Workspace| WorkspaceRow { id: one.id.clone(), name: one.name.clone() };
        self.all.iter().map(row).collect()
    }

    /// Whether the journals of all workspaces can be written, as far as is known. One whose last
    /// write failed is tried.
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

    /// The workspace of a draft, and the draft.
    fn find(&self, id: DraftId) -> Result<(&Workspace, Draft), DraftError> {
        let gate = Caller::new(Principal::gate());
        for one in &self.all {
            match one.store.status(&gate, id) {
                Err(DraftError::Refused(Refusal::Unknown)) => {}
                found => return Ok((one, found?)),
            }
        }
        Err(Refusal::Unknown.into())
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ListQuery {
    state: Option<State>,
    limit: Option<usize>,
}

pub(crate) async fn list(
    Shared(app): Shared<App>,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<DraftList>, Problem> {
    let limit = query.limit.unwrap_or(USUAL_LIMIT).clamp(1, MOST);
    blocking(app, move |app| {
        let gate = Caller::new(Principal::gate());
        let mut found = Vec::new();
        let mut cursor = live::Cursor::default();
        for one in &app.workspaces.all {
            // Before: what happens in between is heard twice rather than never.
            cursor.set(&one.id, one.store.heard(u64::MAX).head);
            let drafts = one.store.list(&gate)?;
            found.extend(drafts.into_iter().map(|draft| (one, draft)));
        }
        let waiting = found.iter().filter(|(_, one)| one.state == State::Escalated).count();
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
    Shared(app): Shared<App>,
    Named(draft): Named<String>,
) -> Result<Json<DraftDetail>, Problem> {
    let id = id_of(&draft)?;
    blocking(app, move |app| {
        let (one, _) = app.workspaces.find(id)?;
        rows::detail(one, id)
    })
    .await
}

pub(crate) async fn approve(
    app: Shared<App>,
    who: Who,
    draft: Named<String>,
    body: Body<SayOnDraft>,
) -> Result<Json<SaidOnDraft>, Problem> {
    say(app, who, draft, body, Say::Approve).await
}

pub(crate) async fn reject(
    app: Shared<App>,
    who: Who,
    draft: Named<String>,
    body: Body<SayOnDraft>,
) -> Result<Json<SaidOnDraft>, Problem> {
    say(app, who, draft, body, Say::Reject).await
}

pub(crate) async fn send_back(
    app: Shared<App>,
    who: Who,
    draft: Named<String>,
    body: Body<SayOnDraft>,
) -> Result<Json<SaidOnDraft>, Problem> {
    say(app, who, draft, body, Say::SendBack).await
}

async fn say(
    Shared(app): Shared<App>,
    who: Who,
    Named(draft): Named<String>,
    Body(request): Body<SayOnDraft>,
    say: Say,
) -> Result<Json<SaidOnDraft>, Problem> {
    who.may_with(Scope::Review, &Owner::local())?;
    let id = id_of(&draft)?;
    let seal = Sha256Hex::parse(&request.seal)
        .ok_or_else(|| Problem::bad_request("a seal is 64 hexadecimal digits"))?;
    let reason = bounded("reason", request.reason.unwrap_or_default(), MAX_REASON_CHARS)?;
    let person = reviewer(&app, &who).await?;
    let said = blocking(app.clone(), move |app| {
        let (one, _) = app.workspaces.find(id)?;
        if say == Say::Approve && !one.store.policy().channels.contains(&Channel::Web) {
            return Ok(None);
        }
        if say == Say::Approve && !rows::detail(one, id)?.shows_all {
            return Err(DraftError::Input(
                "not all of it fits into a page: `moothall review` shows and approves it"
                    .to_owned(),
            ));
        }
        let drafts = one.store.review(&person, id, seal, say, &reason)?;
        let drafts = drafts.iter().map(|draft| rows::row(one, draft)).collect();
        Ok(Some(SaidOnDraft { drafts }))
    });
    let Json(said) = said.await?;
    // Others need not wait until somebody looks.
    app.workspaces.bell.ring();
    said.map(Json).ok_or_else(|| {
        Problem::new(
            StatusCode::FORBIDDEN,
            ErrorCode::ChannelClosed,
            "the policy does not let people approve here",
        )
        .with_hint("its `[review] channels` does not name `web`; `moothall review` may do")
    })
}

/// Who speaks: the token, or the person who started the server.
async fn reviewer(app: &App, who: &Who) -> Result<Caller, Problem> {
    let label = token_label(app, who).await?;
    let name = label.unwrap_or_else(|| app.workspaces.person.clone());
    let account = match who.owner()?.token {
        Some(id) => Some(Account::Token(id)),
        None => app.workspaces.account.clone(),
    };
    let client = Client { name: "moothall serve".to_owned(), version: BUILD.to_owned() };
    Ok(Caller { who: Principal { account, ..Principal::human(name) }, client: Some(client) })
}

fn id_of(text: &str) -> Result<DraftId, Problem> {
    DraftId::parse(text).ok_or_else(|| problem(Refusal::Unknown.into()))
}

/// Runs work on the drafts of all workspaces, which waits for locks and the disk.
async fn blocking<T: Send + 'static>(
    app: App,
    work: impl FnOnce(&App) -> Result<T, DraftError> + Send + 'static,
) -> Result<Json<T>, Problem> {
    let all: Vec<Arc<Semaphore>> =
        app.workspaces.all.iter().map(|one| Arc::clone(&one.requests)).collect();
    blocking_with(app, all, work).await
}

/// Runs work on the drafts of the workspaces with these limits. The permits belong to the thread: a
/// request that times out leaves its thread waiting.
async fn blocking_with<T: Send + 'static>(
    app: App,
    limits: Vec<Arc<Semaphore>>,
    work: impl FnOnce(&App) -> Result<T, DraftError> + Send + 'static,
) -> Result<Json<T>, Problem> {
    let acquire = async {
        let mut permits = Vec::new();
        for limit in limits {
            permits.push(limit.acquire_owned().await.ok()?);
        }
        Some(permits)
    };
    let permits = tokio::time::timeout(BUSY_AFTER, acquire).await.ok().flatten();
    let permits = permits.ok_or_else(busy)?;
    let done = tokio::task::spawn_blocking(move || {
        let _permits = permits;
        work(&app)
    });
    done.await.map_err(|error| Problem::internal(&error))?.map(Json).map_err(problem)
}

/// The one place where errors of the draft store become answers.
fn problem(error: DraftError) -> Problem {
    let code = error.code();
    let (status, hint) = match code {
        ErrorCode::Busy => return busy(),
        ErrorCode::Internal => return Problem::internal(&error),
        ErrorCode::DraftNotFound => (StatusCode::NOT_FOUND, "`GET /api/drafts` lists them"),
        ErrorCode::SealDiffers => {
            (StatusCode::CONFLICT, "look at it again: somebody wrote it meanwhile")
        }
        ErrorCode::PolicyChanged => (StatusCode::CONFLICT, "look at it again: it is judged anew"),
        ErrorCode::DraftState => {
            (StatusCode::CONFLICT, "somebody was faster, or its worker took it back")
        }
        ErrorCode::NotAReviewer => (StatusCode::FORBIDDEN, ""),
        ErrorCode::ContentGone => (StatusCode::GONE, ""),
        _ => (StatusCode::CONFLICT, ""),
    };
    let problem = Problem::new(status, code, error.to_string());
    if hint.is_empty() { problem } else { problem.with_hint(hint) }
}
