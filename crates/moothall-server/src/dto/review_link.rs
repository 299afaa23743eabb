//! Reviews by the holder of a review link.

use std::fmt;

use moothall_core::drafts::ReviewDecision;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DraftDetail;

/// A request for the draft of a review link.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ReviewLinkRequest {
    /// The token, which is the fragment of the link.
    pub token: String,
}

/// A decision about the draft of a review link. It uses the link up.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ReviewLinkDecision {
    /// The token, which is the fragment of the link.
    pub token: String,
    /// The decision: `approve`, `reject` or `send_back`.
    #[schemars(with = "String")]
    #[cfg_attr(test, ts(type = "DraftSay"))]
    pub decision: ReviewDecision,
    /// Reason for the decision.
    pub reason: Option<String>,
}

/// The draft of a review link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ReviewLinkDetail {
    /// The draft with all files of its submission.
    pub detail: DraftDetail,
    /// Number of the notice that contained the link.
    pub notice: String,
    /// Time at which the link expires.
    pub expires_at: String,
}

impl fmt::Debug for ReviewLinkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewLinkRequest").finish_non_exhaustive()
    }
}

impl fmt::Debug for ReviewLinkDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewLinkDecision")
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}
