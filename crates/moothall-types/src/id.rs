//! Ids that stay the same across replays.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Ids are journal keys and trace names, and a guest may propose them, so their length is limited.
const MAX_EFFECT_ID_BYTES: usize = 200;

/// The path of an effect within its run, such as `m7/round-3/critic/D2`.
///
/// It is the journal key, the name of the trace span and the subject of the event. It describes the
/// effect and must never contain a counter that depends on the order in which replies arrive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(ts_rs::TS)]
#[ts(type = "string")]
pub struct EffectId(Arc<str>);

impl EffectId {
    /// Appends one segment.
    pub fn child(&self, segment: &str) -> Result<Self, InvalidId> {
        format!("{}/{segment}", self.0).parse()
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EffectId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let plain = |segment: &str| {
            !segment.is_empty()
                && segment.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        if text.len() <= MAX_EFFECT_ID_BYTES && text.split('/').all(plain) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidId {
                what: "effect id",
                expected: "segments of letters, digits, - and _ joined by /",
            })
        }
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a run: a lowercase UUID (version 7, so ids sort by start time).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(ts_rs::TS)]
#[ts(type = "string")]
pub struct RunId(Arc<str>);

impl RunId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let shaped = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            });
        if shaped {
            Ok(Self(text.into()))
        } else {
            Err(InvalidId { what: "run id", expected: "a lowercase UUID" })
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}: expected {expected}")]
pub struct InvalidId {
    what: &'static str,
    expected: &'static str,
}

/// Deserialization goes through the parser, so a file cannot contain an invalid id.
macro_rules! string_conversions {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> Self {
                id.0.as_ref().to_owned()
            }
        }
    };
}

string_conversions!(EffectId);
string_conversions!(RunId);

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
