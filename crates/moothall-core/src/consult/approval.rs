//! Human approval of moves that the checks hold back.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::panel_record::VERDICT_APPROVAL;
use super::rank::approve;
use super::result::{ConsultResult, RankedMove};
use crate::Outcome;

/// A person's approval to rank a move despite its findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveApproval {
    /// Id of the approved move; [`VERDICT_APPROVAL`] for the verdict of a panel that failed its
    /// controls.
    pub move_id: String,
    /// Who approved it.
    pub by: String,
    /// The approver's reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Approval time, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Applies approvals given after the end of a run to its outcome.
pub fn settle(outcome: Outcome, approvals: &[MoveApproval]) -> Outcome {
    let approved: BTreeSet<String> =
        approvals.iter().map(|approval| approval.move_id.clone()).collect();
    if approved.is_empty() { outcome } else { approve(&outcome, &approved) }
}

/// Why a move does not need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalRefusal<'a> {
    /// No such move.
    Unknown,
    /// Already approved.
    Approved(&'a MoveApproval),
    /// Vetoed before the debates.
    Vetoed(&'a RankedMove),
    /// Not debated, so it cannot be ranked.
    NotDebated,
    /// Already ranked; nothing holds it back.
    Ranked,
}

/// Why the verdict of a panel does not need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictRefusal<'a> {
    /// No panel sat.
    NoVerdict,
    /// Already approved.
    Approved(&'a MoveApproval),
    /// The panel did not fail its controls.
    NotFailed,
}

impl ConsultResult {
    /// Returns `Ok` if the verdict needs approval: only that of a panel that failed its controls.
    pub fn check_verdict_needs_approval<'a>(
        &'a self,
        approvals: &'a [MoveApproval],
    ) -> Result<(), VerdictRefusal<'a>> {
        let verdict = self.verdict.as_ref().ok_or(VerdictRefusal::NoVerdict)?;
        if let Some(given) = approvals.iter().find(|one| one.move_id == VERDICT_APPROVAL) {
            return Err(VerdictRefusal::Approved(given));
        }
        if verdict.is_failed() { Ok(()) } else { Err(VerdictRefusal::NotFailed) }
    }

    /// Returns `Ok` if a move needs approval. Only moves held back by checks do.
    pub fn check_needs_approval<'a>(
        &'a self,
        approvals: &'a [MoveApproval],
        move_id: &str,
    ) -> Result<(), ApprovalRefusal<'a>> {
        let found =
            self.moves().find(|one| one.move_id == move_id).ok_or(ApprovalRefusal::Unknown)?;
        if let Some(given) = approvals.iter().find(|one| one.move_id == move_id) {
            return Err(ApprovalRefusal::Approved(given));
        }
        match found {
            found if found.is_vetoed() => Err(ApprovalRefusal::Vetoed(found)),
            RankedMove { debated: None, .. } => Err(ApprovalRefusal::NotDebated),
            RankedMove { rank: Some(_), .. } => Err(ApprovalRefusal::Ranked),
            // The panel did not score it.
            found if self.verdict.is_some() && !found.is_held() => Err(ApprovalRefusal::NotDebated),
            _ => Ok(()),
        }
    }
}
