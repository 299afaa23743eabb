//! Permissions of a credential.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessScope {
    /// View the team's data.
    Read,
    /// Start runs, which costs money, and pause, resume and cancel them.
    Run,
    /// Review as a person: approve, veto, edit and add moves.
    Review,
    /// Everything, including managing the team's tokens.
    Admin,
}

impl AccessScope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Review, Self::Admin];

    /// The name used in the database and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Review => "review",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for AccessScope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(UnknownScope)
    }
}

/// The text is not the name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope: expected read, run, review or admin")]
pub struct UnknownScope;

/// The scopes of a credential; at least one.
///
/// `run` and `review` do not include each other: a program that starts runs must not approve them
/// in a person's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScopeSet {
    read: bool,
    run: bool,
    review: bool,
    admin: bool,
}

impl ScopeSet {
    /// A set with a single scope.
    pub fn only(scope: AccessScope) -> Self {
        Self {
            read: scope == AccessScope::Read,
            run: scope == AccessScope::Run,
            review: scope == AccessScope::Review,
            admin: scope == AccessScope::Admin,
        }
    }

    /// A set with every scope.
    pub fn all() -> Self {
        Self { read: true, run: true, review: true, admin: true }
    }

    /// Adds a scope.
    #[must_use]
    pub fn and(self, scope: AccessScope) -> Self {
        let other = Self::only(scope);
        Self {
            read: self.read || other.read,
            run: self.run || other.run,
            review: self.review || other.review,
            admin: self.admin || other.admin,
        }
    }

    /// Whether these scopes include `needed`. Every scope includes `read`, and `admin` includes
    /// all.
    pub fn allow(self, needed: AccessScope) -> bool {
        match needed {
            AccessScope::Read => true,
            AccessScope::Run => self.run || self.admin,
            AccessScope::Review => self.review || self.admin,
            AccessScope::Admin => self.admin,
        }
    }

    /// The granted scopes, without the ones they imply.
    pub fn iter(self) -> impl Iterator<Item = AccessScope> {
        let given = move |scope: &AccessScope| match scope {
            AccessScope::Read => self.read,
            AccessScope::Run => self.run,
            AccessScope::Review => self.review,
            AccessScope::Admin => self.admin,
        };
        AccessScope::ALL.into_iter().filter(given)
    }
}

impl fmt::Display for ScopeSet {
    /// Comma-separated, such as `run,review`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(AccessScope::as_str).collect();
        f.pad(&words.join(","))
    }
}

impl FromStr for ScopeSet {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let mut words = text.split(',').map(str::parse);
        let first = Self::only(words.next().ok_or(UnknownScope)??);
        words.try_fold(first, |scopes, scope| Ok(scopes.and(scope?)))
    }
}

impl TryFrom<String> for ScopeSet {
    type Error = UnknownScope;

    fn try_from(text: String) -> Result<Self, UnknownScope> {
        text.parse()
    }
}

impl From<ScopeSet> for String {
    fn from(scopes: ScopeSet) -> Self {
        scopes.to_string()
    }
}
