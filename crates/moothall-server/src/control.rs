//! Run control: cancel, pause, resume, approve, and review moves.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use moothall_core::ErrorCode;
use moothall_core::access::AccessScope;
use moothall_core::consult::{
    ApprovalRefusal, ConsultResult, MoveApproval, VERDICT_APPROVAL, VerdictRefusal, settle,
};
use moothall_core::{Conclusion, RunId, RunKind};
use moothall_engine::RunRecord;
use moothall_store::{ControlRequest, RunRow, RunState, now_ms};
use serde_json::Value;

use crate::access::token_label;
use crate::dto::{
    ApproveMoveRequest, ApproveMoveResponse, EditMovesRequest, ResumeRunRequest, RunControlResponse,
};
use crate::extract::{JsonBody, OptionalJsonBody, PathParams};
use crate::runs::is_driven;
use crate::{ApiProblem, AppState, CallerIdentity};

/// Length limits for the stored name and note.
const MAX_BY_CHARS: usize = 80;
const MAX_NOTE_CHARS: usize = 2_000;

/// How long a resume waits for the driver of a run that has just paused, which ends its sandboxes
/// before it releases the run.
const RELEASE_WAIT: Duration = Duration::from_secs(5);
const RELEASE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Name that is recorded when the caller gives none.
const WEB_USER: &str = "the web UI user";

pub(crate) async fn cancel(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<(StatusCode, Json<RunControlResponse>), ApiProblem> {
    let row = app.find(&caller, AccessScope::Run, &run).await?;
    refuse_if_over(&row)?;
    let run_id = row.run_id.clone();
    app.run_service.cancel(row).await?;
    accepted(&app, &run_id).await
}

/// Deletes a run that has ended.
pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<StatusCode, ApiProblem> {
    let row = app.find(&caller, AccessScope::Admin, &run).await?;
    if !row.state.is_terminal() {
        let message = "the run has not ended and can still be resumed";
        return Err(ApiProblem::conflict(ErrorCode::RunNotOver, message)
            .with_hint("stop it first with `POST /api/runs/{run}/cancel`"));
    }
    app.run_service.delete(row).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn pause(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<(StatusCode, Json<RunControlResponse>), ApiProblem> {
    let row = app.find(&caller, AccessScope::Run, &run).await?;
    refuse_if_over(&row)?;
    // A request for an inactive run would only take effect on the next resume and stop it
    // immediately.
    if is_driven(&app, &row).await? {
        app.store.request_control(&row.run_id, ControlRequest::Pause).await?;
    }
    accepted(&app, &row.run_id).await
}

pub(crate) async fn resume(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    OptionalJsonBody(request): OptionalJsonBody<ResumeRunRequest>,
) -> Result<(StatusCode, Json<RunControlResponse>), ApiProblem> {
    let mut row = app.find(&caller, AccessScope::Run, &run).await?;
    let deadline = Instant::now() + RELEASE_WAIT;
    loop {
        refuse_if_over(&row)?;
        if !is_driven(&app, &row).await? {
            break;
        }
        if row.state != RunState::Paused || Instant::now() >= deadline {
            return Err(ApiProblem::conflict(ErrorCode::RunBusy, "the run is already active"));
        }
        tokio::time::sleep(RELEASE_CHECK_INTERVAL).await;
        row = app.find(&caller, AccessScope::Run, &run).await?;
    }
    let run_id = row.run_id.clone();
    app.run_service.resume(row, request.unwrap_or_default()).await?;
    accepted(&app, &run_id).await
}

pub(crate) async fn approve(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    JsonBody(request): JsonBody<ApproveMoveRequest>,
) -> Result<Json<ApproveMoveResponse>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Review, &run).await?;
    let record = RunRecord::read(&*app.store, &row.run_id).await?;
    let before = ranked(&record)?;
    let ApproveMoveRequest { move_id, note, by } = request;
    let shown: String = move_id.chars().filter(|c| c.is_ascii_alphanumeric()).take(8).collect();
    if move_id == VERDICT_APPROVAL {
        before.check_verdict_needs_approval(&record.approvals).map_err(verdict_problem)?;
    } else {
        before.check_needs_approval(&record.approvals, &move_id).map_err(|why| match why {
            ApprovalRefusal::Unknown => ApiProblem::not_found(format!("move `{shown}` not found"))
                .with_hint("list the moves with `GET /api/runs/{run}/moves`"),
            ApprovalRefusal::Approved(given) => {
                let message = format!("move `{shown}` was already approved by {}", given.by);
                ApiProblem::conflict(ErrorCode::ApprovedAlready, message)
            }
            ApprovalRefusal::Vetoed(_) | ApprovalRefusal::NotDebated | ApprovalRefusal::Ranked => {
                let message = format!("move `{shown}` needs no approval: it is not held back");
                ApiProblem::conflict(ErrorCode::NotHeld, message)
            }
        })?;
    }
    let by = match token_label(&app, &caller).await? {
        Some(label) => label,
        None => by.unwrap_or_else(|| WEB_USER.to_owned()),
    };
    let approval = MoveApproval {
        move_id: move_id.clone(),
        by: bounded("by", by, MAX_BY_CHARS)?,
        note: bounded("note", note.unwrap_or_default(), MAX_NOTE_CHARS)?,
        at_ms: now_ms(),
    };
    app.store.approve(&row.run_id, approval).await?;
    let record = RunRecord::read(&*app.store, &row.run_id).await?;
    let rank = ranked(&record)?.meaningful_rank(&move_id);
    Ok(Json(ApproveMoveResponse { move_id, rank }))
}

/// Why the verdict of a panel cannot be approved.
fn verdict_problem(why: VerdictRefusal<'_>) -> ApiProblem {
    match why {
        VerdictRefusal::NoVerdict => ApiProblem::not_found("no panel judged this run"),
        VerdictRefusal::Approved(given) => {
            let message = format!("the verdict was already approved by {}", given.by);
            ApiProblem::conflict(ErrorCode::ApprovedAlready, message)
        }
        VerdictRefusal::NotFailed => {
            let message = "the verdict needs no approval: the panel did not fail its controls";
            ApiProblem::conflict(ErrorCode::NotHeld, message)
        }
    }
}

/// Returns the moves of a consultation for review.
pub(crate) async fn moves(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<Json<Value>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    app.run_service.moves(row, None).await.map(Json)
}

/// Edits the moves before they are debated.
pub(crate) async fn change_moves(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    JsonBody(change): JsonBody<EditMovesRequest>,
) -> Result<Json<Value>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Review, &run).await?;
    let by = author(&app, &caller).await?;
    app.run_service.moves(row, Some((change, by))).await.map(Json)
}

/// The author of changes, as far as the server knows.
pub(crate) async fn author(app: &AppState, caller: &CallerIdentity) -> Result<String, ApiProblem> {
    Ok(token_label(app, caller).await?.unwrap_or_else(|| WEB_USER.to_owned()))
}

pub(crate) fn bounded(name: &str, text: String, most: usize) -> Result<String, ApiProblem> {
    let text = text.trim().to_owned();
    match text.chars().count() > most || text.chars().any(|c| c.is_control() && c != '\n') {
        true => Err(ApiProblem::bad_request(format!(
            "`{name}` must have at most {most} characters and no control characters"
        ))),
        false => Ok(text),
    }
}

/// The ranking of a finished consultation, with approvals applied.
fn ranked(record: &RunRecord) -> Result<ConsultResult, ApiProblem> {
    let Some(outcome) = record.row.outcome.clone() else {
        let message = "the run has not finished; moves can be approved only after it ends";
        return Err(ApiProblem::conflict(ErrorCode::RunNotOver, message));
    };
    if !record.row.spec.is_kind(RunKind::Consult) {
        return Err(ApiProblem::conflict(ErrorCode::NoMoves, "the run is not a consultation"));
    }
    match settle(outcome, &record.approvals).conclusion {
        Conclusion::Ranked(ranked) => Ok(*ranked),
        _ => Err(ApiProblem::conflict(ErrorCode::NoMoves, "the run ended without a ranking")),
    }
}

pub(crate) fn refuse_if_over(row: &RunRow) -> Result<(), ApiProblem> {
    match row.state.is_terminal() {
        true => Err(ApiProblem::conflict(
            ErrorCode::RunOver,
            format!("the run is already {}", row.state),
        )),
        false => Ok(()),
    }
}

async fn accepted(
    app: &AppState,
    run_id: &RunId,
) -> Result<(StatusCode, Json<RunControlResponse>), ApiProblem> {
    let row = app.store.run(run_id).await?;
    let row = row.ok_or_else(|| ApiProblem::no_such_run(run_id.as_str()))?;
    Ok((StatusCode::ACCEPTED, Json(RunControlResponse { run_id: row.run_id, state: row.state })))
}
