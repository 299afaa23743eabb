//! Companies, their facts, and committees.

use moothall_core::evidence::CalendarDay;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Request to check a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct CheckTextRequest {
    /// Ticker of the company the text is about.
    pub ticker: String,
    /// The text to check.
    pub text: String,
    /// Use only filings made on or before this day.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "string | null"))]
    #[schemars(with = "Option<String>")]
    pub as_of: Option<CalendarDay>,
    /// Accept numbers that no source supports; they are still reported.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub lenient: bool,
}

/// Query parameters of the facts endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FactsQuery {
    /// Use only filings made on or before this day.
    #[schemars(with = "Option<String>")]
    pub as_of: Option<CalendarDay>,
    /// Accept a company that has filed no annual report for 18 months.
    pub allow_stale: bool,
}

/// A list of companies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TickerList {
    /// Best match first.
    pub tickers: Vec<TickerRow>,
}

/// A company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TickerRow {
    /// Ticker symbol.
    pub ticker: String,
    /// Company name.
    pub name: String,
    /// Whether this is a fictional company for demonstrations.
    pub fictional: bool,
}

/// A list of committees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeList {
    /// The default committee first.
    pub committees: Vec<CommitteeRow>,
}

/// A committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeRow {
    /// Name to use in requests.
    pub name: String,
    /// Rounds per debate.
    pub rounds: u32,
    /// Number of moves it proposes.
    pub moves: u32,
    /// Members that propose moves.
    pub analysts: Vec<MemberRow>,
    /// Member that attacks the moves.
    pub critic: MemberRow,
    /// Members that defend and score the moves.
    pub decision_makers: Vec<MemberRow>,
    /// Scored metrics.
    pub metrics: Vec<String>,
}

/// A member of a committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MemberRow {
    /// `D1`.
    pub id: String,
    /// Display name.
    pub name: String,
}
