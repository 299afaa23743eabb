//! What can be said about a claim, and what follows from it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Finding, RuleId, Severity};

/// The longest message of a finding, in characters.
const MAX_MESSAGE: usize = 400;

/// What the check says about one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// It is the cited fact, as printed.
    Ok,
    /// It follows from the cited facts by arithmetic.
    OkDerived,
    /// The cited fact with its last digit cut instead of rounded, or rounded twice.
    Rounding,
    /// It is marked as an assumption.
    Assumption,
    /// The cited passage or headline says it.
    Evidence,
    /// Nothing is cited, and a fact that would support it exists.
    Uncited,
    /// The cited metric, in another period.
    WrongPeriod,
    /// The cited fact, in another scale.
    WrongScale,
    /// The cited fact, with the other sign or direction.
    WrongSign,
    /// Another metric than the cited one, or words that the cited source does not have.
    Miscited,
    /// Not what the cited source says.
    WrongValue,
    /// The citation names nothing that exists.
    BadCitation,
    /// The words name another period than the citation.
    PeriodText,
    /// A number about the future that is not marked as an assumption.
    Projection,
    /// Nothing supports it.
    Unsupported,
    /// Beyond the bounds of the check: nobody looked.
    Unchecked,
}

impl ClaimVerdict {
    /// Every verdict, the harmless ones first.
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

    /// Whether a reader must be told.
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

    /// Whether the text contradicts its own sources, or could not be checked: it may not be ranked
    /// before a person has looked.
    pub const fn holds_back(self) -> bool {
        matches!(self.severity(), Some(Severity::Escalate))
    }

    /// Whether a source stands behind the number.
    pub const fn is_supported(self) -> bool {
        matches!(self, Self::Ok | Self::OkDerived | Self::Rounding | Self::Evidence)
    }

    /// The weight as a finding; none if there is nothing to find.
    pub const fn severity(self) -> Option<Severity> {
        match self {
            Self::Ok | Self::OkDerived | Self::Assumption | Self::Evidence => None,
            Self::Rounding => Some(Severity::Note),
            Self::Uncited | Self::PeriodText | Self::Projection | Self::Unsupported => {
                Some(Severity::Warn)
            }
            Self::WrongPeriod
            | Self::WrongScale
            | Self::WrongSign
            | Self::Miscited
            | Self::WrongValue
            | Self::BadCitation
            | Self::Unchecked => Some(Severity::Escalate),
        }
    }

    /// The rule that speaks in a finding.
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

/// What kind of thing a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A number; only these count in [`Support`].
    Number,
    /// A citation that names nothing.
    Citation,
    /// A quotation, a date, an item or a period in words.
    Words,
    /// A bound of the check that the text exceeds.
    Bound,
}

/// One thing that a text claims, and what the check says about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The sentence, counted from 0 as [`super::sentences`] divides the text.
    pub sentence: u32,
    /// What kind of thing it is.
    pub kind: ClaimKind,
    /// The claim as it is printed.
    pub printed: String,
    /// What the check says.
    pub verdict: ClaimVerdict,
    /// Why: the fact and its value, or what is missing.
    pub detail: String,
}

impl Claim {
    /// The finding that it makes about `subject`, such as a move; none if there is nothing to find.
    pub fn finding(&self, subject: &str) -> Option<Finding> {
        let severity = self.verdict.severity()?;
        let place = self.sentence.saturating_add(1);
        let message = if self.detail.is_empty() {
            format!("sentence {place}: \"{}\" is {}", self.printed, self.verdict)
        } else {
            format!("sentence {place}: \"{}\" is {}: {}", self.printed, self.verdict, self.detail)
        };
        Some(Finding {
            rule: self.verdict.rule(),
            severity,
            subject: subject.to_owned(),
            message: message.chars().take(MAX_MESSAGE).collect(),
            evidence: Vec::new(),
        })
    }
}

/// How many of a text's numbers have a source behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// Numbers that a cited source supports.
    pub supported: u32,
    /// Numbers that are marked as assumptions.
    pub assumed: u32,
    /// Numbers that are flagged.
    pub flagged: u32,
    /// All numbers; the sum of the three.
    pub total: u32,
}

impl Support {
    /// Counts the numbers among the claims.
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

    /// Both counts together, such as those of all moves of a run.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            supported: self.supported.saturating_add(other.supported),
            assumed: self.assumed.saturating_add(other.assumed),
            flagged: self.flagged.saturating_add(other.flagged),
            total: self.total.saturating_add(other.total),
        }
    }

    /// Supported numbers of a thousand; none where there are no numbers.
    pub fn per_thousand(self) -> Option<u32> {
        let share = (u64::from(self.supported) * 1000).checked_div(u64::from(self.total))?;
        u32::try_from(share).ok()
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
