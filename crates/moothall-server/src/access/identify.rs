//! From a request to whoever sent it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use moothall_core::ErrorCode;
use moothall_core::access::{Caller, Limits, Member, Owner, Scopes};
use moothall_store::{Credential, StoreError, TokenRow, now_ms};

use super::{Access, Admits};
use crate::{Problem, Who};

/// Where a page says its word.
pub(crate) const PAGE_WORD: HeaderName = HeaderName::from_static("x-moothall-page");

/// The use of a token is noted so often: a note is a write.
const NOTE_EVERY_MS: u64 = 60_000;

/// The longest credential that is looked up.
const MAX_CREDENTIAL_BYTES: usize = 200;

/// With what someone calls.
#[derive(Debug)]
enum With {
    Nothing,
    Token(Credential),
    Session(Credential),
    /// Something that is none of these.
    Other,
}

/// Finds out who sent a request, and refuses it where it comes too fast or from a page that is not
/// ours. What they may do is decided where it is known what that is.
pub(crate) async fn identify(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let with = credential(&access, request.headers());
    let (caller, page_word) = match caller(&access, &with).await {
        Ok(found) => found,
        Err(error) => return Problem::from(error).into_response(),
    };
    if let With::Session(_) = &with
        && matches!(caller, Caller::Known(_))
        && changes(request.method())
        && !says_its_word(request.headers(), page_word.as_ref())
    {
        let words = "a page that changes something says its word";
        return Problem::new(StatusCode::FORBIDDEN, ErrorCode::PageWordMissing, words)
            .with_hint("`GET /api/session` tells it; send it as `X-Moothall-Page`")
            .into_response();
    }
    if let Caller::Known(member) = &caller
        && let (Some(token), Some(a_minute)) =
            (&member.owner.token, member.limits.requests_a_minute)
        && let Err(wait) = access.count(token, a_minute)
    {
        let seconds = u32::try_from(wait.seconds).unwrap_or(u32::MAX);
        return Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            ErrorCode::TooManyRequests,
            wait.to_string(),
        )
        .retry_after(seconds)
        .into_response();
    }
    request.extensions_mut().insert(Who(caller));
    if let With::Session(secret) = with {
        request.extensions_mut().insert(OwnSession { secret, page_word });
    }
    next.run(request).await
}

/// The session a request came with, for whoever ends it or tells its word.
#[derive(Debug, Clone)]
pub(crate) struct OwnSession {
    pub(super) secret: Credential,
    /// `None` if the session is unknown.
    pub(super) page_word: Option<Credential>,
}

fn credential(access: &Access, headers: &HeaderMap) -> With {
    let mut told = headers.get_all(header::AUTHORIZATION).iter();
    match (told.next(), told.next()) {
        (None, _) => match access.cookies.read(headers) {
            Some(secret) if secret.reveal().len() <= MAX_CREDENTIAL_BYTES => With::Session(secret),
            Some(_) => With::Other,
            None => With::Nothing,
        },
        // A token wins over a cookie: whoever sends one means it.
        (Some(value), None) => {
            let text = value.to_str().unwrap_or_default();
            let scheme = text.get(..7).filter(|word| word.eq_ignore_ascii_case("bearer "));
            match scheme.and_then(|_| text.get(7..)).map(str::trim) {
                Some(token)
                    if token.starts_with(Credential::TOKEN_PREFIX)
                        && token.len() <= MAX_CREDENTIAL_BYTES =>
                {
                    With::Token(Credential::sent(token))
                }
                _ => With::Other,
            }
        }
        (Some(_), Some(_)) => With::Other,
    }
}

/// Who calls, and the page word if they came with a session.
async fn caller(access: &Access, with: &With) -> Result<(Caller, Option<Credential>), StoreError> {
    let now_ms = now_ms();
    let (caller, token, page_word) = match with {
        With::Nothing => {
            let caller = match access.admits {
                Admits::Everyone => user_of_the_machine(),
                Admits::Credentials => Caller::Nobody,
            };
            return Ok((caller, None));
        }
        With::Other => return Ok((Caller::Unknown, None)),
        With::Token(secret) => match access.accounts.token(&secret.sha256()).await? {
            None => return Ok((Caller::Unknown, None)),
            Some(row) => (row.caller(now_ms), Some(row), None),
        },
        With::Session(secret) => match access.accounts.session(&secret.sha256()).await? {
            // A cookie of before the runs were moved away, say.
            None if access.admits == Admits::Everyone => return Ok((user_of_the_machine(), None)),
            None => return Ok((Caller::Unknown, None)),
            Some(row) => (row.caller(now_ms), row.token, Some(row.page_word)),
        },
    };
    if let (Caller::Known(_), Some(row)) = (&caller, &token) {
        note(access, row, now_ms).await;
    }
    Ok((caller, page_word))
}

/// Nobody waits for it for long, and nobody fails because of it.
async fn note(access: &Access, row: &TokenRow, now_ms: u64) {
    let is_fresh = |at_ms: u64| at_ms.saturating_add(NOTE_EVERY_MS) > now_ms;
    if row.last_used_at_ms.is_some_and(is_fresh) {
        return;
    }
    if let Err(error) = access.accounts.note_use(&row.id, now_ms).await {
        tracing::warn!(target: "moothall::server", %error, token = %row.id, "use of a token not noted");
    }
}

fn user_of_the_machine() -> Caller {
    let (owner, scopes) = (Owner::local(), Scopes::all());
    Caller::Known(Member { owner, scopes, limits: Limits::default() })
}

fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn says_its_word(headers: &HeaderMap, page_word: Option<&Credential>) -> bool {
    let said = headers.get(PAGE_WORD).and_then(|word| word.to_str().ok());
    // Hashes, so that comparing takes as long for every guess.
    let matches =
        |(said, word): (&str, &Credential)| Credential::sent(said).sha256() == word.sha256();
    said.zip(page_word).is_some_and(matches)
}
