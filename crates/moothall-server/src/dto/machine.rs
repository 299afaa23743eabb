//! Settings of the program and state of its machine.

use std::collections::BTreeMap;

use moothall_core::sandbox::{IsolationClass, LimitName, SelfTest};
use moothall_core::{MicroUsd, RuleId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ServerSettings {
    /// Version of the program.
    pub version: String,
    /// Default model; absent if none is available.
    pub model: Option<String>,
    /// Why there is no default model.
    pub model_problem: Option<String>,
    /// Providers, and whether their keys are set. Keys are never shown.
    pub keys: Vec<KeyRow>,
    /// Whether a contact for SEC requests is set, which the SEC requires.
    pub contact: bool,
    /// Whether recorded filings are used instead of the SEC's service.
    pub offline: bool,
    /// Delay of an answer of the demo model, in milliseconds.
    pub pace_ms: u64,
    /// Configured isolation: `auto`, `microvm`, …
    pub isolation: String,
    /// Available sandbox images.
    pub images: Vec<String>,
    /// Configured budget per run, in millionths of a dollar.
    #[cfg_attr(test, ts(type = "number | null"))]
    #[schemars(with = "Option<u64>")]
    pub budget_micro_usd: Option<MicroUsd>,
    /// Receivers of notices. URLs, addresses and secrets are never shown.
    #[serde(default)]
    pub notify_targets: Vec<NotifyTargetRow>,
}

/// A receiver of notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NotifyTargetRow {
    /// Name in the configuration.
    pub name: String,
    /// Kind: `json`, `slack`, `teams`, `discord`, `email` or `desktop`.
    pub kind: String,
    /// Events that are sent to it.
    pub events: Vec<String>,
    /// Number of notices that wait for another attempt.
    pub waiting: u64,
    /// Time of the last attempt; absent if there was none.
    pub last_at: Option<String>,
    /// Why the last attempt failed; absent if it succeeded.
    pub last_error: Option<String>,
}

/// Key status of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct KeyRow {
    /// Name of the provider, such as `anthropic`.
    pub provider: String,
    /// Whether the provider needs a key.
    pub needed: bool,
    /// Whether a key is set.
    pub present: bool,
    /// How to set the key.
    pub hint: Option<String>,
    /// Model used when a request names only the provider.
    pub default_model: Option<String>,
}

/// Results of testing this machine's sandboxes by running them. `moothall doctor --json` prints the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct DoctorResponse {
    /// Time of the test, in milliseconds since 1970.
    pub tried_at_ms: u64,
    /// All sandbox engines known to the program.
    pub engines: Vec<EngineRow>,
    /// Engine selected for programs; absent if none is strong enough.
    pub chosen: Option<String>,
    /// Isolation class of the selected engine.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "IsolationClass | null"))]
    pub class: Option<IsolationClass>,
    /// Available sandbox images.
    pub images: Vec<String>,
    /// Images that were made for another version of the program and should be replaced.
    pub outdated_images: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// How the program was installed, such as `wheel` or `deb`.
    pub installed_as: String,
    /// Agents on this machine that can edit files without going through drafts.
    pub ways_around: Vec<DraftBypassRow>,
    /// Where runs are stored.
    pub runs: RunStorageInfo,
}

/// Test result of a sandbox engine. If the engine could not be tested, `problem` says why, and the
/// results are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct EngineRow {
    /// Name of the engine, such as `microvm`.
    pub engine: String,
    /// Whether all self-tests passed.
    pub works: bool,
    /// Why the engine could not be tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Version of the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Isolation class of the engine; valid only if all self-tests passed (`works`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "IsolationClass | null"))]
    pub class: Option<IsolationClass>,
    /// Self-tests that were run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")]
    #[cfg_attr(test, ts(type = "{ rule: string; held: boolean }[] | null"))]
    pub self_tests: Option<Vec<SelfTest>>,
    /// Rules whose self-test failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    #[cfg_attr(test, ts(type = "string[] | null"))]
    pub faults: Option<Vec<RuleId>>,
    /// Mechanism that enforces each limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    #[cfg_attr(test, ts(type = "Record<string, string> | null"))]
    pub held_by: Option<BTreeMap<LimitName, String>>,
    /// Limits that are not enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    #[cfg_attr(test, ts(type = "string[] | null"))]
    pub limits_not_held: Option<Vec<LimitName>>,
    /// Time to start a sandbox, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Time from then until the program ended, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<u64>,
    /// How to make the engine work or improve it.
    pub advice: Option<String>,
}

/// An agent configuration that has the draft tools and also a server that can write without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct DraftBypassRow {
    /// Path of the agent's configuration file.
    pub file: String,
    /// Name of the server that bypasses drafts.
    pub server: String,
}

/// Where runs are stored: a file or a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct RunStorageInfo {
    /// Path of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Server and name of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// TLS mode of the database connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// PostgreSQL server version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<String>,
}
