//! The API description as OpenAPI (`/api/openapi.json`) and HTML (`/api/docs`), generated from the
//! router's table and the request and response types.

mod page;

use axum::Json;
use axum::http::Method;
use axum::response::Html;
use moothall_core::view::{CallDetail, CallPage};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::app::BUILD;
use crate::caller::RoutePermission;
use crate::router::{ApiRoute, routes};
use crate::{ApiProblem, dto};

/// `GET /api/openapi.json`.
pub(crate) async fn json() -> Json<Value> {
    Json(document())
}

/// `GET /api/docs`.
pub(crate) async fn page() -> Html<String> {
    Html(page::page(&document()))
}

/// An event of a run. The other fields depend on `type`; `web/src/gen/run.ts` defines every kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Envelope")]
pub(crate) struct AnyEvent {
    /// Sequence number, from 1 without gaps.
    seq: u64,
    /// Id of the run.
    run_id: String,
    /// Time of the commit, in UTC.
    at: String,
    /// Kind of event.
    r#type: String,
}

/// State of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "RunState")]
#[expect(dead_code, reason = "only used for its schema")]
pub(crate) enum RunStateSchema {
    Running,
    Paused,
    Finished,
    Failed,
    Cancelled,
}

/// Current view of a run, computed from its events. `web/src/gen/run.ts` defines every field.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunView")]
struct AnyView {
    /// Sequence number of the last event included.
    as_of_seq: u64,
    /// Data that is not in the events: id, workflow, title, model, caps, committee.
    about: Map<String, Value>,
    /// Status of the run: `state` is running, paused, complete, failed or cancelled.
    status: Map<String, Value>,
    /// Model calls and their usage.
    usage: Map<String, Value>,
    /// Cost of the answered calls, by purpose and model.
    costs: Vec<Map<String, Value>>,
    /// Stages, agents, moves and debates of a consultation.
    consult: Option<Map<String, Value>>,
    /// Attempts of a program run.
    code: Option<Map<String, Value>>,
}

/// Request and response of one endpoint.
struct ApiOperation {
    summary: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    takes: Option<Schema>,
    gives: ResponseSpec,
}

enum ResponseSpec {
    Json(&'static str, Schema),
    /// A response with one of these media types.
    Text(&'static [&'static str]),
    Nothing,
}

const DOCUMENTS: &[&str] = &["application/json", "text/plain"];

const EXPORTS: &[&str] =
    &["application/json", "application/pdf", "text/csv", "text/html", "text/markdown"];

/// Builds the OpenAPI document.
pub(crate) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<ApiProblem>();
    let mut paths = Map::new();
    for route in routes() {
        let Some(operation) = operation(&route, &mut schemas) else { continue };
        let method = route.method.as_str().to_ascii_lowercase();
        let described = described(&route, operation, &problem);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Value::Object(path) = path {
            path.insert(method, described);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Moothall",
            "version": BUILD,
            "description": "Start, follow, read and control runs; review drafts.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas.take_definitions(true)},
    })
}

fn described(route: &ApiRoute, operation: ApiOperation, problem: &Schema) -> Value {
    let ApiOperation { summary, query, takes, gives } = operation;
    let in_path =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
    );
    let in_query = query.iter().map(|(name, kind, about)| {
        json!({"name": name, "in": "query", "description": about, "schema": {"type": kind}})
    });
    let (status, content) = match gives {
        ResponseSpec::Json(status, schema) => {
            (status, json!({"application/json": {"schema": schema}}))
        }
        ResponseSpec::Text(kinds) => {
            let content = kinds.iter().map(|kind| ((*kind).to_owned(), json!({})));
            ("200", Value::Object(content.collect()))
        }
        ResponseSpec::Nothing => ("204", json!({})),
    };
    let needs = match route.needs {
        RoutePermission::Nothing => "anybody",
        RoutePermission::Scope(scope)
        | RoutePermission::ScopeOnRun(scope)
        | RoutePermission::ScopeOnToken(scope)
        | RoutePermission::ScopeOnServer(scope) => scope.as_str(),
    };
    let mut why_not = json!({"application/problem+json": {"schema": problem}});
    // `/login` answers refused sign-ins with an HTML page.
    if route.path == "/login" {
        why_not["text/html"] = json!({});
    }
    let mut described = json!({
        "summary": summary,
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": {
            status: {"description": "Success.", "content": content},
            "default": {"description": "Error.", "content": why_not},
        },
        "x-scope": needs,
    });
    if let Some(schema) = takes {
        let content = json!({"application/json": {"schema": schema}});
        described["requestBody"] = json!({"required": true, "content": content});
    }
    described
}

/// Describes one endpoint. A test checks that none is missing.
fn operation(route: &ApiRoute, schemas: &mut SchemaGenerator) -> Option<ApiOperation> {
    let basic = |summary, gives| ApiOperation { summary, query: &[], takes: None, gives };
    let is_post = route.method == Method::POST;
    Some(match route.path {
        "/healthz" => basic("Check that the server is up", ResponseSpec::Text(&["text/plain"])),
        "/readyz" => basic(
            "Check that the server can read runs and record drafts",
            ResponseSpec::Text(&["text/plain"]),
        ),
        "/metrics" => basic(
            "Get metrics in OpenMetrics format for Prometheus",
            ResponseSpec::Text(&["application/openmetrics-text"]),
        ),
        "/login" if is_post => basic("Sign in with a token", ResponseSpec::Text(&["text/html"])),
        "/login" => ApiOperation {
            query: &[("code", "string", "The single-use code of a login link")],
            ..basic("Sign in", ResponseSpec::Text(&["text/html"]))
        },
        "/api/session" => basic("Get the current session", answer::<dto::SessionInfo>(schemas)),
        "/api/logout" => basic("Sign out", ResponseSpec::Nothing),
        "/api/tokens" if is_post => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::CreateTokenRequest>()),
            ..basic(
                "Create a token for the team; its secret is returned only once",
                ResponseSpec::Json("201", schemas.subschema_for::<dto::CreateTokenResponse>()),
            )
        },
        "/api/tokens" => basic("List the team's tokens", answer::<dto::TokenList>(schemas)),
        "/api/tokens/{token}/revoke" => {
            basic("Revoke a token", answer::<dto::TokenSummary>(schemas))
        }
        "/api/runs" if is_post => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::StartRunRequest>()),
            ..basic(
                "Start a run; requests with the same Idempotency-Key start it once",
                ResponseSpec::Json("201", schemas.subschema_for::<dto::StartRunResponse>()),
            )
        },
        "/api/runs" => ApiOperation {
            query: &[
                ("state", "string", "Return only runs in this state"),
                ("workflow", "string", "Return only runs of this workflow, such as consult"),
                ("q", "string", "Text in the title or model, or the start of a run's id"),
                ("sort", "string", "newest (default), oldest, title, model or cost"),
                ("offset", "integer", "Number of runs to skip"),
                ("limit", "integer", "Maximum number of runs (default: 50)"),
            ],
            ..basic("List runs", answer::<dto::RunList>(schemas))
        },
        "/api/runs/{run}" => basic("Get the current view of a run", answer::<AnyView>(schemas)),
        "/api/runs/{run}/events" => ApiOperation {
            query: &[("after", "integer", "Sequence number of the last known event")],
            ..basic("Stream events as they happen", ResponseSpec::Text(&["text/event-stream"]))
        },
        "/api/runs/{run}/events.json" => ApiOperation {
            query: &[
                ("after", "integer", "Sequence number of the last known event"),
                ("limit", "integer", "Maximum number of events (default: 500)"),
                ("wait", "integer", "Seconds to wait for a new event"),
            ],
            ..basic("Get a page of events", answer::<dto::EventPage>(schemas))
        },
        "/api/runs/{run}/moves/{move}/threads/{thread}" => {
            basic("Get one conversation of a debate", answer::<dto::DebateThread>(schemas))
        }
        "/api/runs/{run}/calls" => ApiOperation {
            query: &[
                (
                    "role",
                    "string",
                    "Return only calls of this role or member, such as critic or D2",
                ),
                ("stage", "string", "Return only calls of this stage, such as debate"),
                ("move", "string", "Return only calls about this move, such as m7"),
                ("round", "integer", "Return only calls of this round or attempt"),
                ("model", "string", "Return only calls to this model"),
                ("result", "string", "Return only used, degraded, rejected or failed calls"),
                ("retries", "boolean", "Return only retries and calls without an answer"),
                ("text", "string", "Return only calls with this text in the id, reason or answer"),
                ("after", "integer", "Cursor: `next` of the previous page"),
                ("limit", "integer", "Maximum number of calls (default: 1000)"),
            ],
            ..basic(
                "List the model calls of a run as they finished, with sums",
                answer::<CallPage>(schemas),
            )
        },
        "/api/runs/{run}/calls/{call}" => {
            basic("Get one model call with its prompt and answer", answer::<CallDetail>(schemas))
        }
        "/api/runs/{run}/artifacts" => {
            basic("List the documents of a run", answer::<dto::ArtifactList>(schemas))
        }
        "/api/runs/{run}/artifacts/{name}" => {
            basic("Get one document", ResponseSpec::Text(DOCUMENTS))
        }
        "/api/runs/{run}/facts/{id}" => basic(
            "Get the fact behind a citation",
            answer::<moothall_core::report::CitedFact>(schemas),
        ),
        "/api/runs/{run}/memo" => basic(
            "Get the memo as data: headings, paragraphs, tables and citations",
            answer::<moothall_core::report::document::ReportDocument>(schemas),
        ),
        "/api/runs/{run}/compare/{other}" => basic(
            "Compare with another consultation: settings that differ and moves with their ranks",
            answer::<dto::RunComparison>(schemas),
        ),
        "/api/runs/{run}/forecasts" => basic(
            "Get the forecasts of the panel, and what later filings showed",
            answer::<dto::RunForecasts>(schemas),
        ),
        "/api/runs/{run}/{export}" => basic(
            "Export the memo or the scores: export.md, .html, .pdf, .csv, .json",
            ResponseSpec::Text(EXPORTS),
        ),
        "/api/runs/{run}/delete" => {
            basic("Delete a run that has ended, with everything it stored", ResponseSpec::Nothing)
        }
        "/api/runs/{run}/cancel" => basic("Cancel a run", accepted(schemas)),
        "/api/runs/{run}/pause" => basic("Pause a run", accepted(schemas)),
        "/api/runs/{run}/resume" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::ResumeRunRequest>()),
            ..basic("Resume a run", accepted(schemas))
        },
        "/api/runs/{run}/fork" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::ForkRunRequest>()),
            ..basic(
                "Start a consultation from the results of this one, with other settings",
                ResponseSpec::Json("201", schemas.subschema_for::<dto::StartRunResponse>()),
            )
        },
        "/api/runs/{run}/approve" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::ApproveMoveRequest>()),
            ..basic(
                "Approve a held-back move for the ranking",
                answer::<dto::ApproveMoveResponse>(schemas),
            )
        },
        "/api/runs/{run}/moves" if is_post => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::EditMovesRequest>()),
            ..basic("Edit moves that wait for review", answer::<Map<String, Value>>(schemas))
        },
        "/api/runs/{run}/moves" => {
            basic("List the moves of a consultation", answer::<Map<String, Value>>(schemas))
        }
        "/api/estimate" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::StartConsultRequest>()),
            ..basic(
                "Estimate the calls and cost of a consultation",
                answer::<Map<String, Value>>(schemas),
            )
        },
        "/api/check" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::CheckTextRequest>()),
            ..basic(
                "Check a text against a company's filings",
                answer::<Map<String, Value>>(schemas),
            )
        },
        "/api/facts/{ticker}" => ApiOperation {
            query: &[
                ("as_of", "string", "Use only filings made on or before this day"),
                ("allow_stale", "boolean", "Accept a company without recent filings"),
            ],
            ..basic("Get the facts a company filed", answer::<Map<String, Value>>(schemas))
        },
        "/api/tickers" => ApiOperation {
            query: &[("q", "string", "Start of a ticker or company name")],
            ..basic("Companies", answer::<dto::TickerList>(schemas))
        },
        "/api/committees" => basic("Committees", answer::<dto::CommitteeList>(schemas)),
        "/api/settings" => {
            basic("Get the server's settings", answer::<dto::ServerSettings>(schemas))
        }
        "/api/doctor" => basic(
            "Test the isolation of this machine's sandboxes",
            answer::<dto::DoctorResponse>(schemas),
        ),
        "/api/drafts" => ApiOperation {
            query: &[
                ("state", "string", "Return only drafts in this state, such as escalated"),
                ("limit", "integer", "Maximum number of drafts (default: 200)"),
            ],
            ..basic("List drafts, most recently changed first", answer::<dto::DraftList>(schemas))
        },
        "/api/drafts/events" => ApiOperation {
            query: &[("after", "string", "Cursor from the list or from the last event")],
            ..basic("Stream draft changes", ResponseSpec::Text(&["text/event-stream"]))
        },
        "/api/drafts/{draft}" => basic(
            "Get a draft and all drafts submitted with it",
            answer::<dto::DraftDetail>(schemas),
        ),
        "/api/drafts/{draft}/content" => basic(
            "Get the proposed content of a draft, for editing it before an approval",
            answer::<dto::DraftContent>(schemas),
        ),
        "/api/drafts/{draft}/comments" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::DraftCommentRequest>()),
            ..on_draft("Comment on a line of a draft", schemas)
        },
        "/api/drafts/{draft}/approve" => on_draft("Approve a draft, or a part of it", schemas),
        "/api/drafts/{draft}/reject" => on_draft("Reject a draft", schemas),
        "/api/drafts/{draft}/send-back" => on_draft("Send a draft back for changes", schemas),
        "/api/review-link/show" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::ReviewLinkRequest>()),
            ..basic("Get the draft of a review link", answer::<dto::ReviewLinkDetail>(schemas))
        },
        "/api/review-link/decide" => ApiOperation {
            takes: Some(schemas.subschema_for::<dto::ReviewLinkDecision>()),
            ..basic(
                "Decide about the draft of a review link, which uses the link up",
                answer::<dto::DraftReviewResponse>(schemas),
            )
        },
        "/api/audit" => ApiOperation {
            query: &[
                ("workspace", "string", "Id of a workspace (default: the first)"),
                ("before", "integer", "Return only records before this sequence number"),
                ("limit", "integer", "Maximum number of records (default: 50)"),
            ],
            ..basic(
                "Verify the draft journal and list its records",
                answer::<dto::AuditPage>(schemas),
            )
        },
        "/api/openapi.json" => {
            basic("Get this document as JSON", answer::<Map<String, Value>>(schemas))
        }
        "/api/docs" => basic("Get this document as HTML", ResponseSpec::Text(&["text/html"])),
        _ => return None,
    })
}

fn on_draft(summary: &'static str, schemas: &mut SchemaGenerator) -> ApiOperation {
    ApiOperation {
        summary,
        query: &[],
        takes: Some(schemas.subschema_for::<dto::DraftReviewRequest>()),
        gives: answer::<dto::DraftReviewResponse>(schemas),
    }
}

fn answer<T: JsonSchema>(schemas: &mut SchemaGenerator) -> ResponseSpec {
    ResponseSpec::Json("200", schemas.subschema_for::<T>())
}

fn accepted(schemas: &mut SchemaGenerator) -> ResponseSpec {
    ResponseSpec::Json("202", schemas.subschema_for::<dto::RunControlResponse>())
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
