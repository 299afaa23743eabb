//! Access control for a server with several users.
//!
//! The server identifies the [`AccessCaller`] and the [`AccessObject`] of a request; [`decide`] allows or
//! refuses it. Every run belongs to a team. An object of another team gets the same response as one
//! that does not exist, so a response never reveals that it exists.

mod limits;
mod scope;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::ErrorCode;
use serde::{Deserialize, Serialize};

pub use self::limits::{
    CredentialLimits, CredentialRateLimiter, CredentialUsage, RateLimitError, RunLimitError, admit,
};
pub use self::scope::{AccessScope, ScopeSet, UnknownScope};

const MAX_TEAM_NAME_BYTES: usize = 40;

const TOKEN_ID_DIGITS: usize = 12;

/// The name of a team. Every run on a server belongs to a team.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TeamName(Arc<str>);

impl TeamName {
    /// The built-in team of a local user.
    pub fn local() -> Self {
        Self("local".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TeamName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let shaped = text.len() <= MAX_TEAM_NAME_BYTES
            && text.bytes().all(plain)
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with('-');
        if shaped {
            Ok(Self(text.into()))
        } else {
            let expected =
                "at most 40 lowercase letters, digits and dashes, starting with a letter";
            Err(InvalidName { what: "team name", expected })
        }
    }
}

/// The public id of a token, used in lists and logs. Reveals nothing about the token's secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId(Arc<str>);

impl TokenId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TokenId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == TOKEN_ID_DIGITS && text.bytes().all(digit) {
            Ok(Self(text.into()))
        } else {
            let expected = "12 lowercase hexadecimal digits";
            Err(InvalidName { what: "token id", expected })
        }
    }
}

/// The text is not a valid team name or token id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}: expected {expected}")]
pub struct InvalidName {
    what: &'static str,
    expected: &'static str,
}

macro_rules! text_conversions {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

text_conversions!(TeamName);
text_conversions!(TokenId);

/// The team a run belongs to, and the token its cost is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOwner {
    /// The owning team.
    pub team: TeamName,
    /// The token that started the run; `None` for local runs.
    pub token: Option<TokenId>,
}

impl RunOwner {
    /// The owner of local runs.
    pub fn local() -> Self {
        Self { team: TeamName::local(), token: None }
    }
}

/// The caller of a request, as identified by its credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessCaller {
    /// No credential was sent.
    Nobody,
    /// The credential was never issued or has been deleted.
    Unknown,
    /// The credential has expired.
    Expired,
    /// The credential was revoked.
    Revoked,
    /// The credential is valid.
    Known(TeamMember),
}

/// A caller with a valid credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMember {
    /// The team and token it acts for.
    pub owner: RunOwner,
    /// What it may do.
    pub scopes: ScopeSet,
    /// How much it may do.
    pub limits: CredentialLimits,
}

/// The object of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessObject<'a> {
    /// Something without an owner, such as a company's filings, or the caller's own team as a
    /// whole.
    Common,
    /// An object of this team.
    Of(&'a TeamName),
    /// An object that does not exist.
    Missing,
}

/// Decides whether a caller may do something that needs `needed` to an object.
///
/// The scope is checked before the object, so a caller without the scope gets the same refusal for
/// every object.
pub fn decide(
    caller: &AccessCaller,
    needed: AccessScope,
    object: AccessObject<'_>,
) -> Result<(), AccessRefusal> {
    let member = match caller {
        AccessCaller::Nobody => return Err(AccessRefusal::SignInFirst),
        AccessCaller::Unknown => return Err(AccessRefusal::UnknownCredential),
        AccessCaller::Expired => return Err(AccessRefusal::ExpiredCredential),
        AccessCaller::Revoked => return Err(AccessRefusal::RevokedCredential),
        AccessCaller::Known(member) => member,
    };
    if !member.scopes.allow(needed) {
        return Err(AccessRefusal::ScopeMissing(needed));
    }
    match object {
        AccessObject::Common => Ok(()),
        AccessObject::Of(team) if *team == member.owner.team => Ok(()),
        AccessObject::Of(_) | AccessObject::Missing => Err(AccessRefusal::NotThere),
    }
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    /// No credential was sent.
    #[error("sign-in required")]
    SignInFirst,
    /// The credential was never issued or has been deleted.
    #[error("unknown credential")]
    UnknownCredential,
    /// The credential has expired.
    #[error("the credential has expired")]
    ExpiredCredential,
    /// The credential was revoked.
    #[error("the credential was revoked")]
    RevokedCredential,
    /// The credential is valid but lacks this scope.
    #[error("the credential lacks the scope `{0}`")]
    ScopeMissing(AccessScope),
    /// The object does not exist or belongs to another team.
    #[error("not found")]
    NotThere,
}

impl AccessRefusal {
    /// The machine-readable error code.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::SignInFirst => ErrorCode::SignInFirst,
            Self::UnknownCredential => ErrorCode::UnknownCredential,
            Self::ExpiredCredential => ErrorCode::ExpiredCredential,
            Self::RevokedCredential => ErrorCode::RevokedCredential,
            Self::ScopeMissing(_) => ErrorCode::ScopeMissing,
            Self::NotThere => ErrorCode::NotFound,
        }
    }

    /// How to fix it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::SignInFirst => {
                "open the link that `moothall login` prints, or send `Authorization: Bearer moot_…`"
            }
            Self::UnknownCredential => {
                "sign in again; `moothall token list` shows all issued tokens"
            }
            Self::ExpiredCredential | Self::RevokedCredential => {
                "sign in again, or create a new token with `moothall token create`"
            }
            Self::ScopeMissing(_) => {
                "use a token with this scope; `moothall token create --scope SCOPE` creates one"
            }
            Self::NotThere => "`GET /api/runs` lists your team's runs",
        }
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
