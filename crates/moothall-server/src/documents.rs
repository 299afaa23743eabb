//! Content of a run: conversations, documents and exports.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use moothall_core::access::AccessScope;
use moothall_core::consult::fork_changes;
use moothall_core::report::{self, ConsultReport, PaperSize};
use moothall_core::verdict::{AnnouncementBasis, ForecastOutcome};
use moothall_core::{Outcome, Sha256Hex};
use moothall_engine::Consultation;
use moothall_store::RunRow;

use crate::consultation_cache::CachedConsultation;
use crate::dto::{
    ArtifactList, ArtifactRef, ComparedRun, DebateThread, ForecastRow, RunComparison, RunForecasts,
    ThreadTurn,
};
use crate::extract::PathParams;
use crate::guard::EXPORT_CSP;
use crate::run_list::panel_summary;
use crate::times::rfc3339;
use crate::{ApiProblem, AppState, CallerIdentity};

/// How long a PDF export waits for other exports of its team.
const PDF_EXPORT_WAIT: Duration = Duration::from_secs(20);

/// Returns the conversation of a move with one decision maker.
pub(crate) async fn thread(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams((run, move_id, thread)): PathParams<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let reading = read(&app, &caller, &run).await?;
    let consultation = &reading.consultation;
    let seats = &consultation.view.input.committee.decision_makers;
    let seat_index = seats.iter().position(|seat| seat.id.eq_ignore_ascii_case(&thread));
    let none = || ApiProblem::not_found("conversation not found in this run");
    let seat_index = seat_index.ok_or_else(none)?;
    let debate = consultation.view.debates.get(&move_id);
    let debate = debate.ok_or_else(|| {
        ApiProblem::not_found("the move does not exist or has not been debated yet")
    })?;
    let log = debate.logs.get(&format!("i{}", seat_index + 1)).ok_or_else(none)?;
    let turns = log.iter().map(|entry| ThreadTurn {
        role: entry.role.clone(),
        round: entry.round,
        text: entry.content.clone(),
    });
    let thread = seats.get(seat_index).map(|seat| seat.id.clone()).unwrap_or_default();
    let answer = DebateThread { move_id, thread, turns: turns.collect() };
    let text = serde_json::to_string(&answer).map_err(|error| ApiProblem::internal(&error))?;
    Ok(tagged(&headers, "application/json", text.into_bytes()))
}

/// Lists the documents of a run.
pub(crate) async fn artifacts(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<Json<ArtifactList>, ApiProblem> {
    let reading = read(&app, &caller, &run).await?;
    let consultation = &reading.consultation;
    let files = report::artifacts(&consultation.view).into_iter();
    let artifacts =
        files.map(|(name, text)| ArtifactRef { name, bytes: text.len() as u64 }).collect();
    Ok(Json(ArtifactList { artifacts }))
}

/// Returns one document.
pub(crate) async fn artifact(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams((run, name)): PathParams<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let reading = read(&app, &caller, &run).await?;
    let consultation = &reading.consultation;
    let text = report::artifacts(&consultation.view).remove(&name);
    let text = text.ok_or_else(|| {
        ApiProblem::not_found("document not found in this run")
            .with_hint("list the documents with `GET /api/runs/{run}/artifacts`")
    })?;
    // Model output is always served as plain text, never as HTML.
    let kind = match name.ends_with(".json") {
        true => "application/json",
        false => "text/plain; charset=utf-8",
    };
    Ok(tagged(&headers, kind, text.into_bytes()))
}

/// Returns the fact behind a citation.
pub(crate) async fn fact(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams((run, id)): PathParams<(String, String)>,
) -> Result<Json<report::CitedFact>, ApiProblem> {
    let reading = read(&app, &caller, &run).await?;
    let consultation = &reading.consultation;
    let evidence = consultation.view.evidence();
    let none = || ApiProblem::not_found("fact not found in the evidence of this run");
    evidence.and_then(|evidence| report::cited(evidence, &id)).map(Json).ok_or_else(none)
}

/// Returns the memo as data, for pages that show it themselves.
pub(crate) async fn memo(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let reading = read(&app, &caller, &run).await?;
    let Consultation { view, facts } = &reading.consultation;
    let text = serde_json::to_string(&report::memo(view, facts));
    let text = text.map_err(|error| ApiProblem::internal(&error))?;
    Ok(tagged(&headers, "application/json", text.into_bytes()))
}

/// Compares a consultation with a later one.
pub(crate) async fn compare(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams((run, other)): PathParams<(String, String)>,
) -> Result<Json<RunComparison>, ApiProblem> {
    // Checks access to both before reading one.
    let before_row = app.find(&caller, AccessScope::Read, &run).await?;
    let after_row = app.find(&caller, AccessScope::Read, &other).await?;
    let before = app.consultation_cache.read(&app, &before_row).await?;
    let after = app.consultation_cache.read(&app, &after_row).await?;
    let (before, after) = (&before.consultation.view, &after.consultation.view);
    let company = |view: &ConsultReport| {
        let gather = &view.input.gather;
        (gather.ticker.clone(), gather.name.clone())
    };
    Ok(Json(RunComparison {
        before: compared_run(&before_row, before),
        after: compared_run(&after_row, after),
        same_company: company(before) == company(after),
        settings: fork_changes(&before.input, &after.input),
        moves: report::matched_moves(before, after),
    }))
}

fn compared_run(row: &RunRow, view: &ConsultReport) -> ComparedRun {
    let verdict = view.ranked.as_ref().and_then(|ranked| ranked.verdict.as_ref());
    ComparedRun {
        created_at: rfc3339(row.created_at_ms),
        panel: verdict.map(|verdict| panel_summary(&verdict.tiers)),
    }
}

/// Returns the forecasts of the panel with their recorded answers.
pub(crate) async fn forecasts(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams(run): PathParams<String>,
) -> Result<Json<RunForecasts>, ApiProblem> {
    let row = app.find(&caller, AccessScope::Read, &run).await?;
    let recorded = app.store.later_outcomes(&row.run_id).await?;
    let recorded = recorded.unwrap_or_default();
    let verdict = row.outcome.as_ref().and_then(Outcome::panel_verdict);
    let Some(record) = verdict.and_then(|verdict| verdict.forecasts.as_deref()) else {
        return Ok(Json(RunForecasts { questions: Vec::new() }));
    };
    let figures = record.questions.iter().map(|question| {
        let answer = recorded.outcomes.iter().find(|one| one.question == question.id);
        ForecastRow {
            id: question.id.clone(),
            text: question.summary(),
            chance: record.mean_chance(&question.id),
            day: question.first_day.to_string(),
            happened: answer.map(|answer| answer.happened),
            basis: answer.map(ForecastOutcome::summary),
        }
    });
    let announcements = record.announcements.iter().map(|question| {
        let answer = recorded.announcements.iter().find(|one| one.question == question.id);
        ForecastRow {
            id: question.id.clone(),
            text: question.summary(),
            chance: record.mean_chance(&question.id),
            day: question.last_day.to_string(),
            happened: answer.map(|answer| answer.happened),
            basis: answer.map(|answer| match answer.basis {
                AnnouncementBasis::Note => "noted by a person".to_owned(),
                AnnouncementBasis::NoFiling => "no 8-K or 6-K was filed".to_owned(),
            }),
        }
    });
    Ok(Json(RunForecasts { questions: figures.chain(announcements).collect() }))
}

/// Exports the memo, the scores or the receipt as a file.
pub(crate) async fn export(
    State(app): State<AppState>,
    caller: CallerIdentity,
    PathParams((run, file)): PathParams<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    let form = file.strip_prefix("export.").unwrap_or_default();
    if !["md", "csv", "json", "html", "pdf"].contains(&form) {
        return Err(ApiProblem::not_found("unknown resource of a run")
            .with_hint("the exports are export.md, .csv, .json, .html and .pdf"));
    }
    let reading = read(&app, &caller, &run).await?;
    let Consultation { view, facts } = &reading.consultation;
    let memo = || report::memo(view, facts);
    let (kind, bytes) = match form {
        "md" => ("text/markdown; charset=utf-8", report::markdown(&memo()).into_bytes()),
        "html" => ("text/html; charset=utf-8", report::html(&memo(), PaperSize::A4).into_bytes()),
        "csv" => ("text/csv; charset=utf-8", report::scores_csv(view).into_bytes()),
        "pdf" => {
            let team = &reading.record.row.owner.team;
            let _permit = app.pdf_exports.acquire(team, PDF_EXPORT_WAIT).await?;
            ("application/pdf", app.run_service.pdf(memo()).await?)
        }
        _ => {
            let pretty = format!("{:#}\n", report::export(view));
            ("application/json", pretty.into_bytes())
        }
    };
    let mut response = tagged(&headers, kind, bytes);
    // HTML is displayed in the browser; all other formats are downloads.
    if form == "html" {
        let policy = HeaderValue::from_static(EXPORT_CSP);
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    } else {
        let short: String = reading.record.row.run_id.as_str().chars().take(13).collect();
        let name = format!("attachment; filename=\"moothall-{short}.{form}\"");
        if let Ok(name) = HeaderValue::from_str(&name) {
            response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
        }
    }
    Ok(response)
}

async fn read(
    app: &AppState,
    caller: &CallerIdentity,
    run: &str,
) -> Result<Arc<CachedConsultation>, ApiProblem> {
    let row = app.find(caller, AccessScope::Read, run).await?;
    app.consultation_cache.read(app, &row).await
}

/// Responds with an `ETag`, or with 304 if the client already has these bytes.
fn tagged(headers: &HeaderMap, kind: &'static str, bytes: Vec<u8>) -> Response {
    let tag = format!("\"{}\"", Sha256Hex::of(&bytes));
    let if_none_match =
        headers.get(header::IF_NONE_MATCH).and_then(|if_none_match| if_none_match.to_str().ok());
    // A compressing cache marks the tag as weak; the content is the same.
    let same = if_none_match.is_some_and(|if_none_match| {
        if_none_match.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let describe = [(header::ETAG, tag), (header::CACHE_CONTROL, "private, no-cache".to_owned())];
    match same {
        true => (StatusCode::NOT_MODIFIED, describe).into_response(),
        false => (describe, [(header::CONTENT_TYPE, kind)], bytes).into_response(),
    }
}
