//! What a debate comes to. It holds no transcript: that follows from the answers in the journal, and
//! would otherwise be stored twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The end of a debate: scores, and what stayed open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debated {
    /// The move.
    pub move_id: String,
    /// Rounds that there should have been.
    pub rounds: u32,
    /// Rounds that every thread came through.
    pub rounds_done: u32,
    /// One card for each decision maker, by id.
    pub scorecards: BTreeMap<String, Scorecard>,
    /// The sum of all scores.
    pub total_score: u32,
    /// The highest sum there can be.
    pub top_score: u32,
    /// The highest card minus the lowest: how far the decision makers are apart.
    pub spread: u32,
    /// Every objection, in the order in which it was first raised.
    pub objections: Vec<Objection>,
    /// The last stance of each decision maker, where one was stated.
    pub stances: BTreeMap<String, Stance>,
    /// What is not as it should be; empty for a clean debate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<Degradation>,
}

impl Debated {
    /// The hardest objection that was not answered: the gravest, then the one that stands in most
    /// threads, then the first.
    pub fn hardest_open(&self) -> Option<&Objection> {
        let open = self.objections.iter().filter(|objection| objection.state.is_open());
        // `max_by_key` takes the last of equals; the first one raised shall win.
        open.rev().max_by_key(|objection| (objection.severity, objection.open_in.len()))
    }
}

/// What one decision maker gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scorecard {
    /// From 1 to 10 by metric, all metrics of the committee.
    pub scores: BTreeMap<String, u8>,
    /// Why, in the decision maker's words.
    pub reasoning: String,
    /// Where the numbers come from.
    pub basis: ScoreBasis,
}

impl Scorecard {
    /// The sum of the card.
    pub fn sum(&self) -> u32 {
        self.scores.values().map(|score| u32::from(*score)).sum()
    }
}

/// Where the numbers of a scorecard come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreBasis {
    /// As asked for.
    Structured,
    /// Taken from prose by a strict reader, after asking twice.
    FromText,
    /// Nobody said anything usable: a neutral 5 for each metric.
    Neutral,
}

/// An objection of the critic and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Objection {
    /// Unique in the debate: `O1` of the opening, `D2-O3` of a thread.
    pub id: String,
    /// How grave the critic says it is.
    pub severity: ObjectionSeverity,
    /// In the critic's words, cut to a bearable length.
    pub text: String,
    /// What it cites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The round in which it was raised.
    pub round: u32,
    /// What became of it, in the thread where it fared worst for the move.
    pub state: ObjectionState,
    /// Decision makers in whose threads it is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_in: Vec<String>,
}

/// How grave an objection is, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ObjectionSeverity {
    /// Costs something.
    Minor,
    /// Changes the case.
    Major,
    /// Ends the case if it is right.
    Fatal,
}

/// What became of an objection, best for the move first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ObjectionState {
    /// Answered, and the critic did not come back to it; or taken back.
    Answered,
    /// Answered in part, or pressed again after the answer.
    Partly,
    /// Nobody answered it.
    Open,
    /// The decision maker granted it.
    Conceded,
}

impl ObjectionState {
    /// Whether it still stands against the move.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Conceded | Self::Partly)
    }
}

/// Where a decision maker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Stance {
    /// Defends the move.
    Hold,
    /// Grants a part.
    Partial,
    /// Gives the move up.
    Concede,
}

/// One way in which a debate is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "degraded", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Degradation {
    /// A thread ended before its last round.
    EndedEarly {
        /// Whose thread.
        thread: String,
        /// The last round that was complete.
        after_round: u32,
        /// Why, such as `rate-limited`.
        why: String,
    },
    /// Messages that were not in the form asked for, after asking twice; their words are kept,
    /// their objections and stances are unknown.
    Unstructured {
        /// Whose thread; `opening` for the shared one.
        thread: String,
        /// How many.
        messages: u32,
    },
    /// Scores that were taken from prose.
    ScoreFromText {
        /// Whose.
        decision_maker: String,
    },
    /// Scores that nobody gave: neutral 5s.
    NeutralScore {
        /// Whose.
        decision_maker: String,
    },
    /// Rounds that were replaced by a summary, because the window was full.
    Truncated {
        /// Whose chain: `critic-D2`, `D2`.
        chain: String,
    },
}
