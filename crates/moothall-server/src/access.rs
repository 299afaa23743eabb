//! Authentication: maps the token or session of a request to a [`CallerIdentity`] before any
//! handler runs.
//!
//! ```text
//! identify.rs         token or session of a request ─► caller; rate limit per token; CSRF
//! session.rs          /login, /api/session, /api/logout: browser sign-in and sign-out
//! tokens.rs           /api/tokens: the tokens of a team
//! streams.rs          open event streams per token
//! login_throttle.rs   failed sign-ins per address
//! ```
//!
//! Single sign-on belongs in `session.rs`: an identity provider's response, like a login code, must
//! end in [`AccessControl::begin_session`] with a team and scopes.

mod cookies;
mod identify;
mod login_throttle;
pub(crate) mod session;
mod streams;
pub(crate) mod tokens;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::access::{
    AccessScope, CredentialRateLimiter, RateLimitError, ScopeSet, TeamName, TokenId,
};
use moothall_store::{
    AccountStore, Credential, LoginCode, NewSession, StoreError, TeamFilter, now_ms,
};

pub(crate) use self::cookies::SessionCookie;
pub(crate) use self::identify::identify;
use self::login_throttle::{LoginAttempt, LoginThrottle};
use self::streams::StreamLimiter;
pub(crate) use self::streams::StreamPermit;
use crate::connections::PeerAddress;
use crate::{ApiProblem, AppState, CallerIdentity};

/// Lifetime of a browser session.
const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Lifetime of a login link.
const LOGIN_CODE_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Idle rate-limit entries are dropped once there are this many.
const MAX_RATE_ENTRIES: usize = 10_000;

/// Which requests the server admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    /// Every request, without credentials. Only for a server that listens on the local machine.
    Everyone,
    /// Requests with a token, or with a session created from a token or a login code.
    Credentials,
}

/// Credential checks and rate limits of a server.
#[derive(Debug)]
pub struct AccessControl {
    pub(crate) admits: AccessMode,
    pub(crate) accounts: Arc<dyn AccountStore>,
    pub(crate) cookies: SessionCookie,
    pub(crate) streams: StreamLimiter,
    login_throttle: LoginThrottle,
    rate_limiters: Mutex<BTreeMap<TokenId, CredentialRateLimiter>>,
    began: Instant,
}

impl AccessControl {
    /// Creates the access control of a server that browsers reach at `origin`, such as
    /// `http://127.0.0.1:7777`.
    pub fn new(accounts: Arc<dyn AccountStore>, admits: AccessMode, origin: &str) -> Self {
        Self {
            admits,
            accounts,
            cookies: SessionCookie::of(origin),
            streams: StreamLimiter::default(),
            login_throttle: LoginThrottle::default(),
            rate_limiters: Mutex::default(),
            began: Instant::now(),
        }
    }

    /// Creates a browser session and returns its secret.
    pub(crate) async fn begin_session(
        &self,
        team: TeamName,
        token: Option<TokenId>,
        scopes: ScopeSet,
    ) -> Result<Credential, AccessError> {
        let (secret, page_word) = (Credential::temporary()?, Credential::temporary()?);
        let created_at_ms = now_ms();
        let session = NewSession {
            secret: secret.sha256(),
            team,
            token,
            scopes,
            created_at_ms,
            expires_at_ms: created_at_ms.saturating_add(millis(SESSION_LIFETIME)),
            page_word,
        };
        self.accounts.create_session(session).await?;
        Ok(secret)
    }

    /// Starts an attempt to present a secret. Returns `None` if the address has too many attempts
    /// in progress.
    pub(crate) fn begin_attempt(&self, peer: Option<PeerAddress>) -> Option<LoginAttempt> {
        self.login_throttle.begin(peer)
    }

    /// Counts a request against the token's rate limit.
    fn count(&self, token: &TokenId, a_minute: u32) -> Result<(), RateLimitError> {
        let now_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut rate_limiters = self.rate_limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if rate_limiters.len() >= MAX_RATE_ENTRIES {
            rate_limiters.retain(|_, limiter| !limiter.is_idle(now_us));
        }
        rate_limiters.entry(token.clone()).or_default().take(now_us, a_minute)
    }
}

/// Creates a login code. Its link works once, within ten minutes, and signs the browser in to the
/// team with the given scope.
///
/// # Errors
///
/// Fails if the store fails or the system has no randomness.
pub async fn login_code(
    accounts: &dyn AccountStore,
    team: TeamName,
    scope: AccessScope,
) -> Result<Credential, AccessError> {
    let secret = Credential::temporary()?;
    let now_ms = now_ms();
    let code = LoginCode {
        secret: secret.sha256(),
        team,
        scopes: ScopeSet::only(scope),
        expires_at_ms: now_ms.saturating_add(millis(LOGIN_CODE_LIFETIME)),
    };
    accounts.create_login_code(code, now_ms).await?;
    Ok(secret)
}

/// Returns the link that redeems a login code.
pub fn login_link(origin: &str, code: &Credential) -> String {
    format!("{origin}/login?code={}", code.reveal())
}

/// Error from creating a credential.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system random number generator failed.
    #[error("the system random number generator failed")]
    Randomness(#[from] getrandom::Error),
}

/// Returns the label of the caller's token, or its id if the label is empty; `None` without a
/// token.
///
/// Names recorded for a caller come from the credential, never from the request.
pub(crate) async fn token_label(
    app: &AppState,
    caller: &CallerIdentity,
) -> Result<Option<String>, ApiProblem> {
    let owner = caller.owner()?;
    let Some(id) = owner.token else { return Ok(None) };
    let rows = app.access.accounts.tokens(TeamFilter::Only(owner.team)).await?;
    let label = rows.into_iter().find(|row| row.id == id).map(|row| row.label);
    Ok(Some(label.filter(|label| !label.is_empty()).unwrap_or_else(|| id.to_string())))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
