//! Which program a worker is.

use std::fmt;
use std::str::FromStr;

/// The longest name of a build.
const MAX_CHARS: usize = 40;

/// A program that workers run. Runs end on the build that they began on, so what calls itself the same
/// build must do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build(String);

/// Not a name of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has at most {MAX_CHARS} letters, digits, dots, dashes and underscores")]
pub struct InvalidBuild;

impl Build {
    pub(crate) fn of_version() -> Self {
        Self(env!("CARGO_PKG_VERSION").to_owned())
    }

    /// The service that drives children for workers of this build, and for nobody else.
    pub(crate) fn debate(&self) -> String {
        format!("Debate-{self}")
    }
}

impl FromStr for Build {
    type Err = InvalidBuild;

    fn from_str(text: &str) -> Result<Self, InvalidBuild> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        match (1..=MAX_CHARS).contains(&text.len()) && text.chars().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidBuild),
        }
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
