//! `/api/runs`: starts runs and returns their current view.

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use moothall_core::access::AccessScope;
use moothall_core::consult::{Committee, ForkParent, committee, fork_changes, group_by_model};
use moothall_core::debate::BaselineScores;
use moothall_core::view::{CommitteeView, DoNothingView, ForkView, MemberView, RunInfo, RunView};
use moothall_core::{Conclusion, RunSpec, Sha256Hex};
use moothall_store::{RunRow, StoredEvent};
use serde::Serialize;

use crate::control::author;
use crate::dto::{ForkRunRequest, StartRunRequest, StartRunResponse};
use crate::extract::{JsonBody, PathParams};
use crate::feed::envelope;
use crate::times::rfc3339;
use crate::{
    ApiProblem, AppState, CallerIdentity, StartIdempotencyKey, StartOutcome, StartRequest,
    StartTerms,
};

/// Events applied per read from the store.
const PAGE_EVENTS: u32 = 1000;

/// Requests larger than this contain files.
const LARGE_BYTES: usize = 1 << 20;

/// How long a request with files waits for others of its team.
const UPLOAD_WAIT: Duration = Duration::from_secs(20);

/// Maximum length of an idempotency key.
const MAX_KEY_BYTES: usize = 200;

/// Reports whether a run that has not ended is active in some process.
pub(crate) async fn is_driven(app: &AppState, row: &RunRow) -> Result<bool, ApiProblem> {
    if row.state.is_terminal() {
        return Ok(false);
    }
    Ok(!app.run_service.driven(vec![row.clone()]).await?.is_empty())
}

/// Returns the view of a run computed from its events. Clients continue with the events after
/// `as_of_seq`.
pub(crate) async fn snapshot(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<Json<RunView>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    let driven = is_driven(&app, &row).await?;
    let mut view = RunView::empty(about(&app, &row, driven).await?);
    catch_up(&app, &mut view).await?;
    Ok(Json(view))
}

/// Applies all events that a view does not include yet.
pub(crate) async fn catch_up(app: &AppState, view: &mut RunView) -> Result<(), ApiProblem> {
    let run_id = view.about.run_id.clone();
    loop {
        let page = app.store.events(&run_id, view.as_of_seq, PAGE_EVENTS).await?;
        if page.is_empty() {
            return Ok(());
        }
        page.iter().for_each(|stored: &StoredEvent| view.apply(&envelope(&run_id, stored)));
    }
}

pub(crate) fn parent(row: &RunRow) -> Option<&ForkParent> {
    row.spec.consult()?.input.parent.as_ref()
}

/// The run that a fork continues, with the settings that differ.
async fn fork_view(app: &AppState, row: &RunRow) -> Result<Option<ForkView>, ApiProblem> {
    let (Some(parent), Some(fork)) = (parent(row), row.spec.consult()) else { return Ok(None) };
    // The parent may have been deleted.
    let before = app.store.run(&parent.run).await?;
    let before = before.as_ref().and_then(|row| row.spec.consult());
    let changes = before.map(|before| fork_changes(&before.input, &fork.input));
    Ok(Some(ForkView { run_id: parent.run.clone(), from: parent.from, changes }))
}

pub(crate) async fn about(
    app: &AppState,
    row: &RunRow,
    driven: bool,
) -> Result<RunInfo, ApiProblem> {
    let parent = fork_view(app, row).await?;
    let settings = row.spec.read().ok().map(RunSpec::settings);
    let consult = row.spec.consult().map(|spec| &spec.input);
    Ok(RunInfo {
        run_id: row.run_id.clone(),
        workflow: row.spec.workflow().to_owned(),
        title: row.title.clone(),
        model: row.model.clone(),
        models: consult
            .filter(|input| input.distinct_models().len() > 1)
            .map(|input| group_by_model(&input.member_models())),
        build: row.build.clone(),
        created_at: rfc3339(row.created_at_ms),
        // A resume may raise the cap set at the start.
        cap_micro_usd: row.cap.or_else(|| settings.and_then(|settings| settings.budget_micro_usd)),
        cap_tokens: settings.and_then(|settings| settings.budget_tokens),
        committee: consult.map(|input| seats(&input.committee)),
        pauses_after_moves: consult.is_some_and(|input| input.terms.pause_after_moves),
        driven,
        parent,
        do_nothing: do_nothing(row),
    })
}

/// The score of doing nothing, if a finished consultation has one from every decision maker.
fn do_nothing(row: &RunRow) -> Option<DoNothingView> {
    let Conclusion::Ranked(ranked) = &row.outcome.as_ref()?.conclusion else { return None };
    let scores = ranked.do_nothing.as_ref().filter(|scores| scores.is_scored())?;
    let BaselineScores { total_score, top_score, spread, scorecards, .. } = scores;
    let cards = scorecards.iter().map(|(id, card)| (id.clone(), card.scores.clone()));
    Some(DoNothingView {
        score: *total_score,
        out_of: *top_score,
        spread: *spread,
        breakdown: cards.collect(),
    })
}

/// The committee that a consultation was started with.
fn seats(committee: &Committee) -> CommitteeView {
    let seat = |seat: &committee::CommitteeMember| MemberView {
        id: seat.id.clone(),
        name: seat.name.clone(),
    };
    let metric =
        |one: &committee::ScoreMetric| MemberView { id: one.id.clone(), name: one.name.clone() };
    CommitteeView {
        critic: seat(&committee.critic),
        decision_makers: committee.decision_makers.iter().map(seat).collect(),
        metrics: committee.metrics.iter().map(metric).collect(),
        name: committee.name.clone(),
    }
}

/// Starts a run. A request with an `Idempotency-Key` can be repeated, even after a crash, and
/// starts one run.
pub(crate) async fn start(
    State(app): State<AppState>,
    caller: CallerIdentity,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiProblem> {
    // Requests with files are held in memory, so their number is limited.
    let _permit = match is_large(&headers) {
        true => Some(app.uploads.acquire(&caller.owner()?.team, UPLOAD_WAIT).await?),
        false => None,
    };
    let JsonBody(request) = JsonBody::<StartRunRequest>::from_request(request, &app).await?;
    let terms = terms(&caller, &headers, &request)?;
    app.run_service.start(StartRequest { request, terms }).await.map(started)
}

/// Starts a fork of a consultation, with an `Idempotency-Key` like [`start`].
pub(crate) async fn fork(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ForkRunRequest>,
) -> Result<Response, ApiProblem> {
    let parent = app.find(&caller, AccessScope::Run, &run).await?;
    // An edit is a review of the moves.
    if !request.edits.is_empty() {
        caller.may_with(AccessScope::Review, &parent.owner)?;
    }
    let terms = terms(&caller, &headers, &(&parent.run_id, &request))?;
    let by = author(&app, &caller).await?;
    app.run_service.fork(parent, request, by, terms).await.map(started)
}

fn terms(
    caller: &CallerIdentity,
    headers: &HeaderMap,
    request: &impl Serialize,
) -> Result<StartTerms, ApiProblem> {
    let text = serde_json::to_string(request).map_err(|error| ApiProblem::internal(&error))?;
    let request_sha256 = Sha256Hex::of(text.as_bytes());
    let idempotency_key = key(headers)?.map(|key| StartIdempotencyKey { key, request_sha256 });
    Ok(StartTerms { owner: caller.owner()?, idempotency_key })
}

/// Whether a body is larger than usual, or of unknown length.
fn is_large(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    length.and_then(|length| length.parse().ok()).is_none_or(|length: usize| length > LARGE_BYTES)
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ApiProblem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY_BYTES => Ok(Some(key.to_owned())),
        _ => {
            Err(ApiProblem::bad_request("`Idempotency-Key` must have 1 to 200 visible characters"))
        }
    }
}

fn started(outcome: StartOutcome) -> Response {
    let (status, run_id) = match outcome {
        StartOutcome::Now(run_id) => (StatusCode::CREATED, run_id),
        StartOutcome::Before(run_id) => (StatusCode::OK, run_id),
    };
    let location = [(header::LOCATION, format!("/api/runs/{run_id}"))];
    (status, location, Json(StartRunResponse { run_id })).into_response()
}
