//! What the API is, for programs (`/api/openapi.json`) and for people (`/api/docs`), made from the
//! router's own table and the types of requests and answers.

mod page;

use axum::Json;
use axum::http::Method;
use axum::response::Html;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::app::BUILD;
use crate::caller::Needs;
use crate::router::{Route, routes};
use crate::{Problem, wire};

/// The document, for programs.
pub(crate) async fn json() -> Json<Value> {
    Json(document())
}

/// The document, for people.
pub(crate) async fn page() -> Html<String> {
    Html(page::page(&document()))
}

/// An event. What else it holds depends on its `type`; `web/src/gen/run.ts` has every kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Envelope")]
pub(crate) struct AnyEvent {
    /// From 1, without gaps.
    seq: u64,
    /// The run.
    run_id: String,
    /// When it was committed, in UTC.
    at: String,
    /// What happened.
    r#type: String,
}

/// Where a run stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "RunState")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum State {
    Running,
    Paused,
    Finished,
    Failed,
    Cancelled,
}

/// A run folded from its events. `web/src/gen/run.ts` has every field.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunView")]
struct AnyView {
    /// The last event that is in it.
    as_of_seq: u64,
    /// What no event says: id, workflow, title, model, caps, committee.
    about: Map<String, Value>,
    /// Whether it goes on: `state` is running, paused, complete, failed or cancelled.
    status: Map<String, Value>,
    /// Model calls and what they used.
    usage: Map<String, Value>,
    /// Layers, agents, moves and debates of a consultation.
    consult: Option<Map<String, Value>>,
    /// Attempts of a program.
    code: Option<Map<String, Value>>,
}

/// What one address takes and gives.
struct Operation {
    summary: &'static str,
    query: &'static [(&'static str, &'static str, &'static str)],
    takes: Option<Schema>,
    gives: Gives,
}

enum Gives {
    Json(&'static str, Schema),
    /// In one of these forms.
    Text(&'static [&'static str]),
    Nothing,
}

const DOCUMENTS: &[&str] = &["application/json", "text/plain"];

const EXPORTS: &[&str] =
    &["application/json", "application/pdf", "text/csv", "text/html", "text/markdown"];

/// The whole document.
pub(crate) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let problem = schemas.subschema_for::<Problem>();
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
            "description": "Runs started, followed event by event, read and controlled.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": schemas.take_definitions(true)},
    })
}

fn described(route: &Route, operation: Operation, problem: &Schema) -> Value {
    let Operation { summary, query, takes, gives } = operation;
    let in_path =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
    );
    let in_query = query.iter().map(|(name, kind, about)| {
        json!({"name": name, "in": "query", "description": about, "schema": {"type": kind}})
    });
    let (status, content) = match gives {
        Gives::Json(status, schema) => (status, json!({"application/json": {"schema": schema}})),
        Gives::Text(kinds) => {
            let content = kinds.iter().map(|kind| ((*kind).to_owned(), json!({})));
            ("200", Value::Object(content.collect()))
        }
        Gives::Nothing => ("204", json!({})),
    };
    let needs = match route.needs {
        Needs::Nothing => "anybody",
        Needs::Scope(scope)
        | Needs::ScopeOnRun(scope)
        | Needs::ScopeOnToken(scope)
        | Needs::ScopeOnServer(scope) => scope.as_str(),
    };
    let mut why_not = json!({"application/problem+json": {"schema": problem}});
    // A person who is refused at the door sees a page, too; limits are the guard's to tell.
    if route.path == "/login" {
        why_not["text/html"] = json!({});
    }
    let mut described = json!({
        "summary": summary,
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": {
            status: {"description": "As asked.", "content": content},
            "default": {"description": "Why not.", "content": why_not},
        },
        "x-scope": needs,
    });
    if let Some(schema) = takes {
        let content = json!({"application/json": {"schema": schema}});
        described["requestBody"] = json!({"required": true, "content": content});
    }
    described
}

/// What an address does. The test beside this knows that none is left out.
fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Option<Operation> {
    let ask = |summary, gives| Operation { summary, query: &[], takes: None, gives };
    let is_post = route.method == Method::POST;
    Some(match route.path {
        "/healthz" => ask("Whether the server is up", Gives::Text(&["text/plain"])),
        "/readyz" => {
            ask("Whether the server can read runs and record drafts", Gives::Text(&["text/plain"]))
        }
        "/metrics" => ask("Numbers for Prometheus", Gives::Text(&["application/openmetrics-text"])),
        "/login" if is_post => ask("Sign in with a token", Gives::Text(&["text/html"])),
        "/login" => Operation {
            query: &[("code", "string", "The code of a link that signs in once")],
            ..ask("Sign in", Gives::Text(&["text/html"]))
        },
        "/api/session" => ask("Who is signed in", answer::<wire::Session>(schemas)),
        "/api/logout" => ask("Sign out", Gives::Nothing),
        "/api/tokens" if is_post => Operation {
            takes: Some(schemas.subschema_for::<wire::MakeToken>()),
            ..ask(
                "Make a token of the team; it is shown once",
                Gives::Json("201", schemas.subschema_for::<wire::MadeToken>()),
            )
        },
        "/api/tokens" => ask("The tokens of the team", answer::<wire::TokenList>(schemas)),
        "/api/tokens/{token}/revoke" => {
            ask("Take a token back", answer::<wire::TokenSummary>(schemas))
        }
        "/api/runs" if is_post => Operation {
            takes: Some(schemas.subschema_for::<wire::StartRun>()),
            ..ask(
                "Start a run; once for an Idempotency-Key",
                Gives::Json("201", schemas.subschema_for::<wire::Started>()),
            )
        },
        "/api/runs" => Operation {
            query: &[
                ("state", "string", "Only those in this state"),
                ("limit", "integer", "At most so many, 50 where nothing is said"),
            ],
            ..ask("Runs, the newest first", answer::<wire::RunList>(schemas))
        },
        "/api/runs/{run}" => ask("Where a run stands", answer::<AnyView>(schemas)),
        "/api/runs/{run}/events" => Operation {
            query: &[("after", "integer", "The number of the last event that is known")],
            ..ask("Events as they happen", Gives::Text(&["text/event-stream"]))
        },
        "/api/runs/{run}/events.json" => Operation {
            query: &[
                ("after", "integer", "The number of the last event that is known"),
                ("limit", "integer", "At most so many, 500 where nothing is said"),
                ("wait", "integer", "Seconds to wait for one where there is nothing new"),
            ],
            ..ask("Events in pages", answer::<wire::EventPage>(schemas))
        },
        "/api/runs/{run}/moves/{move}/threads/{thread}" => {
            ask("One conversation of a debate", answer::<wire::Thread>(schemas))
        }
        "/api/runs/{run}/artifacts" => {
            ask("The documents of a run", answer::<wire::ArtifactList>(schemas))
        }
        "/api/runs/{run}/artifacts/{name}" => ask("One document", Gives::Text(DOCUMENTS)),
        "/api/runs/{run}/facts/{id}" => {
            ask("What a citation leads to", answer::<moothall_core::report::CitedFact>(schemas))
        }
        "/api/runs/{run}/{export}" => {
            ask("The memo or the scores: export.md, .html, .pdf, .csv, .json", Gives::Text(EXPORTS))
        }
        "/api/runs/{run}/cancel" => ask("End a run for good", accepted(schemas)),
        "/api/runs/{run}/pause" => ask("Let a run stand still", accepted(schemas)),
        "/api/runs/{run}/resume" => Operation {
            takes: Some(schemas.subschema_for::<wire::ResumeRun>()),
            ..ask("Let a run go on", accepted(schemas))
        },
        "/api/runs/{run}/approve" => Operation {
            takes: Some(schemas.subschema_for::<wire::ApproveMove>()),
            ..ask("Let a move be ranked that is held back", answer::<wire::Approved>(schemas))
        },
        "/api/runs/{run}/moves" if is_post => Operation {
            takes: Some(schemas.subschema_for::<wire::ChangeMoves>()),
            ..ask("Change moves that wait for a review", answer::<Map<String, Value>>(schemas))
        },
        "/api/runs/{run}/moves" => {
            ask("The moves of a consultation", answer::<Map<String, Value>>(schemas))
        }
        "/api/estimate" => Operation {
            takes: Some(schemas.subschema_for::<wire::StartConsult>()),
            ..ask("What a consultation would take", answer::<Map<String, Value>>(schemas))
        },
        "/api/check" => Operation {
            takes: Some(schemas.subschema_for::<wire::CheckText>()),
            ..ask("A text against what a company filed", answer::<Map<String, Value>>(schemas))
        },
        "/api/facts/{ticker}" => Operation {
            query: &[
                ("as_of", "string", "Only what was filed on or before this day"),
                ("allow_stale", "boolean", "Takes a company that has filed nothing for long"),
            ],
            ..ask("What a company filed", answer::<Map<String, Value>>(schemas))
        },
        "/api/tickers" => Operation {
            query: &[("q", "string", "The beginning of a ticker or a name")],
            ..ask("Companies", answer::<wire::TickerList>(schemas))
        },
        "/api/committees" => ask("Committees", answer::<wire::CommitteeList>(schemas)),
        "/api/settings" => ask("What is configured", answer::<wire::Settings>(schemas)),
        "/api/doctor" => {
            ask("What the sandboxes of the machine are worth", answer::<wire::Doctor>(schemas))
        }
        "/api/drafts" => Operation {
            query: &[
                ("state", "string", "Only those in this state, such as escalated"),
                ("limit", "integer", "At most so many, 200 where nothing is said"),
            ],
            ..ask("Drafts, the one touched last first", answer::<wire::DraftList>(schemas))
        },
        "/api/drafts/events" => Operation {
            query: &[("after", "string", "The cursor of the list, or of the last event")],
            ..ask("What becomes of drafts", Gives::Text(&["text/event-stream"]))
        },
        "/api/drafts/{draft}" => {
            ask("A draft and all that was handed in with it", answer::<wire::DraftDetail>(schemas))
        }
        "/api/drafts/{draft}/approve" => on_draft("Let a draft into the workspace", schemas),
        "/api/drafts/{draft}/reject" => on_draft("Close a draft for good", schemas),
        "/api/drafts/{draft}/send-back" => on_draft("Give a draft back to its worker", schemas),
        "/api/audit" => Operation {
            query: &[
                ("workspace", "string", "The id of a workspace; else the first"),
                ("before", "integer", "Only records before this one"),
                ("limit", "integer", "At most so many, 50 where nothing is said"),
            ],
            ..ask("The journal of drafts, checked", answer::<wire::AuditPage>(schemas))
        },
        "/api/openapi.json" => ask("This document", answer::<Map<String, Value>>(schemas)),
        "/api/docs" => ask("This document for people", Gives::Text(&["text/html"])),
        _ => return None,
    })
}

fn on_draft(summary: &'static str, schemas: &mut SchemaGenerator) -> Operation {
    Operation {
        summary,
        query: &[],
        takes: Some(schemas.subschema_for::<wire::SayOnDraft>()),
        gives: answer::<wire::SaidOnDraft>(schemas),
    }
}

fn answer<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Gives {
    Gives::Json("200", schemas.subschema_for::<T>())
}

fn accepted(schemas: &mut SchemaGenerator) -> Gives {
    Gives::Json("202", schemas.subschema_for::<wire::Accepted>())
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
