//! Teams and their credentials, whatever they are kept in.

use std::fmt::{self, Debug};

use moothall_core::Sha256Hex;
use moothall_core::access::{Caller, Limits, Member, Owner, Scopes, TeamName, TokenId};

use crate::{StoreFuture, Teams};

/// The longest label of a token.
pub const MAX_LABEL_BYTES: usize = 200;

/// Where teams and credentials live.
///
/// What implementors promise, beside what [`Store`](crate::Store) promises of requests:
/// - *Hashes.* Of a secret only its SHA-256 is ever handed over or kept. Secrets are 256 random
///   bits, so that a plain hash is as good as a slow one.
/// - *Once.* A login code is taken at most once, however many processes try.
/// - *The end of a token* is the end of every session that was begun with it.
pub trait Accounts: Debug + Send + Sync {
    /// Makes a team.
    ///
    /// Errors: [`StoreError::TeamExists`](crate::StoreError::TeamExists).
    fn create_team(&self, name: &TeamName, at_ms: u64) -> StoreFuture<'_, ()>;

    /// All teams, by name.
    fn teams(&self) -> StoreFuture<'_, Vec<TeamRow>>;

    /// Keeps a new token.
    ///
    /// Errors: [`StoreError::UnknownTeam`](crate::StoreError::UnknownTeam),
    /// [`StoreError::TokenExists`](crate::StoreError::TokenExists),
    /// [`StoreError::TooLarge`](crate::StoreError::TooLarge) for its label.
    fn create_token(&self, token: NewToken) -> StoreFuture<'_, ()>;

    /// The tokens of these teams, the oldest first. Also those that have had their time.
    fn tokens(&self, teams: Teams) -> StoreFuture<'_, Vec<TokenRow>>;

    /// The token with this secret.
    fn token(&self, secret: &Sha256Hex) -> StoreFuture<'_, Option<TokenRow>>;

    /// Notes that a token was used.
    fn note_use(&self, id: &TokenId, at_ms: u64) -> StoreFuture<'_, ()>;

    /// Takes a token back, and ends its sessions. The first time stays where it was taken back
    /// before.
    ///
    /// Errors: [`StoreError::UnknownToken`](crate::StoreError::UnknownToken).
    fn revoke_token(&self, id: &TokenId, at_ms: u64) -> StoreFuture<'_, ()>;

    /// Keeps a session, and forgets those that have had their time.
    ///
    /// Errors: [`StoreError::UnknownTeam`](crate::StoreError::UnknownTeam),
    /// [`StoreError::UnknownToken`](crate::StoreError::UnknownToken).
    fn create_session(&self, session: NewSession) -> StoreFuture<'_, ()>;

    /// The session with this secret, with its token as it stands now.
    fn session(&self, secret: &Sha256Hex) -> StoreFuture<'_, Option<SessionRow>>;

    /// Ends a session. It is fine if there is none.
    fn end_session(&self, secret: &Sha256Hex) -> StoreFuture<'_, ()>;

    /// Keeps a login code, and forgets those that have had their time.
    ///
    /// Errors: [`StoreError::UnknownTeam`](crate::StoreError::UnknownTeam).
    fn create_login_code(&self, code: LoginCode, at_ms: u64) -> StoreFuture<'_, ()>;

    /// Takes a login code; it is gone afterwards. `None` where there is none, or it had its time.
    fn take_login_code(&self, secret: &Sha256Hex, at_ms: u64)
    -> StoreFuture<'_, Option<LoginCode>>;
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRow {
    /// Its name.
    pub name: TeamName,
    /// When it was made, in milliseconds since 1970; 0 for the one that is always there.
    pub created_at_ms: u64,
}

/// A token that is about to be given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is called.
    pub id: TokenId,
    /// Whom it acts for.
    pub team: TeamName,
    /// What a person wrote down about it.
    pub label: String,
    /// The hash of its secret.
    pub secret: Sha256Hex,
    /// What it covers.
    pub scopes: Scopes,
    /// How much of it.
    pub limits: Limits,
    /// When it is made, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// From when on it does not count, if ever.
    pub expires_at_ms: Option<u64>,
}

/// A token as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// What it is called.
    pub id: TokenId,
    /// Whom it acts for.
    pub team: TeamName,
    /// What a person wrote down about it.
    pub label: String,
    /// What it covers.
    pub scopes: Scopes,
    /// How much of it.
    pub limits: Limits,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// From when on it does not count, if ever.
    pub expires_at_ms: Option<u64>,
    /// When it was last used, as far as anybody noted it.
    pub last_used_at_ms: Option<u64>,
    /// When it was taken back.
    pub revoked_at_ms: Option<u64>,
}

impl TokenRow {
    /// Who calls with this token at this time.
    pub fn caller(&self, at_ms: u64) -> Caller {
        if self.revoked_at_ms.is_some() {
            return Caller::Revoked;
        }
        if self.expires_at_ms.is_some_and(|end| end <= at_ms) {
            return Caller::Expired;
        }
        let owner = Owner { team: self.team.clone(), token: Some(self.id.clone()) };
        Caller::Known(Member { owner, scopes: self.scopes, limits: self.limits })
    }
}

/// A session that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The hash of its secret.
    pub secret: Sha256Hex,
    /// Whom it acts for.
    pub team: TeamName,
    /// The token it was begun with; none with a login code.
    pub token: Option<TokenId>,
    /// What it covers where there is no token.
    pub scopes: Scopes,
    /// When it begins, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// From when on it does not count.
    pub expires_at_ms: u64,
    /// What a page has to send beside the cookie when it changes something. It is kept in clear text,
    /// because pages ask for it; without the cookie it is worth nothing.
    pub page_word: Credential,
}

/// A session as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Whom it acts for.
    pub team: TeamName,
    /// The token it was begun with, as it stands now.
    pub token: Option<TokenRow>,
    /// What it covers where there is no token.
    pub scopes: Scopes,
    /// From when on it does not count.
    pub expires_at_ms: u64,
    /// What a page has to send beside the cookie when it changes something.
    pub page_word: Credential,
}

impl SessionRow {
    /// Who calls with this session at this time. What is true of its token is true of it.
    pub fn caller(&self, at_ms: u64) -> Caller {
        if self.expires_at_ms <= at_ms {
            return Caller::Expired;
        }
        match &self.token {
            Some(token) => token.caller(at_ms),
            None => {
                let owner = Owner { team: self.team.clone(), token: None };
                let limits = Limits::default();
                Caller::Known(Member { owner, scopes: self.scopes, limits })
            }
        }
    }
}

/// Something that is exchanged once for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginCode {
    /// The hash of its secret.
    pub secret: Sha256Hex,
    /// Whom the session will act for.
    pub team: TeamName,
    /// What it will cover.
    pub scopes: Scopes,
    /// From when on the code does not count, in milliseconds since 1970.
    pub expires_at_ms: u64,
}

/// A secret that we give out: 256 random bits behind a word that says what they are for.
///
/// It is shown once and never kept, and it cannot be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential(String);

/// How many random bytes a secret has.
const SECRET_BYTES: usize = 32;

impl Credential {
    /// What every token begins with, so that people and scanners recognise one.
    pub const TOKEN_PREFIX: &'static str = "moot_";

    /// A new token.
    pub fn token() -> Result<Self, getrandom::Error> {
        Ok(Self(format!("{}{}", Self::TOKEN_PREFIX, random_digits::<SECRET_BYTES>()?)))
    }

    /// A new secret of a session or a login code.
    pub fn passing() -> Result<Self, getrandom::Error> {
        random_digits::<SECRET_BYTES>().map(Self)
    }

    /// What someone sent. Nothing is known about it but its hash.
    pub fn sent(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The hash under which it is kept.
    pub fn sha256(&self) -> Sha256Hex {
        Sha256Hex::of(self.0.as_bytes())
    }

    /// The secret itself, for whoever it is given to.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(***)")
    }
}

/// The digits of a new [`TokenId`].
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
