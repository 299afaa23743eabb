//! Sessions and tokens.

use moothall_core::MicroUsd;
use moothall_core::access::{AccessScope, TeamName, TokenId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The current session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionInfo {
    /// The team for which the caller acts.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub team: TeamName,
    /// Id of the token that authenticates the caller or created the session.
    #[schemars(with = "Option<String>")]
    #[cfg_attr(test, ts(type = "string | null"))]
    pub token: Option<TokenId>,
    /// Granted scopes.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<AccessScope>,
    /// Maximum concurrent runs.
    pub runs_at_once: Option<u32>,
    /// Spend limit of all runs within 24 hours, in millionths of a dollar.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Maximum requests per minute.
    pub requests_a_minute: Option<u32>,
    /// CSRF token that a page must send as `X-Moothall-Page` with requests that change data. Only
    /// for sessions.
    pub page_word: Option<String>,
}

/// The tokens of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TokenList {
    /// Oldest first.
    pub tokens: Vec<TokenSummary>,
}

/// A token without its secret, which is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct TokenSummary {
    /// Id of the token.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: TokenId,
    /// Description given by its creator.
    pub label: String,
    /// Granted scopes.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<AccessScope>,
    /// Whether the token is valid.
    pub state: TokenState,
    /// Creation time.
    pub created_at: String,
    /// Expiry time.
    pub expires_at: Option<String>,
    /// Time of the last use.
    pub last_used_at: Option<String>,
    /// Maximum concurrent runs.
    pub runs_at_once: Option<u32>,
    /// Spend limit of its runs within 24 hours, in millionths of a dollar.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Maximum requests per minute.
    pub requests_a_minute: Option<u32>,
}

/// Validity of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum TokenState {
    /// Valid.
    Active,
    /// Expired.
    Expired,
    /// Revoked.
    Revoked,
}

/// Request to create a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
// A misspelled limit must be rejected, not ignored.
#[serde(deny_unknown_fields)]
pub struct CreateTokenRequest {
    /// Description of the token.
    #[serde(default)]
    pub label: String,
    /// Granted scopes.
    #[schemars(with = "Vec<String>")]
    #[cfg_attr(test, ts(type = "Scope[]"))]
    pub scopes: Vec<AccessScope>,
    /// Lifetime in days.
    pub days: u32,
    /// Maximum concurrent runs.
    pub runs_at_once: Option<u32>,
    /// Spend limit of its runs within 24 hours, in millionths of a dollar.
    #[schemars(with = "Option<u64>")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub micro_usd_a_day: Option<MicroUsd>,
    /// Maximum requests per minute.
    pub requests_a_minute: Option<u32>,
}

/// A new token. This is the only response that contains the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CreateTokenResponse {
    /// Id of the token.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "string"))]
    pub id: TokenId,
    /// The secret token.
    pub token: String,
}
