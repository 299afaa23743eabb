//! Who is signed in, and the tokens of a team.

use moothall_core::MicroUsd;
use moothall_core::access::{Scope, TeamName, TokenId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Session {
    /// The team they act for.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub team: TeamName,
    /// The token they came or signed in with.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub token: Option<TokenId>,
    /// What they may do.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<Scope>,
    /// Runs they may have at once.
    pub runs_at_once: Option<u32>,
    /// What their runs may cost within 24 hours.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Requests they may make in a minute.
    pub requests_a_minute: Option<u32>,
    /// What a page sends as `X-Moothall-Page` when it changes something. Only for sessions.
    pub page_word: Option<String>,
}

/// The tokens of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenList {
    /// The oldest first.
    pub tokens: Vec<TokenSummary>,
}

/// A token, without its secret: that is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TokenSummary {
    /// What it is called.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: TokenId,
    /// What somebody wrote down about it.
    pub label: String,
    /// What it covers.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<Scope>,
    /// Whether it counts.
    pub state: TokenState,
    /// When it was made.
    pub created_at: String,
    /// When it ends.
    pub expires_at: Option<String>,
    /// When it was last used.
    pub last_used_at: Option<String>,
    /// Runs it may have at once.
    pub runs_at_once: Option<u32>,
    /// What its runs may cost within 24 hours.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Requests it may make in a minute.
    pub requests_a_minute: Option<u32>,
}

/// Whether a token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum TokenState {
    /// It does.
    Active,
    /// It has had its time.
    Expired,
    /// It was taken back.
    Revoked,
}

/// A token that shall be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
// A misspelt limit must not become no limit.
#[serde(deny_unknown_fields)]
pub struct MakeToken {
    /// What it is for.
    #[serde(default)]
    pub label: String,
    /// What it covers.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<Scope>,
    /// How long it counts.
    pub days: u32,
    /// Runs it may have at once.
    pub runs_at_once: Option<u32>,
    /// What its runs may cost within 24 hours.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Requests it may make in a minute.
    pub requests_a_minute: Option<u32>,
}

/// A token that was made. This is the only time it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MadeToken {
    /// What it is called.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: TokenId,
    /// The token.
    pub token: String,
}
