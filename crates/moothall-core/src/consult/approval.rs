//! A person's word on a move that code holds back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::rank::approve;
use super::ranked::{Ranked, RankedMove};
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

/// Why a move waits for nobody's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotHeld<'a> {
    /// There is no such move.
    Unknown,
    /// Somebody said so before.
    Approved(&'a Approval),
    /// A person did not want it to be debated.
    Vetoed(&'a RankedMove),
    /// It was not debated, so it cannot be ranked.
    NotDebated,
    /// It is ranked: nothing holds it back.
    Ranked,
}

impl Ranked {
    /// Whether a move waits for a person: only what code holds back does.
    pub fn waits_for_word<'a>(
        &'a self,
        approvals: &'a [Approval],
        move_id: &str,
    ) -> Result<(), NotHeld<'a>> {
        let found = self.moves().find(|one| one.move_id == move_id).ok_or(NotHeld::Unknown)?;
        if let Some(given) = approvals.iter().find(|one| one.move_id == move_id) {
            return Err(NotHeld::Approved(given));
        }
        match found {
            found if found.is_vetoed() => Err(NotHeld::Vetoed(found)),
            RankedMove { debated: None, .. } => Err(NotHeld::NotDebated),
            RankedMove { rank: Some(_), .. } => Err(NotHeld::Ranked),
            _ => Ok(()),
        }
    }
}
