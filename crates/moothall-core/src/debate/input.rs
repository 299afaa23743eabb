//! What a debate starts with. It travels into a guest, so it holds no key, no other move and
//! nothing that a debate does not need.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::turn::REASONING;
use crate::consult::committee::{Metric, Seat};
use crate::model::{InvalidSchema, ModelName, PromptText, Temperature};

/// The longest dossier and the longest move, in bytes; far beyond what a window has room for.
const MAX_DOSSIER_BYTES: usize = 256 * 1024;
const MAX_MOVE_BYTES: usize = 64 * 1024;

/// Words that stand where the id of a decision maker does.
const RESERVED: [&str; 4] = ["critic", "all", "opening", "ask-2"];

/// One move, the evidence, and who debates it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebateInput {
    /// `m7`: the first segment of every effect id of this debate.
    pub move_id: String,
    /// Who the move is for, as prompts name it.
    pub company: String,
    /// The evidence, the same bytes for every agent and every move: the first cached block.
    pub dossier: PromptText,
    /// The move as its author wrote it.
    pub move_markdown: PromptText,
    /// What code found wrong with the move before anyone spoke, one line each.
    pub machine_findings: Vec<String>,
    /// How many rounds there are.
    pub rounds: u32,
    /// Who attacks.
    pub critic: Seat,
    /// Who defends and scores; one thread each.
    pub decision_makers: Vec<Seat>,
    /// What is scored.
    pub metrics: Vec<Metric>,
    /// Who speaks for the critic.
    pub critic_model: ModelName,
    /// Who speaks for the decision makers.
    pub decision_maker_model: ModelName,
    /// How models are asked.
    pub calls: Calls,
}

/// How every model of a run is asked. The same for a whole chain, because a change misses the
/// provider's cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// The most tokens that one message of a debate may have.
    pub message_tokens: u32,
    /// The most tokens of a longer text: an inference, an analyst's moves.
    pub document_tokens: u32,
    /// The smallest window among the models, in tokens.
    pub window_tokens: u32,
    /// Sent only to models that take one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// How long one try may take. The gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            message_tokens: 1_000,
            document_tokens: 6_000,
            window_tokens: 200_000,
            temperature: None,
            timeout_ms: None,
        }
    }
}

/// Why no debate can be made of an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDebate {
    /// Too few or too many of something.
    #[error("{what}: there are {found}, and there must be from 1 to {most}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The most.
        most: usize,
    },
    /// A decision maker or a metric whose id cannot stand where it would have to.
    #[error(
        "`{0}` is not a usable id: letters, digits, - and _, at most 40, each once, and no word that a debate uses itself"
    )]
    Id(String),
    /// A text that is missing or too long.
    #[error("{0} is missing or too long")]
    Text(&'static str),
    /// An effect id that cannot be made.
    #[error(transparent)]
    EffectId(#[from] crate::InvalidId),
    /// A schema that cannot be made.
    #[error(transparent)]
    Schema(#[from] InvalidSchema),
}

/// How many calls a debate takes, questions that are asked again apart: 61 for ten rounds and three
/// decision makers.
pub fn base_calls(rounds: u32, decision_makers: u32) -> u32 {
    // Two a round in every thread: in the first round the opening is one call for all, and in its
    // place each thread has the call for the scores.
    rounds.saturating_mul(2).saturating_mul(decision_makers).saturating_add(1)
}

impl DebateInput {
    pub(super) fn validate(&self) -> Result<(), InvalidDebate> {
        count("rounds", self.rounds as usize, 20)?;
        count("decision makers", self.decision_makers.len(), 5)?;
        count("metrics", self.metrics.len(), 8)?;
        ids([self.move_id.as_str()], &[])?;
        ids(self.decision_makers.iter().map(|seat| seat.id.as_str()), &RESERVED)?;
        ids(self.metrics.iter().map(|metric| metric.id.as_str()), &[REASONING])?;
        text("the dossier", &self.dossier, MAX_DOSSIER_BYTES)?;
        text("the move", &self.move_markdown, MAX_MOVE_BYTES)
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
