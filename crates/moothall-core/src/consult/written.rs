//! A move as a person writes it: a title and a thesis, and as much of the rest as there is.

use serde::{Deserialize, Serialize};

use super::moves::Proposal;
use super::proposals;

/// A move of a person, before anyone looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenMove {
    /// The move in one line.
    pub title: String,
    /// Why it is right.
    pub thesis: String,
    /// What is done, step by step.
    #[serde(default)]
    pub actions: Vec<String>,
    /// What must be true for it to work.
    #[serde(default)]
    pub what_must_be_true: Vec<String>,
    /// The ids of the evidence that carries it.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What can go wrong.
    #[serde(default)]
    pub risks: Vec<String>,
    /// What it costs.
    #[serde(default)]
    pub cost: String,
    /// Until when it pays.
    #[serde(default)]
    pub horizon: String,
    /// What would make the company stop it.
    #[serde(default)]
    pub kill_criteria: Vec<String>,
}

/// Why a move cannot be taken, in the words of its fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct InvalidMove(pub Vec<String>);

impl WrittenMove {
    /// The move in the form that analysts use. Nothing is cut: what is too long is refused.
    pub fn proposal(self) -> Result<Proposal, InvalidMove> {
        let unsaid = |text: String| if text.trim().is_empty() { UNSAID.to_owned() } else { text };
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
        proposals::own(proposal).map_err(InvalidMove)
    }
}

impl From<&Proposal> for WrittenMove {
    fn from(proposal: &Proposal) -> Self {
        let said = |text: &String| if text == UNSAID { String::new() } else { text.clone() };
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

/// What stands where a person said nothing.
const UNSAID: &str = "not said";

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
