//! Login links, tokens, cookies, cross-site requests and limits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use moothall_core::access::{AccessScope, CredentialLimits, TeamName};
use moothall_core::{MicroUsd, Sha256Hex};
use moothall_server::{AccessMode, login_code, login_link};
use moothall_store::{AccountStore as _, MAX_LABEL_BYTES, TeamFilter};
use reqwest::Response;
use serde_json::Value;
use tokio::task::JoinSet;

use super::place::{OWN_RUN, Place, told};

/// The session cookie of a response, in the form a browser sends it back.
fn cookie(response: &Response) -> String {
    let given = response.headers()["set-cookie"].to_str().unwrap();
    assert!(given.contains("; HttpOnly") && given.contains("; SameSite=Strict"), "{given}");
    assert!(given.contains("; Max-Age=604800"), "seven days: {given}");
    given.split(';').next().unwrap().to_owned()
}

async fn link(place: &Place) -> String {
    let code = login_code(&*place.store, TeamName::local(), AccessScope::Admin).await.unwrap();
    login_link(&place.base, &code)
}

/// A browser that opened the login link: its cookie and CSRF token.
async fn browser(place: &Place) -> (String, String) {
    let opened = place.client.get(link(place).await).send().await.unwrap();
    let cookie = cookie(&opened);
    let session = place.get("/api/session").header("cookie", &cookie).send().await.unwrap();
    let session: Value = serde_json::from_str(&session.text().await.unwrap()).unwrap();
    (cookie, session["page_word"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_login_link_works_once_and_its_code_stays_in_no_url() {
    let place = Place::new(AccessMode::Credentials).await;
    let link = link(&place).await;
    let opened = place.client.get(&link).send().await.unwrap();
    assert_eq!(opened.status(), 303);
    assert_eq!(opened.headers()["location"], "/");
    assert_eq!(opened.headers()["cache-control"], "no-store");
    assert_eq!(opened.headers()["referrer-policy"], "same-origin");
    let cookie = cookie(&opened);
    // The cookie contains a different secret than the link.
    let (_, code) = link.split_once("code=").unwrap();
    assert!(!cookie.contains(code), "{cookie}");
    let runs = place.get("/api/runs").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(told(runs).await, (200, "-".to_owned()));

    let again = place.client.get(&link).send().await.unwrap();
    assert_eq!(again.status(), 401);
    assert!(again.headers().get("set-cookie").is_none());
    let page = again.text().await.unwrap();
    assert!(page.contains("moothall login") && !page.contains(code), "{page}");
}

#[tokio::test]
async fn a_session_created_with_a_token_ends_with_the_token() {
    let place = Place::new(AccessMode::Credentials).await;
    let (id, token) = place.token("south", "read").await;
    let enter = async |text: &str| {
        let request = place.client.post(format!("{}/login", place.base));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(format!("token={text}")).send().await.unwrap()
    };
    assert_eq!(enter("moot_nothing").await.status(), 401);
    let entered = enter(token.reveal()).await;
    assert_eq!(entered.status(), 303);
    let cookie = cookie(&entered);
    let session = place.get("/api/session").header("cookie", &cookie).send().await.unwrap();
    let session: Value = serde_json::from_str(&session.text().await.unwrap()).unwrap();
    assert_eq!([&session["team"], &session["scopes"][0]], ["south", "read"]);
    place.store.revoke_token(&id, 5).await.unwrap();
    let runs = place.get("/api/runs").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(told(runs).await, (401, "unknown-credential".to_owned()));
}

/// Regression: an administrator's token limited to one day and one dollar could create tokens
/// without limits for a year.
#[tokio::test]
async fn a_token_can_create_only_tokens_with_at_most_its_permissions() {
    let place = Place::new(AccessMode::Credentials).await;
    let limits = CredentialLimits {
        runs_at_once: Some(1),
        usd_a_day: Some(MicroUsd::new(1_000_000)),
        requests_a_minute: None,
    };
    let ends =
        u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap() + 60_000;
    let (_, maker) = place.limited_token("south", "admin", Some(ends), limits).await;
    let make = async |body: &str| {
        let bearer = format!("Bearer {}", maker.reveal());
        let request = place.post("/api/tokens").header("authorization", bearer);
        told(request.body(body.to_owned()).send().await.unwrap()).await
    };
    let wanted = r#"{"scopes":["admin"],"days":366,"runs_at_once":9,"micro_usd_a_day":9000000}"#;
    assert_eq!(make(wanted).await, (201, "-".to_owned()));
    assert_eq!(make(r#"{"scopes":["read"],"days":1}"#).await, (201, "-".to_owned()));
    // The longest label is accepted, and no longer one.
    for (bytes, expected) in [(MAX_LABEL_BYTES, 201), (MAX_LABEL_BYTES + 1, 400)] {
        let label = "x".repeat(bytes);
        let body = format!(r#"{{"scopes":["read"],"days":1,"label":"{label}"}}"#);
        assert_eq!(make(&body).await.0, expected, "{bytes} bytes");
    }
    // A misspelled limit is rejected.
    assert_eq!(make(r#"{"scopes":["read"],"days":1,"run_at_once":1}"#).await.0, 400);
    let rows = place.store.tokens(TeamFilter::Only("south".parse().unwrap())).await.unwrap();
    let mut made: Vec<_> = rows.iter().filter(|row| row.created_at_ms > 1).collect();
    made.sort_by_key(|row| row.created_at_ms);
    assert_eq!(made.len(), 3);
    for row in made {
        assert_eq!(row.limits, CredentialLimits { requests_a_minute: Some(600), ..limits });
        assert_eq!(row.expires_at_ms, Some(ends));
    }
}

#[tokio::test]
async fn a_change_with_a_session_cookie_needs_the_csrf_token() {
    let place = Place::new(AccessMode::Credentials).await;
    let (cookie, word) = browser(&place).await;
    let tokens = || place.post("/api/tokens").header("cookie", &cookie);
    let wanted = r#"{"scopes":["read"],"days":1}"#;
    let missing = Some((403, "page-word-missing".to_owned()));
    assert_eq!(Some(told(tokens().body(wanted).send().await.unwrap()).await), missing);
    let other = tokens().header("x-moothall-page", word.replace('a', "b") + "0").body(wanted);
    assert_eq!(Some(told(other.send().await.unwrap()).await), missing);
    let said = tokens().header("x-moothall-page", &word).body(wanted).send().await.unwrap();
    assert_eq!(said.status(), 201);
    let made: Value = serde_json::from_str(&said.text().await.unwrap()).unwrap();
    let rows = place.store.tokens(TeamFilter::All).await.unwrap();
    let row = rows.iter().find(|row| row.id.as_str() == made["id"]).unwrap();
    assert_eq!(row.expires_at_ms, Some(row.created_at_ms + 24 * 60 * 60 * 1_000));
    // A program with a token has no cookie that another page could abuse.
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let read = place.get("/api/runs").header("authorization", &token).send().await.unwrap();
    assert_eq!(read.status(), 200);
}

#[tokio::test]
async fn requests_from_other_sites_are_refused_even_with_the_cookie() {
    let place = Place::new(AccessMode::Credentials).await;
    let (cookie, word) = browser(&place).await;
    let with = |name: &'static str, value: &str| {
        place
            .post("/api/logout")
            .header("cookie", &cookie)
            .header("x-moothall-page", &word)
            .header(name, value)
    };
    for (name, value, expected) in [
        ("origin", "http://evil.example", (403, "origin-refused")),
        ("origin", "null", (403, "origin-refused")),
        ("sec-fetch-site", "cross-site", (403, "origin-refused")),
        ("sec-fetch-site", "same-site", (403, "origin-refused")),
        // The host name in a DNS rebinding attack.
        ("host", "evil.example", (421, "host-refused")),
    ] {
        let (status, code) = told(with(name, value).send().await.unwrap()).await;
        assert_eq!((status, code.as_str()), expected, "{name}: {value}");
    }
    let rebound =
        place.get("/api/runs").header("cookie", &cookie).header("host", "evil.example:80");
    assert_eq!(told(rebound.send().await.unwrap()).await.0, 421);
    let (_, session) = cookie.split_once('=').unwrap();
    assert!(place.is_signed_in(session).await);
    // A request from the server's own page succeeds.
    let own = with("origin", &place.base).send().await.unwrap();
    assert_eq!(own.status(), 204);
    assert!(own.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert!(!place.is_signed_in(session).await);
}

#[tokio::test]
async fn a_refused_sign_in_form_shows_an_html_page() {
    let place = Place::new(AccessMode::Credentials).await;
    for (name, value, status, text) in [
        ("origin", "null", 403, "came from a page of another site"),
        ("host", "evil.example", 421, "does not accept the host name"),
    ] {
        let request = place.post("/login").header("sec-fetch-dest", "document");
        let refused = request.header(name, value).send().await.unwrap();
        assert_eq!(refused.status(), status);
        assert_eq!(refused.headers()["content-type"], "text/html; charset=utf-8");
        let page = refused.text().await.unwrap();
        assert!(page.contains(text) && !page.contains("evil"), "{page}");
    }
}

#[tokio::test]
async fn malformed_credentials_are_refused() {
    let place = Place::new(AccessMode::Credentials).await;
    let (_, token) = place.token("local", "read").await;
    let token = token.reveal();
    let ask = async |values: &[String]| {
        let request = values
            .iter()
            .fold(place.get("/api/runs"), |request, value| request.header("authorization", value));
        told(request.send().await.unwrap()).await.0
    };
    assert_eq!(ask(&[format!("Bearer {token}")]).await, 200);
    assert_eq!(ask(&[format!("bearer {token}")]).await, 200);
    for wrong in [
        vec![token.to_owned()],
        vec![format!("Basic {token}")],
        vec![format!("Bearer {}", token.to_uppercase())],
        vec![format!("Bearer {token}0")],
        vec![format!("Bearer {}", &token[..68])],
        vec![format!("Bearer {token}"), "Bearer moot_other".to_owned()],
        vec!["Bearer ' OR 1=1 --".to_owned()],
        vec![format!("Bearer moot_{}", "0".repeat(4_000))],
    ] {
        assert_eq!(ask(&wrong).await, 401, "{wrong:?}");
    }
    // Tokens in the URL are not accepted.
    let in_address = place.get(&format!("/api/runs?token={token}")).send().await.unwrap();
    assert_eq!(in_address.status(), 401);
}

#[tokio::test]
async fn requests_beyond_the_rate_limit_of_a_token_are_refused() {
    let place = Place::new(AccessMode::Credentials).await;
    let three = CredentialLimits { requests_a_minute: Some(3), ..CredentialLimits::default() };
    let (_, slow) = place.limited_token("local", "read", None, three).await;
    let (_, other) = place.token("local", "read").await;
    let ask = async |token: &str| {
        let bearer = format!("Bearer {token}");
        place.get("/api/runs").header("authorization", bearer).send().await.unwrap()
    };
    for _ in 0..3 {
        assert_eq!(ask(slow.reveal()).await.status(), 200);
    }
    let refused = ask(slow.reveal()).await;
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=20).contains(&seconds), "{seconds}");
    assert_eq!(told(refused).await, (429, "too-many-requests".to_owned()));
    assert_eq!(ask(other.reveal()).await.status(), 200);
}

#[tokio::test]
async fn a_server_without_authentication_still_refuses_other_sites() {
    let place = Place::new(AccessMode::Everyone).await;
    assert_eq!(place.get("/api/runs").send().await.unwrap().status(), 200);
    let evil = place.get("/api/runs").header("origin", "http://evil.example");
    assert_eq!(evil.send().await.unwrap().status(), 403);
    // An invalid credential is treated like none.
    let wrong = place.get("/api/runs").header("authorization", "Bearer moot_0");
    assert_eq!(wrong.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn hostile_text_is_returned_as_data_and_refused_in_labels() {
    let place = Place::new(AccessMode::Everyone).await;
    for hostile in [
        "\u{1b}]0;owned\u{7}",
        "<script>alert(1)</script>",
        "\u{202e}gnp.exe",
        "=cmd|'/c calc'!A1",
        "..%2f..%2fetc%2fpasswd",
    ] {
        let path: String = hostile.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for address in [format!("/api/runs/{path}"), format!("/api/tokens/{path}/revoke")] {
            let is_run = address.starts_with("/api/runs");
            let request = if is_run { place.get(&address) } else { place.post(&address) };
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 404, "{hostile:?}");
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
            let text = response.text().await.unwrap();
            assert!(!text.chars().any(|c| c.is_control()), "{text:?}");
        }
        // Labels are shown in terminals and tables.
        let body = serde_json::json!({ "label": hostile, "scopes": ["read"], "days": 1 });
        let made = place.post("/api/tokens").body(body.to_string()).send().await.unwrap();
        let plain = !hostile.chars().any(char::is_control);
        assert_eq!(made.status().as_u16(), if plain { 201 } else { 400 }, "{hostile:?}");
    }
}

/// Regression: the CSRF token was derived from the cookie, which browsers also send to other
/// servers on the same machine.
#[tokio::test]
async fn the_csrf_token_cannot_be_derived_from_the_cookie() {
    let place = Place::new(AccessMode::Credentials).await;
    let (cookie, word) = browser(&place).await;
    let (_, secret) = cookie.split_once('=').unwrap();
    let derived = Sha256Hex::of(format!("moothall page word {secret}").as_bytes()).to_string();
    let make = async |word: &str| {
        let request = place.post("/api/tokens").header("cookie", &cookie);
        let request = request.header("x-moothall-page", word);
        told(request.body(r#"{"scopes":["read"],"days":1}"#).send().await.unwrap()).await
    };
    for wrong in [derived.as_str(), secret, ""] {
        assert_eq!(make(wrong).await, (403, "page-word-missing".to_owned()), "{wrong}");
    }
    assert_eq!(make(&word).await, (201, "-".to_owned()));
    // All pages of a session get the same CSRF token; another session gets a different one.
    let session = place.get("/api/session").header("cookie", &cookie).send().await.unwrap();
    assert!(session.text().await.unwrap().contains(&word));
    assert_ne!(browser(&place).await.1, word);
}

/// Regression: 500 wrong tokens were answered within half a second and not logged.
#[tokio::test]
async fn failed_sign_ins_are_slowed_down_and_successful_ones_are_not() {
    let place = Place::new(AccessMode::Credentials).await;
    let (_, token) = place.token("south", "read").await;
    let enter = |text: &str| {
        let request = place.client.post(format!("{}/login", place.base));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(format!("token={text}")).send()
    };
    let began = Instant::now();
    assert_eq!(enter("moot_wrong").await.unwrap().status(), 401);
    let wrong_code = place.get("/login?code=wrong").send().await.unwrap();
    assert_eq!(wrong_code.status(), 401);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());

    let mut attempts = JoinSet::new();
    for number in 0..40 {
        attempts.spawn(enter(&format!("moot_{number}")));
    }
    let mut statuses = BTreeMap::<u16, usize>::new();
    while let Some(answer) = attempts.join_next().await {
        let answer = answer.unwrap().unwrap();
        let waits = answer.headers().contains_key("retry-after");
        assert_eq!(waits, answer.status() == 429);
        *statuses.entry(answer.status().as_u16()).or_default() += 1;
    }
    // 16 attempts run at a time, all within the same half second.
    assert_eq!(statuses, BTreeMap::from([(401, 16), (429, 24)]));
    let began = Instant::now();
    assert_eq!(enter(token.reveal()).await.unwrap().status(), 303);
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}

/// Regression: one token opened 647 streams before its request limit applied.
#[tokio::test]
async fn token_has_a_limited_number_of_open_streams() {
    let place = Place::new(AccessMode::Credentials).await;
    let (_, token) = place.token("local", "read").await;
    let (_, other) = place.token("local", "read").await;
    let open = async |token: &str, path: &str| {
        let request = place.get(path).header("authorization", format!("Bearer {token}"));
        request.send().await.unwrap()
    };
    let runs = format!("/api/runs/{OWN_RUN}/events");
    let mut streams = Vec::new();
    for number in 0..64 {
        let path = if number % 2 == 0 { runs.as_str() } else { "/api/drafts/events" };
        let stream = open(token.reveal(), path).await;
        assert_eq!(stream.status(), 200, "stream {number}");
        streams.push(stream);
    }
    for path in [runs.as_str(), "/api/drafts/events"] {
        let refused = open(token.reveal(), path).await;
        assert!(refused.headers().contains_key("retry-after"));
        assert_eq!(told(refused).await, (429, "too-many-streams".to_owned()));
    }
    assert_eq!(open(other.reveal(), &runs).await.status(), 200);
    // Closing a stream frees one slot; the server notices with a short delay.
    drop(streams.pop());
    let until = Instant::now() + Duration::from_secs(20);
    let _last = loop {
        let stream = open(token.reveal(), &runs).await;
        if stream.status() == 200 {
            break stream;
        }
        assert!(Instant::now() < until, "a closed stream still counts");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(open(token.reveal(), &runs).await.status(), 429);
}
