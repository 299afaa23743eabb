//! What a credential covers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One kind of thing that a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Look at what the team has.
    Read,
    /// Start runs, which costs money, and pause, resume and cancel them.
    Run,
    /// Say a person's word: approve, veto, edit and add moves.
    Review,
    /// Everything, and the tokens of the team.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Review, Self::Admin];

    /// The word as it stands in tables and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Review => "review",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// A word that is not the name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a scope: expected read, run, review or admin")]
pub struct UnknownScope;

/// The scopes that a credential was given; at least one.
///
/// `run` does not cover `review` and `review` does not cover `run`: a program that starts runs must
/// not say a person's word on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes {
    read: bool,
    run: bool,
    review: bool,
    admin: bool,
}

impl Scopes {
    /// One scope.
    pub fn only(scope: Scope) -> Self {
        Self {
            read: scope == Scope::Read,
            run: scope == Scope::Run,
            review: scope == Scope::Review,
            admin: scope == Scope::Admin,
        }
    }

    /// Every scope.
    pub fn all() -> Self {
        Self { read: true, run: true, review: true, admin: true }
    }

    /// This and another scope.
    #[must_use]
    pub fn and(self, scope: Scope) -> Self {
        let other = Self::only(scope);
        Self {
            read: self.read || other.read,
            run: self.run || other.run,
            review: self.review || other.review,
            admin: self.admin || other.admin,
        }
    }

    /// Whether something that needs this scope may be done. Every scope covers `read`, and `admin`
    /// covers every other.
    pub fn allow(self, needed: Scope) -> bool {
        match needed {
            Scope::Read => true,
            Scope::Run => self.run || self.admin,
            Scope::Review => self.review || self.admin,
            Scope::Admin => self.admin,
        }
    }

    /// The scopes as they were given.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        let given = move |scope: &Scope| match scope {
            Scope::Read => self.read,
            Scope::Run => self.run,
            Scope::Review => self.review,
            Scope::Admin => self.admin,
        };
        Scope::ALL.into_iter().filter(given)
    }
}

impl fmt::Display for Scopes {
    /// `run,review`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(Scope::as_str).collect();
        f.pad(&words.join(","))
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let mut words = text.split(',').map(str::parse);
        let first = Self::only(words.next().ok_or(UnknownScope)??);
        words.try_fold(first, |scopes, scope| Ok(scopes.and(scope?)))
    }
}

impl TryFrom<String> for Scopes {
    type Error = UnknownScope;

    fn try_from(text: String) -> Result<Self, UnknownScope> {
        text.parse()
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}
