//! The SEC's number for a filer.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A central index key: at most ten digits, written with leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cik(u64);

const MAX_CIK: u64 = 9_999_999_999;

impl Cik {
    /// Returns `None` for zero and for more than ten digits.
    pub const fn new(number: u64) -> Option<Self> {
        if number >= 1 && number <= MAX_CIK { Some(Self(number)) } else { None }
    }

    /// Parses up to ten digits, with or without leading zeros.
    pub fn parse(digits: &str) -> Option<Self> {
        let plain =
            (1..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        if plain { Self::new(digits.parse().ok()?) } else { None }
    }

    /// The key without leading zeros, as used in filing URLs.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Cik {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

impl Serialize for Cik {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cik {
    /// The SEC's service returns a number for some filers and a zero-padded string for others.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum CikJson {
            Number(u64),
            Text(String),
        }
        let cik = match CikJson::deserialize(deserializer)? {
            CikJson::Number(number) => Self::new(number),
            CikJson::Text(digits) => Self::parse(&digits),
        };
        cik.ok_or_else(|| {
            de::Error::custom("a CIK must have one to ten digits and must not be zero")
        })
    }
}

#[cfg(test)]
#[path = "cik_tests.rs"]
mod tests;
