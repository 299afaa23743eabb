//! Storage interface for teams and their credentials.

use std::fmt::{self, Debug};

use moothall_core::Sha256Hex;
use moothall_core::access::{
    AccessCaller, CredentialLimits, RunOwner, ScopeSet, TeamMember, TeamName, TokenId,
};

use crate::{StoreFuture, TeamFilter};

/// Maximum length of a token label.
pub const MAX_LABEL_BYTES: usize = 200;

/// Stores teams and credentials.
///
/// Implementors must guarantee, in addition to the request guarantees of [`Store`](crate::Store):
/// - *Hashes.* Only the SHA-256 of a secret is passed in or stored. Secrets have 256 random bits,
///   so a plain hash is as safe as a slow one.
/// - *Once.* A login code can be taken only once, even by concurrent processes.
/// - *Revocation.* Revoking a token ends every session started with it.
pub trait AccountStore: Debug + Send + Sync {
    /// Creates a team.
    ///
    /// Errors: [`StoreError::TeamExists`](crate::StoreError::TeamExists).
    fn create_team(&self, name: &TeamName, at_ms: u64) -> StoreFuture<'_, ()>;

    /// All teams, sorted by name.
    fn teams(&self) -> StoreFuture<'_, Vec<TeamRow>>;

    /// Stores a new token.
    ///
    /// Errors: [`StoreError::UnknownTeam`](crate::StoreError::UnknownTeam),
    /// [`StoreError::TokenExists`](crate::StoreError::TokenExists),
    /// [`StoreError::TooLarge`](crate::StoreError::TooLarge) for its label.
    fn create_token(&self, token: NewToken) -> StoreFuture<'_, ()>;

    /// The tokens of these teams, oldest first, including expired and revoked ones.
    fn tokens(&self, teams: TeamFilter) -> StoreFuture<'_, Vec<TokenRow>>;

    /// The token with this secret.
    fn token(&self, secret: &Sha256Hex) -> StoreFuture<'_, Option<TokenRow>>;

    /// Records the time a token was used.
    fn record_use(&self, id: &TokenId, at_ms: u64) -> StoreFuture<'_, ()>;

    /// Revokes a token and ends its sessions. A token that is already revoked keeps its first
    /// revocation time.
    ///
    /// Errors: [`StoreError::UnknownToken`](crate::StoreError::UnknownToken).
    fn revoke_token(&self, id: &TokenId, at_ms: u64) -> StoreFuture<'_, ()>;

    /// Stores a session and deletes expired ones.
    ///
    /// Errors: [`StoreError::UnknownTeam`](crate::StoreError::UnknownTeam),
    /// [`StoreError::UnknownToken`](crate::StoreError::UnknownToken).
    fn create_session(&self, session: NewSession) -> StoreFuture<'_, ()>;

    /// The session with this secret, with the current state of its token.
    fn session(&self, secret: &Sha256Hex) -> StoreFuture<'_, Option<SessionRow>>;

    /// Ends a session, if it exists.
    fn end_session(&self, secret: &Sha256Hex) -> StoreFuture<'_, ()>;

    /// Stores a login code and deletes expired ones.
    ///
    /// Errors: [`StoreError::UnknownTeam`](crate::StoreError::UnknownTeam).
    fn create_login_code(&self, code: LoginCode, at_ms: u64) -> StoreFuture<'_, ()>;

    /// Takes a login code, which deletes it. `None` if it does not exist or has expired.
    fn take_login_code(&self, secret: &Sha256Hex, at_ms: u64)
    -> StoreFuture<'_, Option<LoginCode>>;
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRow {
    /// The name.
    pub name: TeamName,
    /// Creation time in milliseconds since 1970; 0 for the built-in team.
    pub created_at_ms: u64,
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The id.
    pub id: TokenId,
    /// The team it acts for.
    pub team: TeamName,
    /// Description given by a person.
    pub label: String,
    /// The hash of its secret.
    pub secret: Sha256Hex,
    /// Granted scopes.
    pub scopes: ScopeSet,
    /// Usage limits.
    pub limits: CredentialLimits,
    /// Creation time in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Expiry time in milliseconds since 1970, if any.
    pub expires_at_ms: Option<u64>,
}

/// A stored token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// The id.
    pub id: TokenId,
    /// The team it acts for.
    pub team: TeamName,
    /// Description given by a person.
    pub label: String,
    /// Granted scopes.
    pub scopes: ScopeSet,
    /// Usage limits.
    pub limits: CredentialLimits,
    /// Creation time in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Expiry time in milliseconds since 1970, if any.
    pub expires_at_ms: Option<u64>,
    /// Last recorded use, if any.
    pub last_used_at_ms: Option<u64>,
    /// Revocation time, if revoked.
    pub revoked_at_ms: Option<u64>,
}

impl TokenRow {
    /// The caller that this token identifies at this time.
    pub fn caller(&self, at_ms: u64) -> AccessCaller {
        if self.revoked_at_ms.is_some() {
            return AccessCaller::Revoked;
        }
        if self.expires_at_ms.is_some_and(|end| end <= at_ms) {
            return AccessCaller::Expired;
        }
        let owner = RunOwner { team: self.team.clone(), token: Some(self.id.clone()) };
        AccessCaller::Known(TeamMember { owner, scopes: self.scopes, limits: self.limits })
    }
}

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The hash of its secret.
    pub secret: Sha256Hex,
    /// The team it acts for.
    pub team: TeamName,
    /// The token used to sign in; `None` for a login code.
    pub token: Option<TokenId>,
    /// Scopes of a session without a token.
    pub scopes: ScopeSet,
    /// Creation time in milliseconds since 1970.
    pub created_at_ms: u64,
    /// Expiry time in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// CSRF token that a page must send with the cookie when it changes something. Stored in clear
    /// text because pages read it back; it is useless without the cookie.
    pub page_word: Credential,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The team it acts for.
    pub team: TeamName,
    /// The current state of the token used to sign in.
    pub token: Option<TokenRow>,
    /// Scopes of a session without a token.
    pub scopes: ScopeSet,
    /// Expiry time in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// CSRF token that a page must send with the cookie when it changes something.
    pub page_word: Credential,
}

impl SessionRow {
    /// The caller that this session identifies at this time. A session is valid only while its
    /// token is.
    pub fn caller(&self, at_ms: u64) -> AccessCaller {
        if self.expires_at_ms <= at_ms {
            return AccessCaller::Expired;
        }
        match &self.token {
            Some(token) => token.caller(at_ms),
            None => {
                let owner = RunOwner { team: self.team.clone(), token: None };
                let limits = CredentialLimits::default();
                AccessCaller::Known(TeamMember { owner, scopes: self.scopes, limits })
            }
        }
    }
}

/// A code that can be exchanged once for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginCode {
    /// The hash of its secret.
    pub secret: Sha256Hex,
    /// The team of the resulting session.
    pub team: TeamName,
    /// The scopes of the resulting session.
    pub scopes: ScopeSet,
    /// Expiry time in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// A secret issued by us: 256 random bits, for tokens with a prefix that identifies them.
///
/// It is shown once and stored only as a hash, and its `Debug` output is redacted.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

/// Number of random bytes in a secret.
const SECRET_BYTES: usize = 32;

impl Credential {
    /// Prefix of every token, so that people and secret scanners recognize it.
    pub const TOKEN_PREFIX: &'static str = "moot_";

    /// Generates a token.
    pub fn token() -> Result<Self, getrandom::Error> {
        Ok(Self(format!("{}{}", Self::TOKEN_PREFIX, random_digits::<SECRET_BYTES>()?)))
    }

    /// Generates a secret for a session or a login code.
    pub fn temporary() -> Result<Self, getrandom::Error> {
        random_digits::<SECRET_BYTES>().map(Self)
    }

    /// Wraps a secret received from a client, which is not validated.
    pub fn from_client(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The hash under which it is stored.
    pub fn sha256(&self) -> Sha256Hex {
        Sha256Hex::of(self.0.as_bytes())
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(***)")
    }
}

/// Generates a random [`TokenId`].
pub fn random_token_id() -> Result<TokenId, getrandom::Error> {
    random_digits::<6>()?.parse().map_err(|_| getrandom::Error::UNEXPECTED)
}

fn random_digits<const BYTES: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[path = "accounts_tests.rs"]
mod tests;
