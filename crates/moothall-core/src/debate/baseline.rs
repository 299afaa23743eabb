//! Scores without a debate, as the baseline for debated scores: the same decision makers, lenses,
//! output schema and scale, but no critic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chain::MessageChain;
use super::input::{CallSettings, DebateInput};
use super::outcome;
use super::prompt;
use super::result::{ScoreBasis, Scorecard};
use super::turn;
use crate::PromptRevision;
use crate::consult::committee::ScoreMetric;
use crate::model::{CallPurpose, ModelReply, ModelRequest, OutputSchema};
use crate::structured::OutputFault;

/// The decision makers' scores for a move without a debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaselineScores {
    /// The move; `m0` is the do-nothing option.
    pub move_id: String,
    /// One scorecard per decision maker, by id.
    pub scorecards: BTreeMap<String, Scorecard>,
    /// The sum of all scores.
    pub total_score: u32,
    /// The highest possible sum.
    pub top_score: u32,
    /// The highest scorecard sum minus the lowest.
    pub spread: u32,
}

impl BaselineScores {
    pub(crate) fn of(
        move_id: String,
        scorecards: BTreeMap<String, Scorecard>,
        top_score: u32,
    ) -> Self {
        let sums = || scorecards.values().filter(|card| card.is_given()).map(Scorecard::sum);
        let spread = sums().max().unwrap_or(0) - sums().min().unwrap_or(0);
        Self { move_id, total_score: sums().sum(), top_score, spread, scorecards }
    }

    /// Whether every decision maker has scores, given or neutral.
    pub fn is_scored(&self) -> bool {
        self.scorecards.values().all(Scorecard::is_given)
    }

    /// Whether every decision maker gave scores. Other totals are not compared.
    pub fn is_given(&self) -> bool {
        let given = |card: &Scorecard| card.is_given() && card.basis != ScoreBasis::Neutral;
        self.scorecards.values().all(given)
    }
}

/// The request to one decision maker, with the same prefix as in a debate so the provider's
/// cache is used. `None` if `seat` is out of range.
pub(crate) fn ask(input: &DebateInput, seat: usize, purpose: CallPurpose) -> Option<ModelRequest> {
    let persona = prompt::decision_maker(input, input.decision_makers.get(seat)?);
    let user_prompt = prompt::score_alone(input).into();
    Some(MessageChain::default().ask(&persona, purpose, &user_prompt, |_, _| String::new()))
}

/// The schema of the scores, as decision makers and panel members give them.
pub(crate) fn schema(calls: &CallSettings, metrics: &[ScoreMetric]) -> OutputSchema {
    let current = CallSettings { prompts: PromptRevision::CURRENT, ..calls.clone() };
    turn::score_schema(&current, metrics)
}

/// Reads the scorecard from an answer that matches the schema.
pub(crate) fn read(
    revision: PromptRevision,
    reply: &ModelReply,
    metrics: &[ScoreMetric],
) -> Result<Scorecard, OutputFault> {
    let (scores, reasoning) = turn::read_scores(revision, reply, metrics)?;
    Ok(outcome::card(scores, &reasoning, ScoreBasis::Structured))
}

/// Reads the scorecard from unstructured answers, newest first.
pub(crate) fn read_unstructured<'a>(
    revision: PromptRevision,
    texts: impl Iterator<Item = &'a str>,
    metrics: &[ScoreMetric],
) -> Scorecard {
    outcome::card_from_texts(revision, texts, metrics)
}
