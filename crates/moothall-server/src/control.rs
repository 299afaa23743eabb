//! What a person does to a run: cancel, pause, resume, approve, and review its moves.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use moothall_core::ErrorCode;
use moothall_core::access::Scope;
use moothall_core::consult::{Approval, NotHeld, Ranked, settle};
use moothall_core::{Conclusion, RunId, RunKind};
use moothall_engine::RunRecord;
use moothall_store::{RunRow, Wish, now_ms};
use serde_json::Value;

use crate::access::token_label;
use crate::asked::{Body, Named, OptionalBody};
use crate::runs::is_driven;
use crate::wire::{Accepted, ApproveMove, Approved, ChangeMoves, ResumeRun};
use crate::{App, Problem, Who};

/// The longest name and note that are kept.
const MAX_BY_CHARS: usize = 80;
const MAX_NOTE_CHARS: usize = 2_000;

/// Who speaks where nobody says a name.
const WEB_USER: &str = "the user of the web interface";

pub(crate) async fn cancel(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let row = app.find(&who, Scope::Run, &run).await?;
    refuse_if_over(&row)?;
    let run_id = row.run_id.clone();
    app.desk.cancel(row).await?;
    accepted(&app, &run_id).await
}

pub(crate) async fn pause(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let row = app.find(&who, Scope::Run, &run).await?;
    refuse_if_over(&row)?;
    // Nobody would hear the wish, and it would stop whoever lets the run go on.
    if is_driven(&app, &row).await? {
        app.store.ask(&row.run_id, Wish::Pause).await?;
    }
    accepted(&app, &row.run_id).await
}

pub(crate) async fn resume(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
    OptionalBody(request): OptionalBody<ResumeRun>,
) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let row = app.find(&who, Scope::Run, &run).await?;
    refuse_if_over(&row)?;
    if is_driven(&app, &row).await? {
        return Err(Problem::conflict(ErrorCode::RunBusy, "the run goes on already"));
    }
    let run_id = row.run_id.clone();
    app.desk.resume(row, request.unwrap_or_default()).await?;
    accepted(&app, &run_id).await
}

pub(crate) async fn approve(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
    Body(request): Body<ApproveMove>,
) -> Result<Json<Approved>, Problem> {
    let row = app.find(&who, Scope::Review, &run).await?;
    let record = RunRecord::read(&*app.store, &row.run_id).await?;
    let before = ranked(&record)?;
    let ApproveMove { move_id, note, by } = request;
    let shown: String = move_id.chars().filter(|c| c.is_ascii_alphanumeric()).take(8).collect();
    before.waits_for_word(&record.approvals, &move_id).map_err(|why| match why {
        NotHeld::Unknown => Problem::not_found(format!("there is no move `{shown}`")),
        NotHeld::Approved(given) => {
            let words = format!("{shown} is approved already, by {}", given.by);
            Problem::conflict(ErrorCode::ApprovedAlready, words)
        }
        NotHeld::Vetoed(_) | NotHeld::NotDebated | NotHeld::Ranked => {
            let words = format!("{shown} is not held back, so it waits for nobody's word");
            Problem::conflict(ErrorCode::NotHeld, words)
        }
    })?;
    let by = match token_label(&app, &who).await? {
        Some(label) => label,
        None => by.unwrap_or_else(|| WEB_USER.to_owned()),
    };
    let approval = Approval {
        move_id: move_id.clone(),
        by: bounded("by", by, MAX_BY_CHARS)?,
        note: bounded("note", note.unwrap_or_default(), MAX_NOTE_CHARS)?,
        at_ms: now_ms(),
    };
    app.store.approve(&row.run_id, approval).await?;
    let record = RunRecord::read(&*app.store, &row.run_id).await?;
    let after = ranked(&record)?;
    let rank = after.moves().find(|one| one.move_id == move_id).and_then(|one| one.rank);
    Ok(Json(Approved { move_id, rank }))
}

/// The moves of a consultation, as a person who reviews them sees them.
pub(crate) async fn moves(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
) -> Result<Json<Value>, Problem> {
    let row = app.find(&who, Scope::Read, &run).await?;
    app.desk.moves(row, None).await.map(Json)
}

/// Changes them before they are debated.
pub(crate) async fn change_moves(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
    Body(change): Body<ChangeMoves>,
) -> Result<Json<Value>, Problem> {
    let row = app.find(&who, Scope::Review, &run).await?;
    let by = token_label(&app, &who).await?.unwrap_or_else(|| WEB_USER.to_owned());
    app.desk.moves(row, Some((change, by))).await.map(Json)
}

pub(crate) fn bounded(name: &str, text: String, most: usize) -> Result<String, Problem> {
    let text = text.trim().to_owned();
    match text.chars().count() > most || text.chars().any(|c| c.is_control() && c != '\n') {
        true => Err(Problem::bad_request(format!("`{name}` has at most {most} plain characters"))),
        false => Ok(text),
    }
}

/// The ranking of a consultation that has come to its end, settled with what persons said.
fn ranked(record: &RunRecord) -> Result<Ranked, Problem> {
    let Some(outcome) = record.row.outcome.clone() else {
        let words = "only when everything is on the table a person's word counts";
        return Err(Problem::conflict(ErrorCode::RunNotOver, words));
    };
    if !record.row.spec.is_kind(RunKind::Consult) {
        return Err(Problem::conflict(ErrorCode::NoMoves, "the run is no consultation"));
    }
    match settle(outcome, &record.approvals).conclusion {
        Conclusion::Ranked(ranked) => Ok(*ranked),
        _ => Err(Problem::conflict(ErrorCode::NoMoves, "the run has no ranking")),
    }
}

pub(crate) fn refuse_if_over(row: &RunRow) -> Result<(), Problem> {
    match row.state.is_terminal() {
        true => {
            Err(Problem::conflict(ErrorCode::RunOver, format!("the run is {} already", row.state)))
        }
        false => Ok(()),
    }
}

async fn accepted(app: &App, run_id: &RunId) -> Result<(StatusCode, Json<Accepted>), Problem> {
    let row = app.store.run(run_id).await?;
    let row = row.ok_or_else(|| Problem::no_such_run(run_id.as_str()))?;
    Ok((StatusCode::ACCEPTED, Json(Accepted { run_id: row.run_id, state: row.state })))
}
