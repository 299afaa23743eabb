//! What there is to know before a run: companies, their facts, committees.

use moothall_core::evidence::Day;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text to check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct CheckText {
    /// The company that it is about.
    pub ticker: String,
    /// The text.
    pub text: String,
    /// Only what was filed on or before this day.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "string | null"))]
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Day>,
}

/// Which facts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FactsQuery {
    /// Only what was filed on or before this day.
    #[schemars(with = "Option<String>")]
    pub as_of: Option<Day>,
    /// Takes a company that has filed no annual report for 18 months.
    pub allow_stale: bool,
}

/// Companies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TickerList {
    /// Those that fit best first.
    pub tickers: Vec<TickerRow>,
}

/// A company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TickerRow {
    /// As listed.
    pub ticker: String,
    /// Its name.
    pub name: String,
    /// It exists to show how this program works.
    pub fictional: bool,
}

/// Committees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeList {
    /// The usual one first.
    pub committees: Vec<CommitteeRow>,
}

/// A committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommitteeRow {
    /// As a request names it.
    pub name: String,
    /// Rounds of each debate.
    pub rounds: u32,
    /// Moves that it proposes.
    pub moves: u32,
    /// Who proposes.
    pub analysts: Vec<SeatRow>,
    /// Who attacks.
    pub critic: SeatRow,
    /// Who defends and scores.
    pub decision_makers: Vec<SeatRow>,
    /// What is scored.
    pub metrics: Vec<String>,
}

/// A seat of a committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SeatRow {
    /// `D1`.
    pub id: String,
    /// What people call it.
    pub name: String,
}
