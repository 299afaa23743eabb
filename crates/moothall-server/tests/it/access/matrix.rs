//! Tests every endpoint with every role, on own and foreign resources.

use std::collections::BTreeMap;

use moothall_core::access::{AccessScope, CredentialLimits};
use moothall_server::{AccessMode, RoutePermission, routes};
use moothall_store::{AccountStore as _, Credential};
use reqwest::RequestBuilder;

use super::place::{FOREIGN_RUN, NO_RUN, OWN_RUN, Place, told};

/// The permission of every endpoint. The test fails for a new endpoint until it has a row here.
const TABLE: &[(&str, &str, &str)] = &[
    ("GET", "/healthz", "nothing"),
    ("GET", "/readyz", "nothing"),
    ("GET", "/metrics", "admin of the server"),
    ("GET", "/login", "nothing"),
    ("POST", "/login", "nothing"),
    ("GET", "/api/session", "read"),
    ("POST", "/api/logout", "read"),
    ("GET", "/api/tokens", "admin"),
    ("POST", "/api/tokens", "admin"),
    ("POST", "/api/tokens/{token}/revoke", "admin of the token"),
    ("GET", "/api/runs", "read"),
    ("POST", "/api/runs", "run"),
    ("GET", "/api/runs/{run}", "read of the run"),
    ("GET", "/api/runs/{run}/events", "read of the run"),
    ("GET", "/api/runs/{run}/events.json", "read of the run"),
    ("GET", "/api/runs/{run}/moves/{move}/threads/{thread}", "read of the run"),
    ("GET", "/api/runs/{run}/artifacts", "read of the run"),
    ("GET", "/api/runs/{run}/artifacts/{name}", "read of the run"),
    ("GET", "/api/runs/{run}/calls", "read of the run"),
    ("GET", "/api/runs/{run}/calls/{call}", "read of the run"),
    ("GET", "/api/runs/{run}/facts/{id}", "read of the run"),
    ("GET", "/api/runs/{run}/memo", "read of the run"),
    ("GET", "/api/runs/{run}/compare/{other}", "read of the run"),
    ("GET", "/api/runs/{run}/forecasts", "read of the run"),
    ("GET", "/api/runs/{run}/{export}", "read of the run"),
    ("POST", "/api/runs/{run}/cancel", "run of the run"),
    ("POST", "/api/runs/{run}/pause", "run of the run"),
    ("POST", "/api/runs/{run}/resume", "run of the run"),
    ("POST", "/api/runs/{run}/delete", "admin of the run"),
    ("POST", "/api/runs/{run}/fork", "run of the run"),
    ("POST", "/api/runs/{run}/approve", "review of the run"),
    ("GET", "/api/runs/{run}/moves", "read of the run"),
    ("POST", "/api/runs/{run}/moves", "review of the run"),
    ("POST", "/api/estimate", "read"),
    ("POST", "/api/check", "read"),
    ("GET", "/api/facts/{ticker}", "read"),
    ("GET", "/api/tickers", "read"),
    ("GET", "/api/committees", "read"),
    ("GET", "/api/settings", "read"),
    ("GET", "/api/doctor", "admin of the server"),
    ("GET", "/api/drafts", "read of the server"),
    ("GET", "/api/drafts/events", "read of the server"),
    ("GET", "/api/drafts/{draft}", "read of the server"),
    ("GET", "/api/drafts/{draft}/content", "review of the server"),
    ("POST", "/api/drafts/{draft}/comments", "review of the server"),
    ("POST", "/api/drafts/{draft}/approve", "review of the server"),
    ("POST", "/api/drafts/{draft}/reject", "review of the server"),
    ("POST", "/api/drafts/{draft}/send-back", "review of the server"),
    ("POST", "/api/review-link/show", "nothing"),
    ("POST", "/api/review-link/decide", "nothing"),
    ("GET", "/api/audit", "read of the server"),
    ("GET", "/api/openapi.json", "nothing"),
    ("GET", "/api/docs", "nothing"),
];

fn in_words(needs: RoutePermission) -> String {
    match needs {
        RoutePermission::Nothing => "nothing".to_owned(),
        RoutePermission::Scope(scope) => scope.to_string(),
        RoutePermission::ScopeOnRun(scope) => format!("{scope} of the run"),
        RoutePermission::ScopeOnToken(scope) => format!("{scope} of the token"),
        RoutePermission::ScopeOnServer(scope) => format!("{scope} of the server"),
    }
}

#[test]
fn every_route_has_a_row_in_the_permission_table() {
    let there: Vec<(String, &str, String)> = routes()
        .into_iter()
        .map(|route| (route.method.to_string(), route.path, in_words(route.needs)))
        .collect();
    let there: Vec<(&str, &str, &str)> =
        there.iter().map(|(method, path, needs)| (&**method, *path, &**needs)).collect();
    assert_eq!(there, TABLE);
}

/// The roles that send requests.
const ROLES: [&str; 9] =
    ["nobody", "unknown", "expired", "revoked", "read", "run", "review", "admin", "south"];

async fn credentials(place: &Place) -> BTreeMap<&'static str, Option<Credential>> {
    let mut all = BTreeMap::from([("nobody", None)]);
    all.insert("unknown", Some(Credential::token().unwrap()));
    let expired =
        place.limited_token("local", "admin", Some(2), CredentialLimits::default()).await.1;
    all.insert("expired", Some(expired));
    let (id, revoked) = place.token("local", "admin").await;
    place.store.revoke_token(&id, 3).await.unwrap();
    all.insert("revoked", Some(revoked));
    for scope in ["read", "run", "review", "admin"] {
        all.insert(scope, Some(place.token("local", scope).await.1));
    }
    // An administrator of another team.
    all.insert("south", Some(place.token("south", "admin").await.1));
    all
}

/// The response that a role expects from an endpoint: a refusal, or success.
fn expected(role: &str, needs: RoutePermission, is_own: bool) -> &'static str {
    let (scope, on_object) = match needs {
        RoutePermission::Nothing => return "let through",
        RoutePermission::Scope(scope) => (scope, false),
        RoutePermission::ScopeOnRun(scope) | RoutePermission::ScopeOnToken(scope) => (scope, true),
        RoutePermission::ScopeOnServer(_) if is_foreign_server(role, needs) => return "404",
        RoutePermission::ScopeOnServer(scope) => (scope, false),
    };
    let covers = match role {
        "nobody" | "unknown" | "expired" | "revoked" => return "401",
        "read" => scope == AccessScope::Read,
        "run" => matches!(scope, AccessScope::Read | AccessScope::Run),
        "review" => matches!(scope, AccessScope::Read | AccessScope::Review),
        _ => true,
    };
    match (covers, on_object && !is_own) {
        (false, _) => "403",
        (true, true) => "404",
        (true, false) => "let through",
    }
}

/// The server belongs to the team `local`.
fn is_foreign_server(role: &str, needs: RoutePermission) -> bool {
    role == "south" && matches!(needs, RoutePermission::ScopeOnServer(_))
}

fn signed(request: RequestBuilder, credential: &Option<Credential>) -> RequestBuilder {
    match credential {
        Some(token) => request.header("authorization", format!("Bearer {}", token.reveal())),
        None => request,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_gets_the_documented_response_on_every_route() {
    let place = Place::new(AccessMode::Credentials).await;
    let credentials = credentials(&place).await;
    let mut tried = 0;
    for route in routes() {
        for role in ROLES {
            // `south` owns the run that is foreign to the others.
            let whose = [(OWN_RUN, "local"), (FOREIGN_RUN, "south")];
            for (run, owner) in whose {
                let is_own = (role == "south") == (owner == "south");
                let token = place.token(owner, "read").await.0;
                let path = route
                    .path
                    .replace("{run}", run)
                    .replace("{token}", token.as_str())
                    .replace("{other}", run)
                    .replace("{export}", "export.md")
                    .replace("{ticker}", "HLXI")
                    .replace("{id}", "F0:Revenue:FY2025")
                    .replace("{move}", "m1")
                    .replace("{thread}", "D1")
                    .replace("{draft}", "drf_00000000000000000000000000000001")
                    .replace("{name}", "memo.md");
                let is_post = route.method == "POST";
                let mut request = if is_post { place.post(&path) } else { place.get(&path) };
                if path == "/login" && is_post {
                    let form = "application/x-www-form-urlencoded";
                    request = place.client.post(format!("{}/login", place.base));
                    request = request.header("content-type", form).body("token=moot_none");
                }
                let response = signed(request, &credentials[role]).send().await.unwrap();
                let (status, code) = told(response).await;
                let refusals = ["run-not-found", "token-not-found", "not-found"];
                let heard = match (status, code.as_str()) {
                    (401, "-") if path == "/login" => "let through",
                    (401, _) => "401",
                    (403, "scope-missing") => "403",
                    // For an own run without documents, 404 means that the document is missing.
                    (404, code) if refusals.contains(&code) && !is_own => "404",
                    (404, "not-found") if is_foreign_server(role, route.needs) => "404",
                    _ => "let through",
                };
                let wanted = expected(role, route.needs, is_own);
                let what = format!("{} {path} by {role}: {status} {code}", route.method);
                assert_eq!(heard, wanted, "{what}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, routes().len() * ROLES.len() * 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_another_team_is_answered_exactly_like_a_missing_one() {
    let place = Place::new(AccessMode::Credentials).await;
    let (_, admin) = place.token("local", "admin").await;
    let admin = Some(admin);
    for route in
        routes().iter().filter(|route| matches!(route.needs, RoutePermission::ScopeOnRun(_)))
    {
        let mut answers = Vec::new();
        for run in [FOREIGN_RUN, NO_RUN] {
            let path = route.path.replace("{run}", run).replace("{export}", "export.md");
            let is_post = route.method == "POST";
            let request = if is_post { place.post(&path) } else { place.get(&path) };
            let response = signed(request, &admin).send().await.unwrap();
            let status = response.status();
            let mut headers = response.headers().clone();
            headers.remove("date");
            let text = response.text().await.unwrap().replace(run, "RUN");
            answers.push((status, headers, text));
        }
        assert_eq!(answers[0], answers[1], "{} {}", route.method, route.path);
        assert_eq!(answers[0].0.as_u16(), 404, "{} {}", route.method, route.path);
    }
    // A foreign run cannot be compared with an own one.
    let compared = place.get(&format!("/api/runs/{OWN_RUN}/compare/{FOREIGN_RUN}"));
    assert_eq!(signed(compared, &admin).send().await.unwrap().status(), 404);
    // A foreign run does not appear in lists or make an id prefix ambiguous.
    let (_, south) = place.token("south", "read").await;
    let listed = signed(place.get("/api/runs"), &Some(south)).send().await.unwrap();
    let listed = listed.text().await.unwrap();
    assert!(listed.contains(FOREIGN_RUN) && !listed.contains(OWN_RUN), "{listed}");
}

/// Regression: a token that may only start runs could edit moves, which undoes a veto.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_with_edited_moves_needs_the_permission_to_review() {
    let place = Place::new(AccessMode::Credentials).await;
    let credentials = credentials(&place).await;
    let proposal = serde_json::json!({
        "title": "Wait", "thesis": "It costs nothing.", "actions": [], "what_must_be_true": [],
        "evidence": [], "risks": [], "cost": "", "horizon": "", "kill_criteria": [],
    });
    let edits = serde_json::json!([{ "move": "m1", "proposal": proposal }]);
    let body = serde_json::json!({ "from": "debates", "edits": edits }).to_string();
    for (role, refused) in [("run", true), ("admin", false)] {
        let request = place.post(&format!("/api/runs/{OWN_RUN}/fork")).body(body.clone());
        let answer = signed(request, &credentials[role]).send().await.unwrap();
        assert_eq!(told(answer).await.1 == "scope-missing", refused, "{role}");
    }
}
