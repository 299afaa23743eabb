//! What a consultation knows so far: everything that its documents, its ranking and a view of it
//! are made from.

use std::collections::{BTreeMap, BTreeSet};

use super::checking::{Check, is_synthetic};
use super::moves::Move;
use super::ranked::RankedMove;
use super::review::LastWord;
use crate::Finding;
use crate::child::Isolation;
use crate::debate::{Debated, Scorecard};
use crate::evidence::{Evidence, Provenance};
use crate::model::{FailureKind, ModelFailure, PromptText};
use crate::text::one_line;
use crate::{NotCanonical, Sha256Hex, canonical_json};

/// What stands above every document of a run whose evidence a model made up.
pub const SYNTHETIC_MARK: &str = "SYNTHETIC: invented by a model";

/// What is known so far. It only grows, and it does not depend on the order in which answers came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proceedings {
    /// The evidence, without passages that speak to models.
    pub evidence: Option<Box<Evidence>>,
    /// A finding for each passage that was left out.
    pub left_out: Vec<Finding>,
    /// Financial data that a model made up, with its mark.
    pub financials: Option<String>,
    /// News that a model made up, with its mark.
    pub news: Option<String>,
    /// F1: what the numbers mean.
    pub f1: Option<Document>,
    /// F2: what the events and texts mean.
    pub f2: Option<Document>,
    /// The evidence as every agent reads it.
    pub dossier: Option<PromptText>,
    /// The moves by number.
    pub moves: BTreeMap<u32, Tried>,
    /// What it means to do nothing, where that is scored too.
    pub nothing: Option<Move>,
    /// Cards that were given without a debate, by the number of the move and the decision maker; 0 is
    /// doing nothing.
    pub scored_alone: BTreeMap<u32, BTreeMap<String, Scorecard>>,
    /// A finding for each change of a person that could not be made.
    pub ignored_changes: Vec<Finding>,
    /// Agents and documents that failed, and why: `F2`, `analyst_3`, `m7/rewrite`.
    pub failures: BTreeMap<String, Failure>,
}

/// Why there is no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub why: String,
    /// What kind of failure of a model it was; none where the model answered.
    pub kind: Option<FailureKind>,
}

/// A text of an agent that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its words.
    pub text: String,
    /// What code found in it and the author did not mend.
    pub check: Check,
}

/// A move on its way through the trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The move, as it was last written.
    pub proposed: Move,
    /// What code found in it and the author did not mend.
    pub check: Check,
    /// Moves that say nearly the same.
    pub similar_to: BTreeSet<String>,
    /// The last word of the person who reviewed the moves, where there is one on this move.
    pub said: Option<LastWord>,
    /// How its debate ended.
    pub debate: Option<DebateEnd>,
}

/// A move is not what a person saw who wants to change it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{move_id} is not what you saw: {}", meanwhile(.now.as_deref()))]
pub struct Unseen {
    /// The move.
    pub move_id: String,
    /// The last word on it, which they have not seen.
    pub now: Option<Box<LastWord>>,
}

fn meanwhile(now: Option<&LastWord>) -> String {
    match now {
        Some(said) => format!("meanwhile it was {}", said.words()),
        None => "meanwhile a change of it was taken back".to_owned(),
    }
}

/// How the debate of a move ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebateEnd {
    /// What it came to, or why there was none.
    pub result: Result<Debated, String>,
    /// What it observed.
    pub findings: Vec<Finding>,
    /// The walls around it.
    pub isolation: Isolation,
}

impl Failure {
    pub(super) fn of_model(failure: &ModelFailure) -> Self {
        Self { why: one_line(&failure.to_string(), MAX_WHY), kind: Some(failure.kind) }
    }

    /// The model answered, but the answer cannot be used.
    pub(super) fn of_answer(why: &str) -> Self {
        Self { why: one_line(why, MAX_WHY), kind: None }
    }
}

/// The longest reason that is kept.
const MAX_WHY: usize = 300;

impl Tried {
    /// The move for the ranking, without a rank.
    pub(super) fn unranked(&self) -> RankedMove {
        let debate = self.debate.as_ref();
        RankedMove {
            move_id: self.proposed.move_id.clone(),
            title: self.proposed.proposal.title.clone(),
            rank: None,
            debated: debate.and_then(|debate| debate.result.as_ref().ok()).cloned(),
            isolation: debate.map(|debate| debate.isolation.class),
            findings: self.check.findings.clone(),
            similar_to: self.similar_to.clone(),
            support: self.check.support,
            said: self.said.clone(),
        }
    }

    /// The hash of how the move reads and of the last word on it: whoever changes it names what they
    /// saw.
    pub fn seal(&self) -> Result<Sha256Hex, NotCanonical> {
        let shown = (&self.proposed.proposal, &self.said);
        Ok(Sha256Hex::of(canonical_json(&shown)?.as_bytes()))
    }

    /// Refuses whoever saw another move than there is now: their change would take away another
    /// person's unread.
    pub fn refuse_unseen(&self, seen: &Sha256Hex) -> Result<(), Unseen> {
        match self.seal() {
            Ok(seal) if seal == *seen => Ok(()),
            _ => Err(Unseen {
                move_id: self.proposed.move_id.clone(),
                now: self.said.clone().map(Box::new),
            }),
        }
    }

    /// Whether a person does not want it to be debated.
    pub fn is_vetoed(&self) -> bool {
        self.said.as_ref().is_some_and(LastWord::is_veto)
    }

    /// What the critic is told before anyone speaks, one line each.
    pub(super) fn machine_findings(&self) -> Vec<String> {
        let found = self.check.findings.iter();
        let mut lines: Vec<String> =
            found.map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
        lines.truncate(MAX_LINES);
        let alike: Vec<&str> = self.similar_to.iter().map(String::as_str).collect();
        if !alike.is_empty() {
            lines.push(format!("consult.similar: it says nearly the same as {}", alike.join(", ")));
        }
        lines
    }
}

/// The most lines of findings that a prompt shows.
const MAX_LINES: usize = 16;

impl Proceedings {
    /// The numbers of the moves that are debated.
    pub(super) fn debated_moves(&self) -> impl Iterator<Item = u32> {
        self.moves.iter().filter(|(_, tried)| !tried.is_vetoed()).map(|(number, _)| *number)
    }

    /// Whether a model made the evidence up.
    pub fn is_synthetic(&self) -> bool {
        self.evidence.as_deref().is_some_and(is_synthetic)
    }

    /// Whether the user's documents are all there is.
    pub(super) fn is_from_documents(&self) -> bool {
        let provenance = self.evidence.as_ref().map(|evidence| &evidence.provenance);
        matches!(provenance, Some(Provenance::Documents { .. }))
    }

    /// The company as prompts and documents name it.
    pub fn company(&self) -> String {
        let Some(evidence) = &self.evidence else { return "the company".to_owned() };
        let company = &evidence.company;
        let name = match &company.ticker {
            Some(ticker) if company.name != ticker.as_str() => {
                format!("{} ({ticker})", company.name)
            }
            _ => company.name.clone(),
        };
        if company.fictional { format!("{name}, a fictional company") } else { name }
    }

    /// Where the evidence is from, in a line that no page is without.
    pub fn source_line(&self) -> String {
        let Some(evidence) = &self.evidence else { return String::new() };
        if is_synthetic(evidence) {
            return format!("{SYNTHETIC_MARK}. None of it is real.");
        }
        let beside = match &evidence.provenance {
            Provenance::Documents { .. } => "",
            _ if evidence.documents.is_empty() => "",
            _ => " and your documents",
        };
        let from = match (&evidence.sheet, evidence.company.fictional) {
            (_, true) => {
                "FICTIONAL: this company exists only to show how the program works.".into()
            }
            (Some(sheet), false) => {
                format!("From {}{beside}, up to {}.", evidence.provenance, sheet.as_of)
            }
            (None, false) => format!("From {}{beside}.", evidence.provenance),
        };
        match &evidence.sheet {
            // The beginning is enough to tell two sheets apart; a digit is a token.
            Some(sheet) => format!("{from} Fact table F0 {:.12}.", sheet.hash().to_string()),
            None => from,
        }
    }

    /// A document with the mark that made-up evidence has.
    pub(super) fn marked(&self, text: String) -> String {
        if self.is_synthetic() { format!("> {SYNTHETIC_MARK}\n\n{text}") } else { text }
    }

    /// The document that was checked, by its name without ending.
    pub(super) fn document(&self, name: &str) -> Option<&Document> {
        match name {
            "F1" => self.f1.as_ref(),
            "F2" => self.f2.as_ref(),
            _ => None,
        }
    }
}
