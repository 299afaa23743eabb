//! Item codes: the subjects of a form 8-K.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// More than form 8-K defines.
const MAX_ITEMS: usize = 40;

/// An item code such as `2.02`; filings before August 2004 use whole numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemCode(String);

impl ItemCode {
    /// Parses `2.02` or, for old filings, `5`.
    pub fn parse(text: &str) -> Option<Self> {
        let (section, item) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let sound = (1..=2).contains(&section.len())
            && digits(section)
            && item.is_none_or(|item| item.len() == 2 && digits(item));
        sound.then(|| Self(text.to_owned()))
    }

    /// Parses `2.02,9.01`, as in the list of filings. Invalid codes are skipped.
    pub fn list(text: &str) -> Vec<Self> {
        text.split(',').filter_map(|code| Self::parse(code.trim())).take(MAX_ITEMS).collect()
    }

    /// The code as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The description of the code, if known.
    pub fn description(&self) -> Option<&'static str> {
        ITEM_DESCRIPTIONS.iter().find(|(code, _)| *code == self.0).map(|(_, words)| *words)
    }

    /// Whether it announces the results of a period.
    pub fn is_results(&self) -> bool {
        self.0 == "2.02"
    }

    /// Exhibits accompany other items and carry no information themselves.
    pub(crate) fn is_attachment(&self) -> bool {
        self.0 == "9.01"
    }
}

impl fmt::Display for ItemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ItemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ItemCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("expected an item code like 2.02"))
    }
}

/// The items of form 8-K in force since August 2004, described in our words.
const ITEM_DESCRIPTIONS: &[(&str, &str)] = &[
    ("1.01", "entry into a material agreement"),
    ("1.02", "end of a material agreement"),
    ("1.03", "bankruptcy or receivership"),
    ("1.04", "mine safety report"),
    ("1.05", "material cybersecurity incident"),
    ("2.01", "completed acquisition or sale of assets"),
    ("2.02", "results of operations and financial condition"),
    ("2.03", "new direct financial obligation"),
    ("2.04", "event that accelerates a financial obligation"),
    ("2.05", "costs of exit or disposal activities"),
    ("2.06", "material impairment"),
    ("3.01", "notice of delisting or of a listing rule not met"),
    ("3.02", "unregistered sale of equity"),
    ("3.03", "change to the rights of security holders"),
    ("4.01", "change of auditor"),
    ("4.02", "earlier financial statements can no longer be relied on"),
    ("5.01", "change in control"),
    ("5.02", "departure, election or pay of directors or officers"),
    ("5.03", "change of articles, bylaws or fiscal year"),
    ("5.04", "suspended trading under employee plans"),
    ("5.05", "change to the code of ethics"),
    ("5.06", "change of shell company status"),
    ("5.07", "votes of shareholders"),
    ("5.08", "director nominations by shareholders"),
    ("6.01", "asset-backed securities: information"),
    ("6.02", "asset-backed securities: change of servicer or trustee"),
    ("6.03", "asset-backed securities: change in credit support"),
    ("6.04", "asset-backed securities: missed distribution"),
    ("6.05", "asset-backed securities: updated disclosure"),
    ("6.06", "asset-backed securities: static pool"),
    ("7.01", "disclosure to all investors at once (Regulation FD)"),
    ("8.01", "other event"),
    ("9.01", "financial statements and exhibits"),
];

#[cfg(test)]
#[path = "item_code_tests.rs"]
mod tests;
