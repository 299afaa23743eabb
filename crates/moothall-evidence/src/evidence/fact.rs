//! A number with its meaning and source.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::day::CalendarDay;
use super::error::EvidenceError;
use super::period::FiscalPeriod;

/// The id of a fact: `Revenue:FY2025`. Its citation is `[F0:Revenue:FY2025]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId {
    /// The metric, such as `Revenue` or `Revenue.yoy`; a row of the table.
    pub metric: String,
    /// The period; a column of the table.
    pub period: FiscalPeriod,
}

/// Limit on the length of a metric name, because ids come from models.
const MAX_METRIC_BYTES: usize = 60;

impl FactId {
    /// Builds an id from a metric and a period.
    pub fn new(metric: impl Into<String>, period: FiscalPeriod) -> Self {
        Self { metric: metric.into(), period }
    }

    /// Parses `Revenue:FY2025`, with the period in any spelling accepted by [`FiscalPeriod::parse`].
    pub fn parse(text: &str) -> Option<Self> {
        let (metric, period) = text.split_once(':')?;
        let metric = metric.trim();
        let plain = (1..=MAX_METRIC_BYTES).contains(&metric.len())
            && metric.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        if plain { Some(Self::new(metric, FiscalPeriod::parse(period)?)) } else { None }
    }

    /// Whether the fact is a change of a ratio, which is expressed in percentage points.
    pub fn is_change(&self) -> bool {
        self.metric.ends_with(".delta")
    }
}

impl FromStr for FactId {
    type Err = EvidenceError;

    fn from_str(text: &str) -> Result<Self, EvidenceError> {
        Self::parse(text).ok_or_else(|| EvidenceError::Invalid {
            what: "fact id",
            reason: "expected a form like Revenue:FY2025".to_owned(),
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
            .ok_or_else(|| de::Error::custom("expected a fact id like Revenue:FY2025"))
    }
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactUnit {
    /// Whole units of the sheet's currency.
    Money,
    /// The sheet's currency per share.
    PerShare,
    /// Shares.
    Shares,
    /// A fraction: 0.25 is 25 %.
    Ratio,
    /// A multiple: 1.5 is 1.5x.
    Multiple,
    /// Days.
    Days,
}

/// A value and its source. Its id is its key in the sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The value in units, not in thousands or millions.
    pub value: Decimal,
    /// The unit of the value.
    pub unit: FactUnit,
    /// The source of the value.
    pub source: FactSource,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactSource {
    /// Reported in a filing.
    Filed(Box<FilingSource>),
    /// Computed here from other facts.
    Derived {
        /// The computation in terms of metrics.
        formula: String,
        /// The facts it was computed from.
        inputs: Vec<FactId>,
    },
}

/// The filing behind a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilingSource {
    /// The tag with its taxonomy, such as `us-gaap:Revenues`.
    pub concept: String,
    /// The accession number of the filing.
    pub accession: String,
    /// The form, such as `10-K`.
    pub form: String,
    /// The filing date.
    pub filed: CalendarDay,
    /// The first day that the value covers; `None` for a balance.
    pub start: Option<CalendarDay>,
    /// The last day that the value covers.
    pub end: CalendarDay,
    /// The value of the first filing, if it was different.
    pub restated_from: Option<OriginalValue>,
    /// The share split adjustment applied to the filed value, if any.
    pub split: Option<SplitAdjustment>,
}

/// The value in the first filing of a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalValue {
    /// The first value.
    pub value: Decimal,
    /// The filing date of that value.
    pub filed: CalendarDay,
}

/// An adjustment for a share split that no later filing made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitAdjustment {
    /// The value as filed.
    pub as_filed: Decimal,
    /// New shares per old share, over all later splits.
    pub factor: u32,
}

impl Fact {
    /// The filing behind the value; `None` for a derived fact.
    pub fn filed(&self) -> Option<&FilingSource> {
        match &self.source {
            FactSource::Filed(filed) => Some(filed),
            FactSource::Derived { .. } => None,
        }
    }
}

#[cfg(test)]
#[path = "fact_tests.rs"]
mod tests;
