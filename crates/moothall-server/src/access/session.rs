//! `/login`, `/api/session` and `/api/logout`: browser sign-in and sign-out.

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use moothall_core::access::{AccessCaller, TeamMember};
use moothall_store::{Credential, now_ms};
use serde::Deserialize;

use super::SESSION_LIFETIME;
use super::identify::RequestSession;
use super::login_throttle::LoginAttempt;
use crate::connections::PeerAddress;
use crate::dto::SessionInfo;
use crate::extract::QueryParams;
use crate::plain_page::plain_page;
use crate::{ApiProblem, AppState, CallerIdentity};

#[derive(Debug, Deserialize)]
pub(crate) struct LoginQuery {
    code: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct LoginForm {
    token: String,
}

/// Redeems the single-use code of a login link for a session. Without a code, shows the form for a
/// token.
pub(crate) async fn open(
    State(app): State<AppState>,
    peer: Option<Extension<PeerAddress>>,
    QueryParams(query): QueryParams<LoginQuery>,
) -> Result<Response, ApiProblem> {
    let Some(code) = query.code else { return Ok(page(StatusCode::OK, SIGN_IN_MESSAGE)) };
    let Some(attempt) = begin_attempt(&app, peer) else { return Ok(too_many_attempts()) };
    let code = Credential::from_client(&code);
    let taken = app.access.accounts.take_login_code(&code.sha256(), now_ms()).await?;
    let Some(taken) = taken else {
        attempt.failed().await;
        return Ok(page(StatusCode::UNAUTHORIZED, USED_LINK_MESSAGE));
    };
    let new_session = app.access.begin_session(taken.team, None, taken.scopes).await;
    Ok(signed_in(&app, &new_session.map_err(|error| ApiProblem::internal(&error))?))
}

/// Exchanges a token for a session.
pub(crate) async fn enter(
    State(app): State<AppState>,
    peer: Option<Extension<PeerAddress>>,
    form: Result<Form<LoginForm>, FormRejection>,
) -> Result<Response, ApiProblem> {
    let Ok(Form(form)) = form else { return Ok(page(StatusCode::BAD_REQUEST, SIGN_IN_MESSAGE)) };
    let Some(attempt) = begin_attempt(&app, peer) else { return Ok(too_many_attempts()) };
    let token = Credential::from_client(form.token.trim());
    let row = app.access.accounts.token(&token.sha256()).await?;
    let row = row.filter(|row| matches!(row.caller(now_ms()), AccessCaller::Known(_)));
    let Some(row) = row else {
        attempt.failed().await;
        return Ok(page(StatusCode::UNAUTHORIZED, REFUSED_MESSAGE));
    };
    let new_session = app.access.begin_session(row.team, Some(row.id), row.scopes).await;
    Ok(signed_in(&app, &new_session.map_err(|error| ApiProblem::internal(&error))?))
}

/// Returns the current session and the CSRF token that the page must send with changes.
pub(crate) async fn show(
    caller: CallerIdentity,
    session: Option<Extension<RequestSession>>,
) -> Result<Json<SessionInfo>, ApiProblem> {
    let TeamMember { owner, scopes, limits } = caller.member()?.clone();
    Ok(Json(SessionInfo {
        team: owner.team,
        token: owner.token,
        scopes: scopes.iter().collect(),
        runs_at_once: limits.runs_at_once,
        micro_usd_a_day: limits.usd_a_day,
        requests_a_minute: limits.requests_a_minute,
        page_word: session
            .and_then(|Extension(session)| session.page_word)
            .map(|word| word.reveal().to_owned()),
    }))
}

/// Ends the session of the request.
pub(crate) async fn leave(
    State(app): State<AppState>,
    session: Option<Extension<RequestSession>>,
) -> Result<Response, ApiProblem> {
    if let Some(Extension(session)) = session {
        app.access.accounts.end_session(&session.secret.sha256()).await?;
    }
    let mut headers = HeaderMap::new();
    headers.extend(app.access.cookies.take().map(|cookie| (header::SET_COOKIE, cookie)));
    Ok((StatusCode::NO_CONTENT, headers).into_response())
}

fn begin_attempt(app: &AppState, peer: Option<Extension<PeerAddress>>) -> Option<LoginAttempt> {
    app.access.begin_attempt(peer.map(|Extension(peer)| peer))
}

fn too_many_attempts() -> Response {
    let mut response = page(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_MESSAGE);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Redirects to `/`, so the login code does not stay in the browser history.
fn signed_in(app: &AppState, session: &Credential) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::from_static("/"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let cookie = app.access.cookies.give(session, SESSION_LIFETIME);
    headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    (StatusCode::SEE_OTHER, headers).into_response()
}

const SIGN_IN_MESSAGE: &str = "Sign in with your access token.";
const TOO_MANY_MESSAGE: &str = "Too many failed attempts from your address. Try again in a moment.";
const REFUSED_MESSAGE: &str = "This token is unknown, expired or revoked.";
const USED_LINK_MESSAGE: &str = "This link has been used already or is older than ten minutes. \
                    Run <code>moothall login</code> for a new one.";

const FORM: &str = r#"<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" spellcheck="false" required>
<button type="submit">Sign in</button>
</form>"#;

fn page(status: StatusCode, message: &'static str) -> Response {
    plain_page(status, "Sign in", &format!("<p>{message}</p>\n{FORM}"))
}
