//! The committee: its members, their lenses and the scoring metrics.
//!
//! The built-in committee and user-defined files share one type. Lenses are short rules of
//! judgement, not biographies: personas do not make models more accurate.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::verdict_plan::{PANEL_MEMBERS, VerdictPlan};
use crate::model::ModelList;
use crate::{OwnTexts, PromptRevision, Sha256Hex, TextFault, TextKind};

/// Highest score of a metric; the lowest is 1.
pub const TOP_LEVEL: u8 = 10;

/// Limit for each name, lens, question and level in a committee file.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A committee: analysts propose moves, the critic attacks them, decision makers defend and score
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committee {
    /// A short name, such as `board`.
    pub name: String,
    /// One-line description.
    pub title: String,
    /// Rounds per debate.
    pub rounds: u32,
    /// Moves that each analyst proposes.
    pub moves_per_analyst: u32,
    /// Members who propose moves.
    pub analysts: Vec<CommitteeMember>,
    /// Member who attacks the moves.
    pub critic: CommitteeMember,
    /// Members who defend and then score the moves.
    pub decision_makers: Vec<CommitteeMember>,
    /// Scored metrics, each from 1 to 10.
    pub metrics: Vec<ScoreMetric>,
    /// Members of the blind panel, who score cases without taking part in the debates; empty without
    /// a panel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<CommitteeMember>,
    /// How the verdict is reached; `None` ranks moves by the scores of the decision makers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictPlan>,
    /// Models of the two inference agents.
    #[serde(default, skip_serializing_if = "InferenceAgents::is_empty")]
    pub inference: InferenceAgents,
    /// Prompts that replace built-in ones, by name.
    #[serde(default, skip_serializing_if = "OwnTexts::is_empty")]
    pub prompts: OwnTexts,
    /// Sections of the memo that replace built-in ones, by name.
    #[serde(default, skip_serializing_if = "OwnTexts::is_empty")]
    pub memo: OwnTexts,
}

/// A member of a committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitteeMember {
    /// Short, stable id, such as `analyst_1`, `critic` or `D2`. Part of effect ids.
    pub id: String,
    /// Display name.
    pub name: String,
    /// What the member looks for and how. Inserted verbatim into the prompt.
    pub lens: String,
    /// The member's own model and its fallbacks; `None` uses those of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelList>,
}

/// The two inference agents, which read the evidence before the members do. Only their models can
/// be set; their instructions are prompts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InferenceAgents {
    /// Reads the numbers, or generates them for synthetic evidence.
    #[serde(default, rename = "F1", skip_serializing_if = "Option::is_none")]
    pub f1: Option<InferenceAgent>,
    /// Reads events and texts, or generates news for synthetic evidence.
    #[serde(default, rename = "F2", skip_serializing_if = "Option::is_none")]
    pub f2: Option<InferenceAgent>,
}

/// An inference agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InferenceAgent {
    /// Its model and its fallbacks.
    pub model: ModelList,
}

impl InferenceAgents {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A scoring criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreMetric {
    /// Field name in the scores, such as `risk_adjusted_return`.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The question that a score answers.
    pub asks: String,
    /// Meaning of the scores, lowest first. Levels are observable, so that two scorers agree on
    /// them.
    pub levels: Vec<MetricLevel>,
}

/// The meaning of scores from `from` up to the next level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricLevel {
    /// The lowest score with this meaning.
    pub from: u8,
    /// Condition for this level.
    pub means: String,
}

/// Why a committee is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCommittee {
    /// A count is out of range.
    #[error("invalid number of {what}: {found} (must be {least} to {most})")]
    Count {
        /// What is counted.
        what: &'static str,
        /// Actual count.
        found: usize,
        /// Minimum.
        least: usize,
        /// Maximum.
        most: usize,
    },
    /// An id that is a duplicate or not valid in effect ids and file names.
    #[error("invalid id `{0}`: use 1 to 40 letters, digits, `-` or `_`; ids must be unique")]
    Id(String),
    /// A text is missing or too long.
    #[error("{what} of `{of}` is empty or longer than {} bytes", MAX_TEXT_BYTES)]
    Text {
        /// Kind of text.
        what: &'static str,
        /// Id of the member or metric.
        of: String,
    },
    /// A prompt or memo section of the committee is invalid.
    #[error("{file}, line {}: {fault}", .fault.line)]
    OwnText {
        /// The text's file, such as `prompts/analyst.md`.
        file: String,
        /// The fault.
        fault: TextFault,
    },
    /// A probability of the verdict is out of range.
    #[error("`{0}` must be between 0.5 and 0.995")]
    Chance(&'static str),
    /// The levels of a metric do not start at 1, ascend and stay within 10.
    #[error("the levels of `{0}` must start at 1, ascend and stay within 10")]
    Levels(String),
}

impl Committee {
    /// The files whose texts replace built-in ones, such as `prompts/analyst.md`.
    pub fn own_files(&self) -> Vec<String> {
        self.text_hashes().into_keys().collect()
    }

    /// The hash of each own text, by file.
    pub(crate) fn text_hashes(&self) -> BTreeMap<String, Sha256Hex> {
        let (prompts, memo) = (&self.prompts, &self.memo);
        prompts.hashes(TextKind::Prompt).chain(memo.hashes(TextKind::Memo)).collect()
    }

    /// Highest possible score of a move: 120 for the built-in committee.
    pub fn top_score(&self) -> u32 {
        let cells = self.metrics.len().saturating_mul(self.decision_makers.len());
        u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(u32::from(TOP_LEVEL))
    }

    /// Moves per analyst for `moves` in total, split as evenly as possible. Analysts with no moves
    /// are not called.
    pub fn shares(&self, moves: Option<u32>) -> Vec<u32> {
        let analysts = u32::try_from(self.analysts.len()).unwrap_or(u32::MAX).max(1);
        let most = analysts.saturating_mul(self.moves_per_analyst);
        let moves = moves.unwrap_or(most).min(most);
        let share = |analyst: u32| moves / analysts + u32::from(analyst < moves % analysts);
        (0..analysts).map(share).collect()
    }

    /// Checks that the committee can hold a debate.
    pub fn validate(&self) -> Result<(), InvalidCommittee> {
        self.validate_for(PromptRevision::CURRENT)
    }

    /// Checks the own texts of a committee that was just read, and brings them into the stored form.
    pub fn normalize_texts(&mut self) -> Result<(), InvalidCommittee> {
        let texts = [(TextKind::Prompt, &mut self.prompts), (TextKind::Memo, &mut self.memo)];
        for (kind, texts) in texts {
            let read = std::mem::take(texts);
            for (name, text) in read.iter() {
                texts.add(kind, name, text).map_err(|fault| {
                    let name: String = name.chars().take(60).collect();
                    let file = format!("{}/{name}.md", kind.folder());
                    InvalidCommittee::OwnText { file, fault }
                })?;
            }
        }
        Ok(())
    }

    /// Checks a committee whose own texts replace those of `revision`.
    pub(crate) fn validate_for(&self, revision: PromptRevision) -> Result<(), InvalidCommittee> {
        for (kind, texts) in [(TextKind::Prompt, &self.prompts), (TextKind::Memo, &self.memo)] {
            let checked = texts.check(kind, revision);
            checked.map_err(|(file, fault)| InvalidCommittee::OwnText { file, fault })?;
        }
        count("rounds", self.rounds as usize, 1, 20)?;
        count("moves per analyst", self.moves_per_analyst as usize, 1, 5)?;
        count("analysts", self.analysts.len(), 1, 8)?;
        count("decision makers", self.decision_makers.len(), 1, 5)?;
        count("metrics", self.metrics.len(), 1, 8)?;
        if self.verdict.is_some() || !self.panel.is_empty() {
            // A file may have a plan without a panel: then the built-in one sits.
            let (least, most) = PANEL_MEMBERS;
            let members = if self.panel.is_empty() { least } else { self.panel.len() };
            count("panel members", members, least, most)?;
            self.verdict.as_ref().map_or(Ok(()), VerdictPlan::validate)?;
        }
        let mut seen = BTreeSet::new();
        let seats = self.analysts.iter().chain([&self.critic]).chain(&self.decision_makers);
        let seats = seats.chain(&self.panel);
        for seat in seats {
            id(&seat.id, &mut seen)?;
            text("the name", &seat.name, &seat.id)?;
            text("the lens", &seat.lens, &seat.id)?;
        }
        let mut seen = BTreeSet::new();
        for metric in &self.metrics {
            id(&metric.id, &mut seen)?;
            text("the name", &metric.name, &metric.id)?;
            text("the question", &metric.asks, &metric.id)?;
            metric.levels.iter().try_for_each(|level| text("a level", &level.means, &metric.id))?;
            let from: Vec<u8> = metric.levels.iter().map(|level| level.from).collect();
            let ascends = from.windows(2).all(|pair| pair[0] < pair[1]);
            let ends = from.first() == Some(&1) && from.last().is_some_and(|top| *top <= TOP_LEVEL);
            if !(ascends && ends) {
                return Err(InvalidCommittee::Levels(metric.id.clone()));
            }
        }
        Ok(())
    }
}

pub(crate) fn count(
    what: &'static str,
    found: usize,
    least: usize,
    most: usize,
) -> Result<(), InvalidCommittee> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(InvalidCommittee::Count { what, found, least, most })
    }
}

fn id<'a>(id: &'a str, seen: &mut BTreeSet<&'a str>) -> Result<(), InvalidCommittee> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let usable = !id.is_empty() && id.len() <= 40 && id.bytes().all(plain) && seen.insert(id);
    if usable { Ok(()) } else { Err(InvalidCommittee::Id(id.chars().take(60).collect())) }
}

fn text(what: &'static str, text: &str, of: &str) -> Result<(), InvalidCommittee> {
    if text.trim().is_empty() || text.len() > MAX_TEXT_BYTES {
        Err(InvalidCommittee::Text { what, of: of.to_owned() })
    } else {
        Ok(())
    }
}

#[cfg(test)]
#[path = "committee_tests.rs"]
mod tests;
