//! Scores without a debate: the same decision makers, lenses, form and scale, and nobody who attacks.
//! They are what a debate is measured against.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::debated::{ScoreBasis, Scorecard};
use super::ending;
use super::input::DebateInput;
use super::prompt;
use super::turn;
use crate::consult::committee::Metric;
use crate::model::{ModelReply, ModelRequest, Purpose};
use crate::structured::OutputFault;

/// What the decision makers give a move that nobody debated before them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Undebated {
    /// The move; `m0` is doing nothing.
    pub move_id: String,
    /// One card for each decision maker, by id.
    pub scorecards: BTreeMap<String, Scorecard>,
    /// The sum of all scores.
    pub total_score: u32,
    /// The highest sum there can be.
    pub top_score: u32,
    /// The highest card minus the lowest.
    pub spread: u32,
}

impl Undebated {
    pub(crate) fn of(
        move_id: String,
        scorecards: BTreeMap<String, Scorecard>,
        top_score: u32,
    ) -> Self {
        let sums = || scorecards.values().map(Scorecard::sum);
        let spread = sums().max().unwrap_or(0) - sums().min().unwrap_or(0);
        Self { move_id, total_score: sums().sum(), top_score, spread, scorecards }
    }

    /// Whether everyone gave scores: where a neutral 5 stands for one that nobody gave, the sum is
    /// compared with nothing.
    pub fn is_given(&self) -> bool {
        self.scorecards.values().all(|card| card.basis != ScoreBasis::Neutral)
    }
}

/// The question to one decision maker: behind the same words as in a debate, so that a provider has
/// them in its cache. Nothing where there is no such seat.
pub(crate) fn ask(input: &DebateInput, seat: usize, purpose: Purpose) -> Option<ModelRequest> {
    let voice = prompt::decision_maker(input, input.decision_makers.get(seat)?).ok()?;
    let asked = prompt::score_alone().into();
    Some(Chain::default().ask(&voice, purpose, &asked, |_, _| String::new()))
}

/// The card of an answer that is as asked for.
pub(crate) fn read(reply: &ModelReply, metrics: &[Metric]) -> Result<Scorecard, OutputFault> {
    let (scores, reasoning) = turn::read_scores(reply, metrics)?;
    Ok(ending::card(scores, &reasoning, ScoreBasis::Structured))
}

/// The card of answers that are not, newest first, or a neutral one.
pub(crate) fn read_words<'a>(
    texts: impl Iterator<Item = &'a str>,
    metrics: &[Metric],
) -> Scorecard {
    ending::card_from_texts(texts, metrics)
}
