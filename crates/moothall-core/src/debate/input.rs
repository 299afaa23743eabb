//! The input of a debate. It is sent into a guest, so it contains no API keys, no other moves and
//! nothing else the debate does not need.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::turn::REASONING;
use crate::consult::committee::{CommitteeMember, ScoreMetric};
use crate::model::{ModelList, PromptText, Temperature};
use crate::prompt_revision::PromptTexts;
use crate::sandbox::FileRef;
use crate::view::is_move_id;
use crate::{OwnTexts, PromptRevision, TextKind};

/// Maximum sizes of the dossier and of the move, far above what fits a context window.
const MAX_DOSSIER_BYTES: usize = 256 * 1024;
const MAX_MOVE_BYTES: usize = 64 * 1024;

/// Ids that a decision maker cannot have, because they are used in the same place of an effect id
/// or event.
const RESERVED: [&str; 4] = ["critic", "all", "opening", "ask-2"];

/// One move, the evidence, and the participants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebateInput {
    /// `m7`, or `m7/d2` and `r2/m7` for repeated debates: the first part of every effect id of the debate.
    pub move_id: String,
    /// The company's name as used in prompts.
    pub company: String,
    /// The evidence. It is byte-identical for every agent and every move, so it is the first cached
    /// block.
    pub dossier: PromptText,
    /// The move as written by its author.
    pub move_markdown: PromptText,
    /// Problems that automatic checks found in the move, one line each.
    pub machine_findings: Vec<String>,
    /// The number of rounds.
    pub rounds: u32,
    /// The critic.
    pub critic: CommitteeMember,
    /// The decision makers, who defend and score the move; one thread each.
    pub decision_makers: Vec<CommitteeMember>,
    /// The metrics to score.
    pub metrics: Vec<ScoreMetric>,
    /// The critic's model.
    pub critic_model: ModelList,
    /// The model of decision makers without a model of their own.
    pub decision_maker_model: ModelList,
    /// Settings for model calls.
    pub calls: CallSettings,
    /// Prompts that replace built-in ones.
    #[serde(default, skip_serializing_if = "OwnTexts::is_empty")]
    pub prompts: OwnTexts,
    /// Who scores the move after the debate.
    #[serde(default, skip_serializing_if = "DebateScoring::is_default")]
    pub scoring: DebateScoring,
    /// The facts that calculations read, as stored with the run; `None` if the speakers cannot
    /// attach calculations. Only their hash is known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calculations: Option<FileRef>,
}

/// Who scores a move after its debate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebateScoring {
    /// The decision makers who defended it.
    #[default]
    Defenders,
    /// The decision makers and a panel, which reads the recorded objections and answers.
    DefendersAndPanel,
    /// Only the panel: the debate ends after its last round.
    Panel,
}

impl DebateScoring {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Defenders
    }

    /// Whether answers to objections are recorded.
    pub(crate) fn records_answers(self) -> bool {
        self != Self::Defenders
    }
}

/// Settings for all model calls of a run. They are constant for a chain, because a change misses
/// the provider's cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSettings {
    /// Token limit for one debate message.
    pub message_tokens: u32,
    /// Token limit for longer texts: an inference, an analyst's moves.
    pub document_tokens: u32,
    /// The smallest context window among the models, in tokens.
    pub window_tokens: u32,
    /// Sent only to models that support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Timeout of one attempt; the gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Prompts, output schemas and parsing rules.
    #[serde(
        default = "PromptRevision::unstored",
        skip_serializing_if = "PromptRevision::is_unstored"
    )]
    pub prompts: PromptRevision,
}

impl CallSettings {
    /// The requested length of a debate message, well below the token limit because the structured
    /// lists need space too.
    pub(crate) fn message_words(&self) -> usize {
        (self.message_tokens / 5).clamp(15, 200) as usize
    }
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            message_tokens: 1_000,
            document_tokens: 6_000,
            window_tokens: 200_000,
            temperature: None,
            timeout_ms: None,
            prompts: PromptRevision::CURRENT,
        }
    }
}

/// Why a debate input is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDebate {
    /// Too few or too many items.
    #[error("invalid number of {what}: {found} (must be 1 to {most})")]
    Count {
        /// The kind of item.
        what: &'static str,
        /// The actual number.
        found: usize,
        /// The maximum.
        most: usize,
    },
    /// An invalid, duplicate or reserved id of a decision maker or metric.
    #[error(
        "invalid id `{0}`: use 1 to 40 letters, digits, `-` or `_`; ids must be unique and not reserved"
    )]
    Id(String),
    /// A text that is missing or too long.
    #[error("{0} is missing or too long")]
    Text(&'static str),
    /// A prompt of the user is invalid.
    #[error("a prompt of the user is invalid")]
    Prompt,
    /// An invalid effect id.
    #[error(transparent)]
    EffectId(#[from] crate::InvalidId),
}

/// The number of calls a debate makes, not counting retries: 61 for ten rounds and three decision
/// makers.
pub fn base_calls(rounds: u32, decision_makers: u32) -> u32 {
    // Each thread makes two calls per round. In the first round the critic's opening is one shared
    // call; each thread's call for scores makes up for it.
    rounds.saturating_mul(2).saturating_mul(decision_makers).saturating_add(1)
}

impl DebateInput {
    pub(crate) fn texts(&self) -> PromptTexts<'_> {
        PromptTexts { revision: self.calls.prompts, own: Some(&self.prompts) }
    }

    /// The id of the move as its text has it. The id of the debate would tell the speakers that a
    /// move is planted, or debated again.
    pub(crate) fn shown_move_id(&self) -> &str {
        let mut headings = self.move_markdown.lines().filter_map(|line| line.strip_prefix("# "));
        let id = headings.find_map(|heading| Some(heading.split_once(':')?.0));
        id.filter(|id| is_move_id(id)).unwrap_or(&self.move_id)
    }

    pub(crate) fn validate(&self) -> Result<(), InvalidDebate> {
        count("rounds", self.rounds as usize, 20)?;
        count("decision makers", self.decision_makers.len(), 5)?;
        count("metrics", self.metrics.len(), 8)?;
        self.validate_move_id()?;
        ids(self.decision_makers.iter().map(|seat| seat.id.as_str()), &RESERVED)?;
        ids(self.metrics.iter().map(|metric| metric.id.as_str()), &[REASONING])?;
        let checked = self.prompts.check(TextKind::Prompt, self.calls.prompts);
        checked.map_err(|_| InvalidDebate::Prompt)?;
        text("the dossier", &self.dossier, MAX_DOSSIER_BYTES)?;
        text("the move", &self.move_markdown, MAX_MOVE_BYTES)
    }

    fn validate_move_id(&self) -> Result<(), InvalidDebate> {
        let is_numbered = |part: &str, letter: char| {
            let digits = part.strip_prefix(letter).unwrap_or_default();
            !digits.is_empty()
                && digits.len() < 4
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let parts: Vec<&str> = self.move_id.split('/').collect();
        let parts = match parts.as_slice() {
            [pass, rest @ ..] if !rest.is_empty() && is_numbered(pass, 'r') => rest,
            all => all,
        };
        match parts {
            [move_id] => ids([*move_id], &[]),
            [move_id, repeat] if is_numbered(repeat, 'd') => ids([*move_id], &[]),
            _ => ids([self.move_id.as_str()], &[]),
        }
    }
}

fn count(what: &'static str, found: usize, most: usize) -> Result<(), InvalidDebate> {
    if (1..=most).contains(&found) {
        Ok(())
    } else {
        Err(InvalidDebate::Count { what, found, most })
    }
}

fn ids<'a>(
    ids: impl IntoIterator<Item = &'a str>,
    reserved: &[&'a str],
) -> Result<(), InvalidDebate> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut seen: BTreeSet<&str> = reserved.iter().copied().collect();
    for id in ids {
        if !(1..=40).contains(&id.len()) || !id.bytes().all(plain) || !seen.insert(id) {
            return Err(InvalidDebate::Id(id.chars().take(60).collect()));
        }
    }
    Ok(())
}

fn text(what: &'static str, text: &str, most_bytes: usize) -> Result<(), InvalidDebate> {
    if text.trim().is_empty() || text.len() > most_bytes {
        Err(InvalidDebate::Text(what))
    } else {
        Ok(())
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
