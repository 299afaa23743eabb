//! The result of a consultation: every move with its score and its marks, in order.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::panel_record::PanelVerdict;
use super::review::MoveReviewDecision;
use crate::debate::{BaselineScores, DebateResult};
use crate::sandbox::IsolationClass;
use crate::{RunFinding, Sha256Hex};

/// Maximum number of recommended moves.
pub const RECOMMENDED: usize = 3;

/// Result of a consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsultResult {
    /// The company's name, as in its filings.
    pub company: String,
    /// Hash of the fact sheet that numbers were checked against, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet_sha256: Option<Sha256Hex>,
    /// Recommended moves, best first: at most three, none held back and none with a missing score.
    /// See [`super::rank`].
    pub recommended: Vec<RankedMove>,
    /// Other moves: ranked ones in order, then those without a rank.
    pub other: Vec<RankedMove>,
    /// What is missing and why; empty for a complete run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Scores of doing nothing (m0, which is not debated), if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub do_nothing: Option<BaselineScores>,
    /// Scores of the moves without a debate, if requested, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<BaselineScores>,
    /// The verdict of the panel. Then its tiers order the moves, and scores of decision makers order
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<PanelVerdict>>,
}

/// A move with its rank, its debate and its findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankedMove {
    /// `m7`.
    pub move_id: String,
    /// Title, as its author wrote it.
    pub title: String,
    /// Rank, starting at 1; `None` if the move is held back, was not debated or is not scored. After
    /// a verdict of the panel it is only a position: the order within a tier means nothing.
    pub rank: Option<u32>,
    /// Result of the debate; `None` if there was none.
    pub debated: Option<DebateResult>,
    /// Weakest isolation of its debate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationClass>,
    /// Open findings in its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<RunFinding>,
    /// Ids of nearly identical moves.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub similar_to: BTreeSet<String>,
    /// Supported numbers in its text, out of all numbers read.
    pub support: SupportCount,
    /// The reviewer's last decision on this move, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<MoveReviewDecision>,
}

/// Supported numbers, out of all numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupportCount {
    /// Numbers supported by their citation or marked as an assumption.
    pub supported: u32,
    /// All numbers read.
    pub total: u32,
}
