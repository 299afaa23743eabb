//! Who calls: from a token or a session to a [`Who`](crate::Who), before anything else looks at a
//! request.
//!
//! ```text
//! identify.rs   token or session of a request ─► Who; the pace of a token; CSRF
//! session.rs    /login, /api/session, /api/logout: a browser signs in and out
//! tokens.rs     /api/tokens: the tokens of a team
//! streams.rs    open event streams of each token
//! login_throttle.rs   failed sign-ins of each address
//! ```
//!
//! Single sign-on has its place in `session.rs`: whatever an identity provider says ends, as a login
//! code does, in [`Access::begin_session`] with a team and scopes.

mod cookies;
mod identify;
mod login_throttle;
pub(crate) mod session;
mod streams;
pub(crate) mod tokens;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::access::{Pace, Scope, Scopes, TeamName, TokenId, Wait};
use moothall_store::{Accounts, Credential, LoginCode, NewSession, StoreError, Teams, now_ms};

pub(crate) use self::cookies::Cookies;
pub(crate) use self::identify::identify;
use self::login_throttle::LoginThrottle;
use self::streams::StreamLimiter;
pub(crate) use self::streams::StreamPermit;
use crate::{App, Problem, Who};

/// How long a browser stays signed in.
const SESSION_LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long a login link counts.
const CODE_LASTS: Duration = Duration::from_secs(10 * 60);

/// Paces that nobody would miss are forgotten when there are so many.
const MOST_PACES: usize = 10_000;

/// Who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admits {
    /// Whoever reaches the server. Only for a server that listens to its own machine.
    Everyone,
    /// Whoever has a token, or signed in with one or with a login code.
    Credentials,
}

/// What a server knows about credentials.
#[derive(Debug)]
pub struct Access {
    pub(crate) admits: Admits,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) cookies: Cookies,
    pub(crate) streams: StreamLimiter,
    login_throttle: LoginThrottle,
    paces: Mutex<BTreeMap<TokenId, Pace>>,
    began: Instant,
}

impl Access {
    /// Of a server that browsers reach under this address, such as `http://127.0.0.1:7777`.
    pub fn new(accounts: Arc<dyn Accounts>, admits: Admits, origin: &str) -> Self {
        Self {
            admits,
            accounts,
            cookies: Cookies::of(origin),
            streams: StreamLimiter::default(),
            login_throttle: LoginThrottle::default(),
            paces: Mutex::default(),
            began: Instant::now(),
        }
    }

    /// Begins a session for a browser, and gives its secret.
    pub(crate) async fn begin_session(
        &self,
        team: TeamName,
        token: Option<TokenId>,
        scopes: Scopes,
    ) -> Result<Credential, AccessError> {
        let (secret, page_word) = (Credential::passing()?, Credential::passing()?);
        let created_at_ms = now_ms();
        let session = NewSession {
            secret: secret.sha256(),
            team,
            token,
            scopes,
            created_at_ms,
            expires_at_ms: created_at_ms.saturating_add(millis(SESSION_LASTS)),
            page_word,
        };
        self.accounts.create_session(session).await?;
        Ok(secret)
    }

    /// Counts a request with a token.
    fn count(&self, token: &TokenId, a_minute: u32) -> Result<(), Wait> {
        let now_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if paces.len() >= MOST_PACES {
            paces.retain(|_, pace| !pace.is_idle(now_us));
        }
        paces.entry(token.clone()).or_default().take(now_us, a_minute)
    }
}

/// Makes a login code: whoever opens its link within ten minutes, once, is signed in for everything
/// in the team.
///
/// Errors: the store's, or there is no randomness.
pub async fn login_code(
    accounts: &dyn Accounts,
    team: TeamName,
    scope: Scope,
) -> Result<Credential, AccessError> {
    let secret = Credential::passing()?;
    let now_ms = now_ms();
    let code = LoginCode {
        secret: secret.sha256(),
        team,
        scopes: Scopes::only(scope),
        expires_at_ms: now_ms.saturating_add(millis(CODE_LASTS)),
    };
    accounts.create_login_code(code, now_ms).await?;
    Ok(secret)
}

/// The link that a login code is opened with.
pub fn login_link(origin: &str, code: &Credential) -> String {
    format!("{origin}/login?code={}", code.reveal())
}

/// Why a credential could not be made.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The store did not keep it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine gave no randomness.
    #[error("the machine gives no randomness")]
    Randomness(#[from] getrandom::Error),
}

/// What an administrator called the token with which somebody came, if they came with one. Who says
/// something is told from their credential and never from what they send.
pub(crate) async fn token_label(app: &App, who: &Who) -> Result<Option<String>, Problem> {
    let owner = who.owner()?;
    let Some(id) = owner.token else { return Ok(None) };
    let rows = app.access.accounts.tokens(Teams::Only(owner.team)).await?;
    let label = rows.into_iter().find(|row| row.id == id).map(|row| row.label);
    Ok(Some(label.filter(|label| !label.is_empty()).unwrap_or_else(|| id.to_string())))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
