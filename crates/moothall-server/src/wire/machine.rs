//! What the program and its machine have and have not.

use std::collections::BTreeMap;

use moothall_core::sandbox::{IsolationClass, LimitName, SelfTest};
use moothall_core::{MicroUsd, RuleId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the program has and has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Settings {
    /// The program's version.
    pub version: String,
    /// The model that is asked where nothing else is said, or nothing where there is none.
    pub model: Option<String>,
    /// Why there is none.
    pub model_problem: Option<String>,
    /// Whether keys are there. They are never shown.
    pub keys: Vec<KeyRow>,
    /// Whether the SEC can be asked: it wants to know who asks.
    pub contact: bool,
    /// Recorded filings are used instead of the SEC's service.
    pub offline: bool,
    /// Seconds that an answer of the demonstration takes.
    pub pace_ms: u64,
    /// What the configuration says about walls: `auto`, `microvm`, …
    pub isolation: String,
    /// Images that sandboxes can be made of.
    pub images: Vec<String>,
    /// The configured budget of one run.
    #[cfg_attr(test, ts(type = "number | null"))]
    #[schemars(with = "Option<u64>")]
    pub budget_micro_usd: Option<MicroUsd>,
}

/// A provider and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct KeyRow {
    /// `anthropic`.
    pub provider: String,
    /// Whether one is needed.
    pub needed: bool,
    /// Whether there is one.
    pub present: bool,
    /// How to set it.
    pub hint: Option<String>,
    /// The model that is asked where only the provider is named.
    pub default_model: Option<String>,
}

/// What the sandboxes of a machine are worth, found out by running them. `moothall doctor --json`
/// prints the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Doctor {
    /// When they were tried: milliseconds since 1970.
    pub tried_at_ms: u64,
    /// Each that this program knows.
    pub engines: Vec<EngineRow>,
    /// The one that programs run on; none where nothing is strong enough.
    pub chosen: Option<String>,
    /// How strong it is.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "IsolationClass | null"))]
    pub class: Option<IsolationClass>,
    /// Images that sandboxes can be made of.
    pub images: Vec<String>,
    /// Agents of this machine that have drafts and another way to write.
    pub ways_around: Vec<WayAroundRow>,
    /// Where runs are kept.
    pub runs: RunsKept,
}

/// An engine that starts sandboxes, as it was found. One that cannot be tried has a problem and
/// nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct EngineRow {
    /// `microvm`.
    pub engine: String,
    /// Whether everything held that was tried.
    pub works: bool,
    /// Why it cannot be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How strong it is, where everything held.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "IsolationClass | null"))]
    pub class: Option<IsolationClass>,
    /// What was tried in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")]
    #[cfg_attr(test, ts(type = "{ rule: string; held: boolean }[] | null"))]
    pub self_tests: Option<Vec<SelfTest>>,
    /// What did not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    #[cfg_attr(test, ts(type = "string[] | null"))]
    pub faults: Option<Vec<RuleId>>,
    /// Who holds each limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    #[cfg_attr(test, ts(type = "Record<string, string> | null"))]
    pub held_by: Option<BTreeMap<LimitName, String>>,
    /// Limits that nobody holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    #[cfg_attr(test, ts(type = "string[] | null"))]
    pub limits_not_held: Option<Vec<LimitName>>,
    /// From the wish to a sandbox that is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// From there to the program's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<u64>,
    /// What would make it work, or better.
    pub advice: Option<String>,
}

/// A file that gives an agent drafts, and another server with which it needs none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WayAroundRow {
    /// The configuration of the agent.
    pub file: String,
    /// What leads around drafts.
    pub server: String,
}

/// Where runs are kept: in a file, or in a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct RunsKept {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Server and name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// How the way there is kept from others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// The version of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<String>,
}
