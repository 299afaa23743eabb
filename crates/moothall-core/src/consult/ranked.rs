//! What a consultation comes to: every move with its score and its marks, in order.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::review::LastWord;
use crate::debate::{Debated, Undebated};
use crate::sandbox::IsolationClass;
use crate::{Finding, Sha256Hex};

/// How many moves are recommended, where enough are clean.
pub const RECOMMENDED: usize = 3;

/// The end of a consultation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranked {
    /// The company's name, as it files.
    pub company: String,
    /// The hash of the fact sheet that every number was checked against, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheet_sha256: Option<Sha256Hex>,
    /// The moves that are recommended, best first: at most three, none that is held back and none
    /// with a score that nobody gave. See [`super::rank`].
    pub recommended: Vec<RankedMove>,
    /// All others: ranked ones in order, then those without a rank.
    pub other: Vec<RankedMove>,
    /// What is missing and why, in words; empty for a complete run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// What doing nothing scores, where the decision makers were asked: m0, which is not debated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub do_nothing: Option<Undebated>,
    /// What the moves score without a debate, where that was asked for, in the order of their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<Undebated>,
}

/// A move with what the trial made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankedMove {
    /// `m7`.
    pub move_id: String,
    /// Its title, as its author wrote it.
    pub title: String,
    /// Its place from 1; none where it is held back or was not debated.
    pub rank: Option<u32>,
    /// What the debate came to; none where there was none.
    pub debated: Option<Debated>,
    /// The weakest walls around its debate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationClass>,
    /// What code found in its text and nobody cleared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Moves that say nearly the same.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub similar_to: BTreeSet<String>,
    /// Numbers in its text that are supported, of all that were read.
    pub support: SupportCount,
    /// The last word of the person who reviewed the moves, where there is one on this move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<LastWord>,
}

/// Numbers that are supported, of all numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupportCount {
    /// Supported by what they cite, or marked as an assumption.
    pub supported: u32,
    /// Read.
    pub total: u32,
}
