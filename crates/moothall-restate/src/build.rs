//! The build that a worker runs.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a build name.
const MAX_CHARS: usize = 40;

/// The name of a worker's program version. A run ends on the build it started on, so workers with
/// the same build name must behave identically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerBuild(String);

/// The text is not a valid build name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to {MAX_CHARS} letters, digits, dots, dashes or underscores")]
pub struct InvalidBuild;

impl WorkerBuild {
    pub(crate) fn of_version() -> Self {
        Self(env!("CARGO_PKG_VERSION").to_owned())
    }

    /// The service that drives children on workers of this build only.
    pub(crate) fn debate(&self) -> String {
        format!("Debate-{self}")
    }
}

impl FromStr for WorkerBuild {
    type Err = InvalidBuild;

    fn from_str(text: &str) -> Result<Self, InvalidBuild> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        match (1..=MAX_CHARS).contains(&text.len()) && text.chars().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidBuild),
        }
    }
}

impl fmt::Display for WorkerBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
