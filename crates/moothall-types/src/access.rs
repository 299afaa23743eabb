//! Who may do what in a server that several people use.
//!
//! A server finds out who calls ([`Caller`]) and what they call about ([`Object`]); [`decide`] says
//! whether they may. Every run belongs to a team. What belongs to another team is treated exactly
//! as what does not exist, so that nobody learns from an answer that there is something to find.

mod limits;
mod scope;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::ErrorCode;
use serde::{Deserialize, Serialize};

pub use self::limits::{Excess, InUse, Limits, Pace, Wait, admit};
pub use self::scope::{Scope, Scopes, UnknownScope};

/// The longest name of a team.
const MAX_TEAM_NAME_BYTES: usize = 40;

/// How many digits the id of a token has.
const TOKEN_ID_DIGITS: usize = 12;

/// The name of a team: what everything in a server belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TeamName(Arc<str>);

impl TeamName {
    /// The team of whoever uses the program on their own machine. It is always there.
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
            let expected = "at most 40 small letters, digits and dashes, a letter first";
            Err(InvalidName { what: "name of a team", expected })
        }
    }
}

/// What a token is called in lists and logs. It says nothing about the token's secret.
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
            let expected = "12 digits of 0 to 9 and a to f";
            Err(InvalidName { what: "id of a token", expected })
        }
    }
}

/// A text that is not the name it should be.
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

/// Whom a run belongs to, and who answers for what it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The team.
    pub team: TeamName,
    /// The token with which it was started; none where it was started on the machine itself.
    pub token: Option<TokenId>,
}

impl Owner {
    /// Whoever uses the program on their own machine.
    pub fn local() -> Self {
        Self { team: TeamName::local(), token: None }
    }
}

/// Who calls, as far as their credential says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Someone without a credential.
    Nobody,
    /// Someone with a credential that was never given out, or is forgotten.
    Unknown,
    /// Someone whose credential has had its time.
    Expired,
    /// Someone whose credential was taken back.
    Revoked,
    /// Someone we know.
    Known(Member),
}

/// Someone with a credential that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Whom they act for.
    pub owner: Owner,
    /// What they may do there.
    pub scopes: Scopes,
    /// How much of it.
    pub limits: Limits,
}

/// What someone calls about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    /// Something that belongs to nobody, such as what a company filed, or the caller's own team as
    /// a whole.
    Common,
    /// Something of this team.
    Of(&'a TeamName),
    /// Something that does not exist.
    Missing,
}

/// Whether a caller may do something that needs a scope, to an object.
///
/// The scope is looked at before the object: whoever may not do a thing hears the same, whatever
/// they would do it to.
pub fn decide(caller: &Caller, needed: Scope, object: Object<'_>) -> Result<(), Refusal> {
    let member = match caller {
        Caller::Nobody => return Err(Refusal::SignInFirst),
        Caller::Unknown => return Err(Refusal::UnknownCredential),
        Caller::Expired => return Err(Refusal::ExpiredCredential),
        Caller::Revoked => return Err(Refusal::RevokedCredential),
        Caller::Known(member) => member,
    };
    if !member.scopes.allow(needed) {
        return Err(Refusal::ScopeMissing(needed));
    }
    match object {
        Object::Common => Ok(()),
        Object::Of(team) if *team == member.owner.team => Ok(()),
        Object::Of(_) | Object::Missing => Err(Refusal::NotThere),
    }
}

/// Why someone may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There was no credential.
    #[error("this needs a credential")]
    SignInFirst,
    /// The credential is none that was given out.
    #[error("this credential is not known here")]
    UnknownCredential,
    /// The credential has had its time.
    #[error("this credential has expired")]
    ExpiredCredential,
    /// The credential was taken back.
    #[error("this credential was revoked")]
    RevokedCredential,
    /// The credential counts, and does not cover this.
    #[error("this needs the scope `{0}`")]
    ScopeMissing(Scope),
    /// There is no such thing, or it belongs to another team.
    #[error("there is no such thing here")]
    NotThere,
}

impl Refusal {
    /// Its name for programs.
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

    /// What a person can do about it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::SignInFirst => {
                "open the link that `moothall login` prints, or send `Authorization: Bearer moot_…`"
            }
            Self::UnknownCredential => {
                "sign in again; `moothall token list` shows the tokens that were given out"
            }
            Self::ExpiredCredential | Self::RevokedCredential => {
                "sign in again; `moothall token create` makes a new token"
            }
            Self::ScopeMissing(_) => "`moothall token create --scope` makes a token that covers it",
            Self::NotThere => "`GET /api/runs` lists what your team has",
        }
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
