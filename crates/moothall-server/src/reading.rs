//! What a run has written: conversations, documents, and reports for people who were not there.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use moothall_core::Sha256Hex;
use moothall_core::access::Scope;
use moothall_core::report::{self, Paper};
use moothall_engine::Consultation;

use crate::asked::Named;
use crate::guard::EXPORT_CSP;
use crate::shelf::Reading;
use crate::wire::{ArtifactList, ArtifactRef, Thread, ThreadTurn};
use crate::{App, Problem, Who};

/// How long a PDF export waits for others of its team.
const PDF_EXPORT_WAIT: Duration = Duration::from_secs(20);

/// A conversation of a move with one decision maker.
pub(crate) async fn thread(
    State(app): State<App>,
    who: Who,
    Named((run, move_id, thread)): Named<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let reading = read(&app, &who, &run).await?;
    let consultation = &reading.consultation;
    let seats = &consultation.view.input.committee.decision_makers;
    let place = seats.iter().position(|seat| seat.id.eq_ignore_ascii_case(&thread));
    let none = || Problem::not_found("there is no such thread in this run");
    let place = place.ok_or_else(none)?;
    let debate = consultation.view.debates.get(&move_id);
    let debate = debate.ok_or_else(|| Problem::not_found("this move is not debated yet"))?;
    let log = debate.logs.get(&format!("i{}", place + 1)).ok_or_else(none)?;
    let turns = log.iter().map(|entry| ThreadTurn {
        role: entry.role.clone(),
        round: entry.round,
        text: entry.content.clone(),
    });
    let thread = seats.get(place).map(|seat| seat.id.clone()).unwrap_or_default();
    let answer = Thread { move_id, thread, turns: turns.collect() };
    let text = serde_json::to_string(&answer).map_err(|error| Problem::internal(&error))?;
    Ok(tagged(&headers, "application/json", text.into_bytes()))
}

/// The names of all documents.
pub(crate) async fn artifacts(
    State(app): State<App>,
    who: Who,
    Named(run): Named<String>,
) -> Result<Json<ArtifactList>, Problem> {
    let reading = read(&app, &who, &run).await?;
    let consultation = &reading.consultation;
    let files = report::artifacts(&consultation.view).into_iter();
    let artifacts =
        files.map(|(name, text)| ArtifactRef { name, bytes: text.len() as u64 }).collect();
    Ok(Json(ArtifactList { artifacts }))
}

/// One document.
pub(crate) async fn artifact(
    State(app): State<App>,
    who: Who,
    Named((run, name)): Named<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let reading = read(&app, &who, &run).await?;
    let consultation = &reading.consultation;
    let text = report::artifacts(&consultation.view).remove(&name);
    let text = text.ok_or_else(|| {
        Problem::not_found("there is no such document in this run")
            .with_hint("`GET /api/runs/{run}/artifacts` lists them")
    })?;
    // Words of agents are text for a browser, whatever they look like.
    let kind = match name.ends_with(".json") {
        true => "application/json",
        false => "text/plain; charset=utf-8",
    };
    Ok(tagged(&headers, kind, text.into_bytes()))
}

/// What a citation leads to.
pub(crate) async fn fact(
    State(app): State<App>,
    who: Who,
    Named((run, id)): Named<(String, String)>,
) -> Result<Json<report::CitedFact>, Problem> {
    let reading = read(&app, &who, &run).await?;
    let consultation = &reading.consultation;
    let evidence = consultation.view.evidence();
    let none = || Problem::not_found("nothing in the evidence of this run is called that");
    evidence.and_then(|evidence| report::cited(evidence, &id)).map(Json).ok_or_else(none)
}

/// The memo, the scores or the receipt, as a file.
pub(crate) async fn export(
    State(app): State<App>,
    who: Who,
    Named((run, file)): Named<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = file.strip_prefix("export.").unwrap_or_default();
    if !["md", "csv", "json", "html", "pdf"].contains(&form) {
        return Err(Problem::not_found("there is no such thing of a run")
            .with_hint("exports are export.md, .csv, .json, .html and .pdf"));
    }
    let reading = read(&app, &who, &run).await?;
    let Consultation { view, facts } = &reading.consultation;
    let memo = || report::memo(view, facts);
    let (kind, bytes) = match form {
        "md" => ("text/markdown; charset=utf-8", report::markdown(&memo()).into_bytes()),
        "html" => ("text/html; charset=utf-8", report::html(&memo(), Paper::A4).into_bytes()),
        "csv" => ("text/csv; charset=utf-8", report::scores_csv(view).into_bytes()),
        "pdf" => {
            let team = &reading.record.row.owner.team;
            let _permit = app.pdf_exports.acquire(team, PDF_EXPORT_WAIT).await?;
            ("application/pdf", app.desk.pdf(memo()).await?)
        }
        _ => {
            let pretty = format!("{:#}\n", report::export(view));
            ("application/json", pretty.into_bytes())
        }
    };
    let mut response = tagged(&headers, kind, bytes);
    // HTML is looked at and printed; everything else is a file.
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

async fn read(app: &App, who: &Who, run: &str) -> Result<Arc<Reading>, Problem> {
    let row = app.find(who, Scope::Read, run).await?;
    app.shelf.read(app, &row).await
}

/// Bytes with a tag: whoever has them already is told so.
fn tagged(headers: &HeaderMap, kind: &'static str, bytes: Vec<u8>) -> Response {
    let tag = format!("\"{}\"", Sha256Hex::of(&bytes));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    // A cache that compresses marks a tag as weak; it is the same text.
    let same = known.is_some_and(|known| {
        known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let describe = [(header::ETAG, tag), (header::CACHE_CONTROL, "private, no-cache".to_owned())];
    match same {
        true => (StatusCode::NOT_MODIFIED, describe).into_response(),
        false => (describe, [(header::CONTENT_TYPE, kind)], bytes).into_response(),
    }
}
