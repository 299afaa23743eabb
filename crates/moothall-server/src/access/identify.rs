//! Middleware that identifies the caller of a request.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use moothall_core::ErrorCode;
use moothall_core::access::{AccessCaller, CredentialLimits, RunOwner, ScopeSet, TeamMember};
use moothall_store::{Credential, StoreError, TokenRow, now_ms};

use super::{AccessControl, AccessMode};
use crate::{ApiProblem, CallerIdentity};

/// Header that carries the CSRF token ("page word").
pub(crate) const CSRF_HEADER: HeaderName = HeaderName::from_static("x-moothall-page");

/// Minimum interval between two updates of a token's last use, since each is a write to the store.
const USE_RECORD_INTERVAL_MS: u64 = 60_000;

/// Longer credentials are rejected without a lookup.
const MAX_CREDENTIAL_BYTES: usize = 200;

/// The credential that a request carries.
#[derive(Debug)]
enum RequestCredential {
    Nothing,
    Token(Credential),
    Session(Credential),
    /// A malformed, oversized or duplicate credential.
    Other,
}

/// Identifies the caller. Rejects requests that exceed the token's rate limit and session requests
/// without a valid CSRF token. Permissions are checked later, once the required scope is known.
pub(crate) async fn identify(
    State(access): State<Arc<AccessControl>>,
    mut request: Request,
    next: Next,
) -> Response {
    let with = credential(&access, request.headers());
    let (caller, page_word) = match caller(&access, &with).await {
        Ok(found) => found,
        Err(error) => return ApiProblem::from(error).into_response(),
    };
    if let RequestCredential::Session(_) = &with
        && matches!(caller, AccessCaller::Known(_))
        && changes(request.method())
        && !has_csrf_token(request.headers(), page_word.as_ref())
    {
        let message = "missing or wrong page token in a request that changes data";
        return ApiProblem::new(StatusCode::FORBIDDEN, ErrorCode::PageWordMissing, message)
            .with_hint("send `page_word` from `GET /api/session` as the header `X-Moothall-Page`")
            .into_response();
    }
    if let AccessCaller::Known(member) = &caller
        && let (Some(token), Some(a_minute)) =
            (&member.owner.token, member.limits.requests_a_minute)
        && let Err(wait) = access.count(token, a_minute)
    {
        let seconds = u32::try_from(wait.seconds).unwrap_or(u32::MAX);
        return ApiProblem::new(
            StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::TooManyRequests,
            wait.to_string(),
        )
        .retry_after(seconds)
        .into_response();
    }
    request.extensions_mut().insert(CallerIdentity(caller));
    if let RequestCredential::Session(secret) = with {
        request.extensions_mut().insert(RequestSession { secret, page_word });
    }
    next.run(request).await
}

/// The session of the current request, for the handlers that end it or return its CSRF token.
#[derive(Debug, Clone)]
pub(crate) struct RequestSession {
    pub(crate) secret: Credential,
    /// `None` if the session is unknown.
    pub(crate) page_word: Option<Credential>,
}

fn credential(access: &AccessControl, headers: &HeaderMap) -> RequestCredential {
    let mut authorization = headers.get_all(header::AUTHORIZATION).iter();
    match (authorization.next(), authorization.next()) {
        (None, _) => match access.cookies.read(headers) {
            Some(secret) if secret.reveal().len() <= MAX_CREDENTIAL_BYTES => {
                RequestCredential::Session(secret)
            }
            Some(_) => RequestCredential::Other,
            None => RequestCredential::Nothing,
        },
        // An explicit `Authorization` header takes precedence over the cookie.
        (Some(value), None) => {
            let text = value.to_str().unwrap_or_default();
            let scheme = text.get(..7).filter(|word| word.eq_ignore_ascii_case("bearer "));
            match scheme.and_then(|_| text.get(7..)).map(str::trim) {
                Some(token)
                    if token.starts_with(Credential::TOKEN_PREFIX)
                        && token.len() <= MAX_CREDENTIAL_BYTES =>
                {
                    RequestCredential::Token(Credential::from_client(token))
                }
                _ => RequestCredential::Other,
            }
        }
        (Some(_), Some(_)) => RequestCredential::Other,
    }
}

/// Looks up the caller, and the CSRF token of a session.
async fn caller(
    access: &AccessControl,
    with: &RequestCredential,
) -> Result<(AccessCaller, Option<Credential>), StoreError> {
    let now_ms = now_ms();
    let (caller, token, page_word) = match with {
        RequestCredential::Nothing => {
            let caller = match access.admits {
                AccessMode::Everyone => user_of_the_machine(),
                AccessMode::Credentials => AccessCaller::Nobody,
            };
            return Ok((caller, None));
        }
        RequestCredential::Other => return Ok((AccessCaller::Unknown, None)),
        RequestCredential::Token(secret) => match access.accounts.token(&secret.sha256()).await? {
            None => return Ok((AccessCaller::Unknown, None)),
            Some(row) => (row.caller(now_ms), Some(row), None),
        },
        RequestCredential::Session(secret) => {
            match access.accounts.session(&secret.sha256()).await? {
                // For example, a cookie from before the run store was moved.
                None if access.admits == AccessMode::Everyone => {
                    return Ok((user_of_the_machine(), None));
                }
                None => return Ok((AccessCaller::Unknown, None)),
                Some(row) => (row.caller(now_ms), row.token, Some(row.page_word)),
            }
        }
    };
    if let (AccessCaller::Known(_), Some(row)) = (&caller, &token) {
        note(access, row, now_ms).await;
    }
    Ok((caller, page_word))
}

/// Records the last use of a token. A failure is logged and does not fail the request.
async fn note(access: &AccessControl, row: &TokenRow, now_ms: u64) {
    let is_fresh = |at_ms: u64| at_ms.saturating_add(USE_RECORD_INTERVAL_MS) > now_ms;
    if row.last_used_at_ms.is_some_and(is_fresh) {
        return;
    }
    if let Err(error) = access.accounts.record_use(&row.id, now_ms).await {
        tracing::warn!(target: "moothall::server", %error, token = %row.id, "could not record the use of a token");
    }
}

fn user_of_the_machine() -> AccessCaller {
    let (owner, scopes) = (RunOwner::local(), ScopeSet::all());
    AccessCaller::Known(TeamMember { owner, scopes, limits: CredentialLimits::default() })
}

fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn has_csrf_token(headers: &HeaderMap, page_word: Option<&Credential>) -> bool {
    let sent = headers.get(CSRF_HEADER).and_then(|word| word.to_str().ok());
    // Comparing hashes avoids a timing side channel.
    let matches =
        |(sent, word): (&str, &Credential)| Credential::from_client(sent).sha256() == word.sha256();
    sent.zip(page_word).is_some_and(matches)
}
