//! A move written by a person: a title and a thesis, the rest optional.

use serde::{Deserialize, Serialize};

use super::moves::Proposal;
use super::proposals;

/// A person's move before validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    /// Title, in one line.
    pub title: String,
    /// Why it is right.
    pub thesis: String,
    /// Steps to take.
    #[serde(default)]
    pub actions: Vec<String>,
    /// What must be true for it to work.
    #[serde(default)]
    pub what_must_be_true: Vec<String>,
    /// Ids of the supporting evidence.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What can go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
    /// What it costs.
    #[serde(default)]
    pub cost: String,
    /// Time until it pays off.
    #[serde(default)]
    pub horizon: String,
    /// Conditions under which the company would stop it.
    #[serde(default)]
    pub kill_criteria: Vec<String>,
}

/// Why a move is invalid, by field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct InvalidMove(pub Vec<String>);

impl MoveFile {
    /// Converts the move to the form that analysts use. Texts that are too long are rejected, not
    /// truncated.
    pub fn proposal(self) -> Result<Proposal, InvalidMove> {
        let unsaid =
            |text: String| if text.trim().is_empty() { NOT_STATED.to_owned() } else { text };
        let proposal = Proposal {
            title: self.title,
            thesis: self.thesis,
            actions: self.actions,
            what_must_be_true: self.what_must_be_true,
            evidence: self.evidence,
            risks: self.risks,
            cost: unsaid(self.cost),
            horizon: unsaid(self.horizon),
            kill_criteria: self.kill_criteria,
        };
        proposals::validate_user_move(proposal).map_err(InvalidMove)
    }
}

impl From<&Proposal> for MoveFile {
    fn from(proposal: &Proposal) -> Self {
        let said = |text: &String| if text == NOT_STATED { String::new() } else { text.clone() };
        Self {
            title: proposal.title.clone(),
            thesis: proposal.thesis.clone(),
            actions: proposal.actions.clone(),
            what_must_be_true: proposal.what_must_be_true.clone(),
            evidence: proposal.evidence.clone(),
            risks: proposal.risks.clone(),
            cost: said(&proposal.cost),
            horizon: said(&proposal.horizon),
            kill_criteria: proposal.kill_criteria.clone(),
        }
    }
}

/// Placeholder for an omitted text. Stored in moves and compared when they are read back.
const NOT_STATED: &str = "not said";

#[cfg(test)]
#[path = "move_file_tests.rs"]
mod tests;
