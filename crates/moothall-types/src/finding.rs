//! Findings and the verdict that follows from them.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One structured observation from a check. Code or a model may add findings; a model may never
/// remove one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct Finding {
    /// Which rule speaks, such as `output.schema`.
    pub rule: RuleId,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is about: an effect id, a path, a move.
    pub subject: String,
    /// What was observed, for a person.
    pub message: String,
    /// What the observation rests on: citations, lines, hashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl Finding {
    /// A finding that rests on nothing but what it says.
    pub fn new(
        rule: &'static str,
        severity: Severity,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let (rule, subject, message) = (RuleId::new(rule), subject.into(), message.into());
        Self { rule, severity, subject, message, evidence: Vec::new() }
    }
}

/// The name of a rule: an area and a rule joined by a dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(ts_rs::TS)]
#[ts(type = "string")]
pub struct RuleId(Cow<'static, str>);

impl TryFrom<String> for RuleId {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
        };
        match name.split_once('.') {
            Some((area, rule)) if name.len() <= 60 && plain(area) && plain(rule) => {
                Ok(Self(Cow::Owned(name)))
            }
            _ => Err("a rule is an area and a rule joined by a dot"),
        }
    }
}

impl From<RuleId> for String {
    fn from(rule: RuleId) -> Self {
        rule.0.into_owned()
    }
}

impl RuleId {
    /// A rule that the code knows.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The weight of a finding, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth a look; changes nothing.
    Warn,
    /// A person must decide.
    Escalate,
    /// Cannot pass.
    Block,
}

/// What a trial comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum Verdict {
    /// Nothing stands against it.
    Pass,
    /// A person must decide.
    NeedsPerson,
    /// It failed.
    Fail,
}

impl Verdict {
    /// The verdict is a function of the heaviest finding and of nothing else, so anyone can derive
    /// it again.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        match findings.into_iter().map(|finding| finding.severity).max() {
            None | Some(Severity::Note | Severity::Warn) => Self::Pass,
            Some(Severity::Escalate) => Self::NeedsPerson,
            Some(Severity::Block) => Self::Fail,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::NeedsPerson => "needs-person",
            Self::Fail => "fail",
        })
    }
}
