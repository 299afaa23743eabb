//! The verdicts on claims and their consequences.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FindingSeverity, RuleId, RunFinding};

/// Limit on the message of a finding, in characters.
const MAX_MESSAGE: usize = 400;

/// The result of checking one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// Equals the cited fact at the printed precision.
    Ok,
    /// Follows from the cited facts by arithmetic.
    OkDerived,
    /// The cited fact with its last digit truncated instead of rounded, or rounded twice.
    Rounding,
    /// Marked as an assumption.
    Assumption,
    /// Stated by the cited passage or headline.
    Evidence,
    /// Nothing is cited, but a fact that would support it exists.
    Uncited,
    /// The cited metric in another period.
    WrongPeriod,
    /// The cited fact at another scale.
    WrongScale,
    /// The cited fact with the opposite sign or direction.
    WrongSign,
    /// A metric other than the cited one, or words that are not in the cited source.
    Miscited,
    /// Differs from the cited source.
    WrongValue,
    /// The citation refers to nothing that exists.
    BadCitation,
    /// The words name a period other than the cited one.
    PeriodText,
    /// A number about the future that is not marked as an assumption.
    Projection,
    /// No source supports it.
    Unsupported,
    /// Beyond a limit of the check, and therefore not checked.
    Unchecked,
}

impl ClaimVerdict {
    /// Every verdict, harmless ones first.
    pub const ALL: [Self; 16] = [
        Self::Ok,
        Self::OkDerived,
        Self::Rounding,
        Self::Assumption,
        Self::Evidence,
        Self::Uncited,
        Self::WrongPeriod,
        Self::WrongScale,
        Self::WrongSign,
        Self::Miscited,
        Self::WrongValue,
        Self::BadCitation,
        Self::PeriodText,
        Self::Projection,
        Self::Unsupported,
        Self::Unchecked,
    ];

    /// Whether the claim must be pointed out to the reader.
    pub const fn is_flagged(self) -> bool {
        match self {
            Self::Ok | Self::OkDerived | Self::Rounding | Self::Assumption | Self::Evidence => {
                false
            }
            Self::Uncited
            | Self::WrongPeriod
            | Self::WrongScale
            | Self::WrongSign
            | Self::Miscited
            | Self::WrongValue
            | Self::BadCitation
            | Self::PeriodText
            | Self::Projection
            | Self::Unsupported
            | Self::Unchecked => true,
        }
    }

    /// Whether the text contradicts its own sources or could not be checked. Such a text must not
    /// be ranked before a person has reviewed it.
    pub const fn blocks_ranking(self) -> bool {
        matches!(self.severity(), Some(FindingSeverity::Escalate))
    }

    /// Whether a source supports the number.
    pub const fn is_supported(self) -> bool {
        matches!(self, Self::Ok | Self::OkDerived | Self::Rounding | Self::Evidence)
    }

    /// The severity as a finding, or `None` if the verdict is not a finding.
    pub const fn severity(self) -> Option<FindingSeverity> {
        match self {
            Self::Ok | Self::OkDerived | Self::Assumption | Self::Evidence => None,
            Self::Rounding => Some(FindingSeverity::Note),
            Self::Uncited | Self::PeriodText | Self::Projection | Self::Unsupported => {
                Some(FindingSeverity::Warn)
            }
            Self::WrongPeriod
            | Self::WrongScale
            | Self::WrongSign
            | Self::Miscited
            | Self::WrongValue
            | Self::BadCitation
            | Self::Unchecked => Some(FindingSeverity::Escalate),
        }
    }

    /// The rule id used in findings.
    pub const fn rule(self) -> RuleId {
        RuleId::new(match self {
            Self::Ok => "claims.ok",
            Self::OkDerived => "claims.ok-derived",
            Self::Rounding => "claims.rounding",
            Self::Assumption => "claims.assumption",
            Self::Evidence => "claims.evidence",
            Self::Uncited => "claims.uncited",
            Self::WrongPeriod => "claims.wrong-period",
            Self::WrongScale => "claims.wrong-scale",
            Self::WrongSign => "claims.wrong-sign",
            Self::Miscited => "claims.miscited",
            Self::WrongValue => "claims.wrong-value",
            Self::BadCitation => "claims.bad-citation",
            Self::PeriodText => "claims.period-text",
            Self::Projection => "claims.projection",
            Self::Unsupported => "claims.unsupported",
            Self::Unchecked => "claims.unchecked",
        })
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "OK",
            Self::OkDerived => "OK_DERIVED",
            Self::Rounding => "ROUNDING",
            Self::Assumption => "ASSUMPTION",
            Self::Evidence => "EVIDENCE",
            Self::Uncited => "UNCITED",
            Self::WrongPeriod => "WRONG_PERIOD",
            Self::WrongScale => "WRONG_SCALE",
            Self::WrongSign => "WRONG_SIGN",
            Self::Miscited => "MISCITED",
            Self::WrongValue => "WRONG_VALUE",
            Self::BadCitation => "BAD_CITATION",
            Self::PeriodText => "PERIOD_TEXT",
            Self::Projection => "PROJECTION",
            Self::Unsupported => "UNSUPPORTED",
            Self::Unchecked => "UNCHECKED",
        })
    }
}

/// The kind of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A number; only these count in [`ClaimSupport`].
    Number,
    /// A citation that refers to nothing.
    Citation,
    /// A quotation, a date, an item or a period in words.
    Words,
    /// A limit of the check that the text exceeds.
    Bound,
}

/// One claim of a text and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Index of the sentence from 0, as split by [`super::sentences`].
    pub sentence: u32,
    /// The kind of claim.
    pub kind: ClaimKind,
    /// The claim as printed.
    pub printed: String,
    /// The result of the check.
    pub verdict: ClaimVerdict,
    /// The reason: the fact and its value, or what is missing.
    pub detail: String,
}

impl Claim {
    /// Turns the claim into a finding about `subject`, such as a move; `None` if the verdict is not
    /// a finding.
    pub fn finding(&self, subject: &str) -> Option<RunFinding> {
        let severity = self.verdict.severity()?;
        let place = self.sentence.saturating_add(1);
        let message = if self.detail.is_empty() {
            format!("sentence {place}: \"{}\" is {}", self.printed, self.verdict)
        } else {
            format!("sentence {place}: \"{}\" is {}: {}", self.printed, self.verdict, self.detail)
        };
        Some(RunFinding {
            rule: self.verdict.rule(),
            severity,
            subject: subject.to_owned(),
            message: message.chars().take(MAX_MESSAGE).collect(),
            evidence: Vec::new(),
        })
    }
}

/// Counts of a text's numbers by support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimSupport {
    /// Numbers supported by a cited source.
    pub supported: u32,
    /// Numbers marked as assumptions.
    pub assumed: u32,
    /// Numbers that are flagged.
    pub flagged: u32,
    /// All numbers: the sum of the other three.
    pub total: u32,
}

impl ClaimSupport {
    /// Counts the number claims.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut support = Self::default();
        for claim in claims.into_iter().filter(|claim| claim.kind == ClaimKind::Number) {
            support.total += 1;
            if claim.verdict.is_supported() {
                support.supported += 1;
            } else if claim.verdict.is_flagged() {
                support.flagged += 1;
            } else {
                support.assumed += 1;
            }
        }
        support
    }

    /// Adds two counts, such as those of all moves of a run.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            supported: self.supported.saturating_add(other.supported),
            assumed: self.assumed.saturating_add(other.assumed),
            flagged: self.flagged.saturating_add(other.flagged),
            total: self.total.saturating_add(other.total),
        }
    }

    /// Supported numbers per thousand; `None` if there are no numbers.
    pub fn per_thousand(self) -> Option<u32> {
        let share = (u64::from(self.supported) * 1000).checked_div(u64::from(self.total))?;
        u32::try_from(share).ok()
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
