//! A person's word on a move that code holds back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::rank::approve;
use crate::Outcome;

/// A person looked at what code found in a move and lets it be ranked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The move.
    pub move_id: String,
    /// Who says so.
    pub by: String,
    /// Why, in the person's words; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// An outcome with what persons said after the end.
pub fn settle(outcome: Outcome, approvals: &[Approval]) -> Outcome {
    let approved: BTreeSet<String> =
        approvals.iter().map(|approval| approval.move_id.clone()).collect();
    if approved.is_empty() { outcome } else { approve(&outcome, &approved) }
}
