//! What a person is asked about the moves before they are debated, and what the person says.

use serde::{Deserialize, Serialize};

use super::moves::{Move, Proposal};
use super::proposals;
use crate::text::is_hidden;
use crate::{EffectResult, NotCanonical, Sha256Hex, canonical_json};

/// The longest name of a person and the longest reason, in characters.
const MAX_NAME: usize = 80;
const MAX_WHY: usize = 500;

/// The most changes of one review.
pub const MAX_CHANGES: usize = 100;

/// A question to a person. A run that asks one stands still until it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "question", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Question {
    /// Which of these moves shall be debated, and how shall they read?
    ReviewMoves {
        /// The moves as they would be debated.
        moves: Vec<Move>,
    },
}

impl Question {
    /// The hash that the journal compares: an answer about other moves is no answer.
    pub fn hash(&self) -> Result<Sha256Hex, NotCanonical> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }

    /// In words, for whoever waits.
    pub fn words(&self) -> String {
        match self {
            Self::ReviewMoves { moves } => match moves.len() {
                1 => "1 move waits for a person before it is debated".to_owned(),
                many => format!("{many} moves wait for a person before they are debated"),
            },
        }
    }
}

/// What a person says about the moves; without a change they are debated as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// In the order in which they were said. The last word on a move counts.
    pub changes: Vec<Change>,
}

/// One change, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Who says so.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What is changed.
    pub what: What,
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// The move is not debated.
    Veto {
        /// The move.
        move_id: String,
        /// Why, in the person's words; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// The move reads like this instead; a veto on it is taken back.
    Edit {
        /// The move.
        move_id: String,
        /// The whole move.
        proposal: Proposal,
    },
    /// There is one more move; it has the next number.
    Add {
        /// The whole move.
        proposal: Proposal,
    },
}

impl What {
    /// The move that it is about; a new one has no number yet.
    pub fn move_id(&self) -> Option<&str> {
        match self {
            Self::Veto { move_id, .. } | Self::Edit { move_id, .. } => Some(move_id),
            Self::Add { .. } => None,
        }
    }
}

impl Change {
    /// In words: who changed what.
    pub fn words(&self) -> String {
        let by = &self.by;
        match &self.what {
            What::Veto { move_id, why } => {
                let said = LastWord::Vetoed { by: by.clone(), why: why.clone() };
                format!("{move_id} {}", said.words())
            }
            What::Edit { move_id, .. } => format!("{move_id} edited by {by}"),
            What::Add { proposal } => format!("\"{}\" added by {by}", proposal.title),
        }
    }

    /// Why it cannot be taken, wherever it stands.
    pub fn fault(&self) -> Option<String> {
        if is_unfit(&self.by, 1, MAX_NAME) {
            return Some(format!("a name has 1 to {MAX_NAME} characters, none of them hidden"));
        }
        match &self.what {
            What::Veto { why, .. } if is_unfit(why, 0, MAX_WHY) => {
                Some(format!("a reason has at most {MAX_WHY} characters, none of them hidden"))
            }
            What::Veto { .. } => None,
            What::Edit { proposal, .. } | What::Add { proposal } => proposals::own_fault(proposal),
        }
    }
}

fn is_unfit(text: &str, least: usize, most: usize) -> bool {
    !(least..=most).contains(&text.chars().count())
        || text.chars().any(is_hidden)
        || text.trim() != text
}

/// The last word of a person on a move, as it stands beside the move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case", deny_unknown_fields)]
pub enum LastWord {
    /// It is not debated.
    Vetoed {
        /// Who says so.
        by: String,
        /// Why; may be empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// It was written anew.
    Edited {
        /// By whom.
        by: String,
    },
    /// It was added.
    Added {
        /// By whom.
        by: String,
    },
}

impl Review {
    /// The hash of all that was said so far: whoever takes everything back names what they saw.
    pub fn seal(&self) -> Result<Sha256Hex, NotCanonical> {
        Ok(Sha256Hex::of(canonical_json(self)?.as_bytes()))
    }

    /// What a person said in answer to an effect, where it was such an answer.
    pub fn of(result: &EffectResult) -> Option<&Self> {
        match result {
            EffectResult::PersonSaid(review) => Some(review),
            _ => None,
        }
    }
}

impl LastWord {
    /// Whether the move is not debated.
    pub fn is_veto(&self) -> bool {
        matches!(self, Self::Vetoed { .. })
    }

    /// In words.
    pub fn words(&self) -> String {
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
