//! Paths inside a guest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const MAX_BYTES: usize = 400;

const MAX_PARTS: usize = 16;

/// A relative path without `..`, `.`, empty parts, control characters or backslashes. It can be
/// joined to a folder on the host or in the guest without leaving it, as long as links are not
/// followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(ts_rs::TS)]
#[ts(type = "string")]
pub struct GuestPath(String);

impl GuestPath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts from left to right; at least one.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl FromStr for GuestPath {
    type Err = InvalidGuestPath;

    fn from_str(text: &str) -> Result<Self, InvalidGuestPath> {
        let plain = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part.len() <= 255
                && !part.chars().any(|c| c.is_control() || c == '\\')
        };
        let fits = text.len() <= MAX_BYTES && text.split('/').count() <= MAX_PARTS;
        if fits && text.split('/').all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidGuestPath)
        }
    }
}

impl TryFrom<String> for GuestPath {
    type Error = InvalidGuestPath;

    fn try_from(text: String) -> Result<Self, InvalidGuestPath> {
        text.parse()
    }
}

impl From<GuestPath> for String {
    fn from(path: GuestPath) -> Self {
        path.0
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not a valid guest path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a short relative path without `..`")]
pub struct InvalidGuestPath;
