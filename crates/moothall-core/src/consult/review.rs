//! Review of the moves by a person before they are debated.

use serde::{Deserialize, Serialize};

use super::moves::{Move, Proposal};
use super::proposals;
use crate::text::is_hidden;
use crate::{CanonicalJsonError, EffectResult, Sha256Hex, canonical_json};

/// Maximum length of a reviewer's name and of a reason, in characters.
const MAX_NAME: usize = 80;
const MAX_WHY: usize = 500;

/// Maximum number of changes in one review.
pub const MAX_CHANGES: usize = 100;

/// A question to a person. The run pauses until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "question", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReviewQuestion {
    /// Which of these moves to debate, and with which text.
    ReviewMoves {
        /// The moves as they would be debated.
        moves: Vec<Move>,
    },
}

impl ReviewQuestion {
    /// Hash that the journal compares, so that an answer about other moves is rejected.
    pub fn hash(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }

    /// Description for the user.
    pub fn describe(&self) -> String {
        match self {
            Self::ReviewMoves { moves } => match moves.len() {
                1 => "1 move needs review before its debate".to_owned(),
                many => format!("{many} moves need review before the debates"),
            },
        }
    }
}

/// A person's review of the moves. Without changes, the moves are debated unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveReview {
    /// Changes in the order they were made. The last one on a move counts.
    pub changes: Vec<ReviewChange>,
}

/// A change and its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewChange {
    /// Who made the change.
    pub by: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The change itself.
    pub what: ReviewAction,
}

/// Kinds of review changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReviewAction {
    /// Excludes a move from the debates.
    Veto {
        /// Id of the move.
        move_id: String,
        /// The reviewer's reason; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// Replaces the text of a move and undoes a veto on it.
    Edit {
        /// Id of the move.
        move_id: String,
        /// The complete new text.
        proposal: Proposal,
    },
    /// Adds a move with the next number.
    Add {
        /// The complete move.
        proposal: Proposal,
    },
}

impl ReviewAction {
    /// Id of the move it changes; `None` for a new move, which has no number yet.
    pub fn move_id(&self) -> Option<&str> {
        match self {
            Self::Veto { move_id, .. } | Self::Edit { move_id, .. } => Some(move_id),
            Self::Add { .. } => None,
        }
    }
}

impl ReviewChange {
    /// Describes who changed what.
    pub fn describe(&self) -> String {
        let by = &self.by;
        match &self.what {
            ReviewAction::Veto { move_id, why } => {
                let said = MoveReviewDecision::Vetoed { by: by.clone(), why: why.clone() };
                format!("{move_id} {}", said.describe())
            }
            ReviewAction::Edit { move_id, .. } => format!("{move_id} edited by {by}"),
            ReviewAction::Add { proposal } => format!("\"{}\" added by {by}", proposal.title),
        }
    }

    /// Why the change is invalid, regardless of which moves there are.
    pub fn fault(&self) -> Option<String> {
        if is_invalid_text(&self.by, 1, MAX_NAME) {
            return Some(format!("a name has 1 to {MAX_NAME} characters, none of them hidden"));
        }
        match &self.what {
            ReviewAction::Veto { why, .. } if is_invalid_text(why, 0, MAX_WHY) => {
                Some(format!("a reason has at most {MAX_WHY} characters, none of them hidden"))
            }
            ReviewAction::Veto { .. } => None,
            ReviewAction::Edit { proposal, .. } | ReviewAction::Add { proposal } => {
                proposals::user_move_fault(proposal)
            }
        }
    }
}

fn is_invalid_text(text: &str, least: usize, most: usize) -> bool {
    !(least..=most).contains(&text.chars().count())
        || text.chars().any(is_hidden)
        || text.trim() != text
}

/// A reviewer's last decision on a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case", deny_unknown_fields)]
pub enum MoveReviewDecision {
    /// Excluded from the debates.
    Vetoed {
        /// Who vetoed it.
        by: String,
        /// Reason; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// Text replaced.
    Edited {
        /// Who edited it.
        by: String,
    },
    /// Added by a person.
    Added {
        /// Who added it.
        by: String,
    },
}

impl MoveReview {
    /// Hash of all changes so far. A request to undo all changes names the version that its author
    /// saw.
    pub fn seal(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }

    /// The review in the result of an effect, if it is one.
    pub fn of(result: &EffectResult) -> Option<&Self> {
        match result {
            EffectResult::PersonSaid(review) => Some(review),
            _ => None,
        }
    }
}

impl MoveReviewDecision {
    /// Whether the move is vetoed.
    pub fn is_veto(&self) -> bool {
        matches!(self, Self::Vetoed { .. })
    }

    /// Description for the user.
    pub fn describe(&self) -> String {
        match self {
            Self::Vetoed { by, why } if why.is_empty() => format!("vetoed by {by}"),
            Self::Vetoed { by, why } => format!("vetoed by {by}: {why}"),
            Self::Edited { by } => format!("edited by {by}"),
            Self::Added { by } => format!("added by {by}"),
        }
    }
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
