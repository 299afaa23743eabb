//! State of a consultation, from which its documents, its ranking and its views are built.

use std::collections::{BTreeMap, BTreeSet};

use super::moves::Move;
use super::panel::PanelState;
use super::result::RankedMove;
use super::review::MoveReviewDecision;
use super::text_check::{TextCheck, is_synthetic};
use crate::RunFinding;
use crate::child::ChildIsolation;
use crate::debate::{DebateResult, Scorecard, calculation_facts};
use crate::evidence::{Evidence, Provenance};
use crate::model::{FailureKind, ModelFailure, PromptText};
use crate::prompt_revision::PromptTexts;
use crate::sandbox::FileRef;
use crate::text::one_line;
use crate::{CanonicalJsonError, OwnTexts, PromptRevision, Sha256Hex, canonical_json};

/// Heading of every document of a run with synthetic evidence.
pub const SYNTHETIC_MARK: &str = "SYNTHETIC: invented by a model";

/// State of a consultation. It only grows, and does not depend on the order of replies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsultState {
    pub(crate) prompts: PromptRevision,
    pub(crate) own_prompts: OwnTexts,
    /// The evidence, without passages that contain instructions to models.
    pub evidence: Option<Box<Evidence>>,
    /// One finding per removed passage.
    pub left_out: Vec<RunFinding>,
    /// Synthetic financial data, with its mark.
    pub financials: Option<String>,
    /// Synthetic news, with its mark.
    pub news: Option<String>,
    /// F1: what the numbers mean.
    pub f1: Option<CheckedDocument>,
    /// F2: what the events and texts mean.
    pub f2: Option<CheckedDocument>,
    /// The evidence as agents read it.
    pub dossier: Option<PromptText>,
    /// Moves by number.
    pub moves: BTreeMap<u32, MoveRecord>,
    /// The do-nothing move, if it is scored.
    pub nothing: Option<Move>,
    /// Scorecards without a debate, by move number and decision maker; 0 is doing nothing.
    pub scored_alone: BTreeMap<u32, BTreeMap<String, Scorecard>>,
    /// Cases, cards and verdict of the panel, if there is one.
    pub panel: PanelState,
    /// One finding per review change that could not be applied.
    pub ignored_changes: Vec<RunFinding>,
    /// Why agents and documents failed, by name: `F2`, `analyst_3`, `m7/rewrite`.
    pub failures: BTreeMap<String, AgentFailure>,
}

/// Why there is no usable reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFailure {
    /// Description of the failure.
    pub why: String,
    /// Kind of model failure; `None` if the model replied.
    pub kind: Option<FailureKind>,
}

/// A checked text of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedDocument {
    /// The text.
    pub text: String,
    /// Findings that its author did not fix, and the count of supported numbers.
    pub check: TextCheck,
}

/// A move with its checks, its review and its debate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveRecord {
    /// Latest version of the move.
    pub proposed: Move,
    /// Findings that its author did not fix, and the count of supported numbers.
    pub check: TextCheck,
    /// Ids of nearly identical moves.
    pub similar_to: BTreeSet<String>,
    /// The reviewer's last decision on this move, if any.
    pub said: Option<MoveReviewDecision>,
    /// Result of its debate, if it has ended.
    pub debate: Option<DebateRecord>,
}

/// A move changed after the person who wants to change it last read it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{move_id} has changed since you read it: {}", describe_change(.now.as_deref()))]
pub struct MoveConflict {
    /// Id of the move.
    pub move_id: String,
    /// The last review decision on it, which that person has not seen.
    pub now: Option<Box<MoveReviewDecision>>,
}

fn describe_change(now: Option<&MoveReviewDecision>) -> String {
    match now {
        Some(said) => format!("it was {}", said.describe()),
        None => "a change to it was undone".to_owned(),
    }
}

/// Result of a move's debate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebateRecord {
    /// The debate, or why there was none.
    pub result: Result<DebateResult, String>,
    /// Findings of the debate.
    pub findings: Vec<RunFinding>,
    /// Isolation of the debate.
    pub isolation: ChildIsolation,
}

impl AgentFailure {
    pub(crate) fn of_model(failure: &ModelFailure) -> Self {
        Self { why: one_line(&failure.to_string(), MAX_WHY), kind: Some(failure.kind) }
    }

    /// The model replied, but the reply cannot be used.
    pub(crate) fn of_answer(why: &str) -> Self {
        Self { why: one_line(why, MAX_WHY), kind: None }
    }
}

const MAX_WHY: usize = 300;

impl MoveRecord {
    /// The move as input for the ranking, without a rank.
    pub(crate) fn unranked(&self) -> RankedMove {
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

    /// Hash of the move's text and of the last review decision on it. A change names the version
    /// that its author saw.
    pub fn seal(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        let shown = (&self.proposed.proposal, &self.said);
        Ok(Sha256Hex::of(canonical_json(&shown)?.as_bytes()))
    }

    /// Rejects a change made to another version of the move: it would overwrite someone else's
    /// change unnoticed.
    pub fn check_version(&self, seen: &Sha256Hex) -> Result<(), MoveConflict> {
        match self.seal() {
            Ok(seal) if seal == *seen => Ok(()),
            _ => Err(MoveConflict {
                move_id: self.proposed.move_id.clone(),
                now: self.said.clone().map(Box::new),
            }),
        }
    }

    /// Whether a reviewer vetoed the move.
    pub fn is_vetoed(&self) -> bool {
        self.said.as_ref().is_some_and(MoveReviewDecision::is_veto)
    }

    /// Findings shown to the critic before the debate, one per line.
    pub(crate) fn machine_findings(&self) -> Vec<String> {
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

/// Maximum number of findings listed in a prompt.
const MAX_LINES: usize = 16;

impl ConsultState {
    pub(crate) fn texts(&self) -> PromptTexts<'_> {
        PromptTexts { revision: self.prompts, own: Some(&self.own_prompts) }
    }

    /// Numbers of the moves to debate: all that are not vetoed.
    pub(crate) fn debated_moves(&self) -> impl Iterator<Item = u32> {
        self.moves.iter().filter(|(_, tried)| !tried.is_vetoed()).map(|(number, _)| *number)
    }

    /// The facts that calculations read. Without a fact sheet there are none.
    pub(crate) fn calculation_facts(&self) -> FileRef {
        let sheet = self.evidence.as_deref().and_then(|evidence| evidence.sheet.as_ref());
        FileRef::of(&calculation_facts(sheet))
    }

    /// Whether the evidence is synthetic.
    pub fn is_synthetic(&self) -> bool {
        self.evidence.as_deref().is_some_and(is_synthetic)
    }

    /// Whether the user's documents are the only evidence.
    pub(crate) fn is_from_documents(&self) -> bool {
        let provenance = self.evidence.as_ref().map(|evidence| &evidence.provenance);
        matches!(provenance, Some(Provenance::Documents { .. }))
    }

    /// The company's name in prompts and documents.
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

    /// One line on the source of the evidence, shown on every page.
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
            // Twelve digits are enough to tell two sheets apart, and each digit costs a token.
            Some(sheet) => format!("{from} Fact table F0 {:.12}.", sheet.hash().to_string()),
            None => from,
        }
    }

    /// Adds the synthetic mark to a document if the evidence is synthetic.
    pub(crate) fn marked(&self, text: String) -> String {
        if self.is_synthetic() { format!("> {SYNTHETIC_MARK}\n\n{text}") } else { text }
    }

    /// A checked document, by its name without extension.
    pub(crate) fn document(&self, name: &str) -> Option<&CheckedDocument> {
        match name {
            "F1" => self.f1.as_ref(),
            "F2" => self.f2.as_ref(),
            _ => None,
        }
    }
}
