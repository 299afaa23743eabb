//! One number with what it means and where it is from.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::day::Day;
use super::error::EvidenceError;
use super::period::Period;

/// The name of a fact: `Revenue:FY2025`. A citation of it is `[F0:Revenue:FY2025]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId {
    /// The row of the table, such as `Revenue` or `Revenue.yoy`.
    pub metric: String,
    /// The column of the table.
    pub period: Period,
}

/// The longest name of a metric we accept; ids come from models.
const MAX_METRIC_BYTES: usize = 60;

impl FactId {
    /// The id of a metric in a period.
    pub fn new(metric: impl Into<String>, period: Period) -> Self {
        Self { metric: metric.into(), period }
    }

    /// Reads `Revenue:FY2025`, the period in any spelling that [`Period::parse`] knows.
    pub fn parse(text: &str) -> Option<Self> {
        let (metric, period) = text.split_once(':')?;
        let metric = metric.trim();
        let plain = (1..=MAX_METRIC_BYTES).contains(&metric.len())
            && metric.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        if plain { Some(Self::new(metric, Period::parse(period)?)) } else { None }
    }

    /// Whether it is the change of a ratio, which is counted in percentage points.
    pub fn is_change(&self) -> bool {
        self.metric.ends_with(".delta")
    }
}

impl FromStr for FactId {
    type Err = EvidenceError;

    fn from_str(text: &str) -> Result<Self, EvidenceError> {
        Self::parse(text).ok_or_else(|| EvidenceError::Invalid {
            what: "fact id",
            reason: "it is written like Revenue:FY2025".to_owned(),
        })
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.metric, self.period)
    }
}

impl Serialize for FactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .filter(|id| id.to_string() == text)
            .ok_or_else(|| de::Error::custom("a fact id is written like Revenue:FY2025"))
    }
}

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Whole units of the sheet's currency.
    Money,
    /// The sheet's currency for each share.
    PerShare,
    /// Shares.
    Shares,
    /// A part of a whole: 0.25 is 25 %.
    Ratio,
    /// How many times: 1.5 is 1.5x.
    Multiple,
    /// Days.
    Days,
}

/// A value and its source. Its id is the key under which the sheet holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The value in units, not in thousands or millions.
    pub value: Decimal,
    /// What the value counts.
    pub unit: Unit,
    /// Where it is from.
    pub source: Source,
}

/// Where a value is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A filing says so.
    Filed(Box<Filed>),
    /// Computed by us from other facts.
    Derived {
        /// The computation in words of metrics.
        formula: String,
        /// The facts it was computed from.
        inputs: Vec<FactId>,
    },
}

/// The filing behind a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filed {
    /// The tag with its taxonomy, such as `us-gaap:Revenues`.
    pub concept: String,
    /// The accession number of the filing.
    pub accession: String,
    /// The form, such as `10-K`.
    pub form: String,
    /// The day it was filed.
    pub filed: Day,
    /// The first day that the value covers; a balance has none.
    pub start: Option<Day>,
    /// The last day that the value covers.
    pub end: Day,
    /// What an earlier filing said, if it said something else.
    pub restated_from: Option<Restated>,
    /// What we did to the filed value to bring it to today's shares, if anything.
    pub split: Option<SplitAdjustment>,
}

/// What the first filing of a period said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restated {
    /// The first value.
    pub value: Decimal,
    /// The day it was filed.
    pub filed: Day,
}

/// A value that no later filing restated for a share split, so that we did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitAdjustment {
    /// The value as the filing says it.
    pub as_filed: Decimal,
    /// New shares for one old share, over all splits since.
    pub factor: u32,
}

impl Fact {
    /// The filing behind the value; a derived one has none of its own.
    pub fn filed(&self) -> Option<&Filed> {
        match &self.source {
            Source::Filed(filed) => Some(filed),
            Source::Derived { .. } => None,
        }
    }
}

#[cfg(test)]
#[path = "fact_tests.rs"]
mod tests;
