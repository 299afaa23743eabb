//! Findings and the verdict derived from them.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of one check. Code and models may add findings; a model can never remove one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(ts_rs::TS)]
pub struct RunFinding {
    /// The rule that was checked, such as `output.schema`.
    pub rule: RuleId,
    /// How serious it is.
    pub severity: FindingSeverity,
    /// The subject: an effect id, a path or a move.
    pub subject: String,
    /// What was found, for people.
    pub message: String,
    /// Supporting evidence: citations, lines or hashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl RunFinding {
    /// Creates a finding without evidence.
    pub fn new(
        rule: &'static str,
        severity: FindingSeverity,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let (rule, subject, message) = (RuleId::new(rule), subject.into(), message.into());
        Self { rule, severity, subject, message, evidence: Vec::new() }
    }
}

/// The name of a rule: an area and a rule, joined by a dot.
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
            _ => Err("expected an area and a rule joined by a dot"),
        }
    }
}

impl From<RuleId> for String {
    fn from(rule: RuleId) -> Self {
        rule.0.into_owned()
    }
}

impl RuleId {
    /// A rule defined in code.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The severity of a finding, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum FindingSeverity {
    /// For information.
    Note,
    /// Should be looked at, but does not affect the verdict.
    Warn,
    /// A person must decide.
    Escalate,
    /// Fails the check.
    Block,
}

/// The overall result of a set of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(ts_rs::TS)]
pub enum RunVerdict {
    /// No finding requires action.
    Pass,
    /// A person must decide.
    NeedsPerson,
    /// It failed.
    Fail,
}

impl RunVerdict {
    /// Derives the verdict from the highest severity alone, so it can be recomputed by anyone.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a RunFinding>) -> Self {
        match findings.into_iter().map(|finding| finding.severity).max() {
            None | Some(FindingSeverity::Note | FindingSeverity::Warn) => Self::Pass,
            Some(FindingSeverity::Escalate) => Self::NeedsPerson,
            Some(FindingSeverity::Block) => Self::Fail,
        }
    }
}

impl fmt::Display for RunVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::NeedsPerson => "needs-person",
            Self::Fail => "fail",
        })
    }
}
