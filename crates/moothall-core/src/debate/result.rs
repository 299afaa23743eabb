//! The result of a debate. It has no transcript: that can be derived from the answers in the
//! journal and would be stored twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calculation::CalculationResult;

/// The result of a debate: scores and objections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebateResult {
    /// The move.
    pub move_id: String,
    /// The configured number of rounds.
    pub rounds: u32,
    /// The number of rounds completed by every thread.
    pub rounds_done: u32,
    /// One scorecard per decision maker, by id.
    pub scorecards: BTreeMap<String, Scorecard>,
    /// The sum of all scores.
    pub total_score: u32,
    /// The highest possible sum.
    pub top_score: u32,
    /// The highest scorecard sum minus the lowest: how much the decision makers disagree.
    pub spread: u32,
    /// Every objection, in the order first raised.
    pub objections: Vec<Objection>,
    /// The last stance of each decision maker that stated one.
    pub stances: BTreeMap<String, DebateStance>,
    /// Problems of this debate; empty for a clean one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<DebateDegradation>,
    /// The calculations that the speakers attached, by round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calculations: Vec<CalculationResult>,
}

impl DebateResult {
    /// The sum of all scores, if every decision maker has scores.
    pub fn score(&self) -> Option<u32> {
        self.scorecards.values().all(Scorecard::is_given).then_some(self.total_score)
    }

    /// The score for display: `61/120`.
    pub fn score_text(&self) -> String {
        match self.score() {
            Some(score) => format!("{score}/{}", self.top_score),
            None => "not scored".to_owned(),
        }
    }

    /// The hardest open objection: ordered by severity, then by the number of threads in which it
    /// is open, then by when it was raised.
    pub fn hardest_open(&self) -> Option<&Objection> {
        let open = self.objections.iter().filter(|objection| objection.state.is_open());
        // `max_by_key` returns the last of equal elements, and the first one raised should win.
        open.rev().max_by_key(|objection| (objection.severity, objection.open_in.len()))
    }
}

/// The scores of one decision maker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scorecard {
    /// Scores from 1 to 10, by metric: every metric of the committee, or none if it is not scored.
    pub scores: BTreeMap<String, u8>,
    /// The decision maker's reasoning.
    pub reasoning: String,
    /// How the scores were obtained.
    pub basis: ScoreBasis,
}

impl Scorecard {
    /// Whether there are scores, given or neutral.
    pub fn is_given(&self) -> bool {
        self.basis != ScoreBasis::NotScored
    }

    /// The sum of the scores.
    pub fn sum(&self) -> u32 {
        self.scores.values().map(|score| u32::from(*score)).sum()
    }
}

/// How the scores of a scorecard were obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreBasis {
    /// From an answer that matches the schema.
    Structured,
    /// Parsed from prose by a strict parser, after two attempts failed.
    FromText,
    /// No usable answer: a neutral 5 for each metric. Only in runs of older versions.
    Neutral,
    /// No usable answer, so there are no scores.
    NotScored,
}

/// An objection of the critic and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Objection {
    /// Unique in the debate: `O1` for the opening, `D2-O3` for a thread.
    pub id: String,
    /// The severity that the critic gave it.
    pub severity: ObjectionSeverity,
    /// The critic's text, truncated.
    pub text: String,
    /// The ids it cites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The round in which it was raised.
    pub round: u32,
    /// Its state in the thread where that is worst for the move.
    pub state: ObjectionState,
    /// The decision makers in whose threads it is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_in: Vec<String>,
    /// The last answer to it; recorded only for a panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub reply: Option<ObjectionReply>,
}

/// An answer of a decision maker to one objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ObjectionReply {
    /// The round in which it was given.
    pub round: u32,
    /// The sentences of the message about this objection, truncated.
    pub text: String,
    /// The ids it cites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// The severity of an objection, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ObjectionSeverity {
    /// Reduces the value of the move.
    Minor,
    /// Changes the assessment of the move.
    Major,
    /// Rules the move out if true.
    Fatal,
}

impl ObjectionSeverity {
    /// The severity as it is written in prompts, the memo and the terminal.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Fatal => "fatal",
        }
    }
}

/// The state of an objection, best for the move first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ObjectionState {
    /// Answered and not raised again, or withdrawn.
    Answered,
    /// Answered in part, or raised again after the answer.
    Partly,
    /// Not answered.
    Open,
    /// Conceded by the decision maker.
    Conceded,
}

impl ObjectionState {
    /// Whether it still counts against the move.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Conceded | Self::Partly)
    }

    /// The state as the memo and the terminal write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Partly => "partly answered",
            Self::Open => "open",
            Self::Conceded => "conceded",
        }
    }

    /// The state in prompts. Not [`Self::word`]: stored runs contain the hashes of their prompts.
    pub(crate) const fn prompt_word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Partly => "answered in part",
            Self::Open => "not answered",
            Self::Conceded => "conceded",
        }
    }
}

/// The position of a decision maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DebateStance {
    /// Defends the move.
    Hold,
    /// Concedes a part.
    Partial,
    /// Concedes the move.
    Concede,
}

impl DebateStance {
    /// The stance as the memo and the terminal write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hold => "holds",
            Self::Partial => "partly concedes",
            Self::Concede => "concedes",
        }
    }
}

/// A problem that makes the result of a debate less reliable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "degraded", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum DebateDegradation {
    /// A thread ended before its last round.
    EndedEarly {
        /// The decision maker of the thread.
        thread: String,
        /// The last complete round.
        after_round: u32,
        /// The reason, such as `rate-limited`.
        why: String,
    },
    /// Messages that did not match the schema after two attempts. Their text is kept; their
    /// objections and stances are unknown.
    Unstructured {
        /// The decision maker of the thread; `opening` for the shared opening.
        thread: String,
        /// The number of messages.
        messages: u32,
    },
    /// Scores that were parsed from prose.
    ScoreFromText {
        /// The decision maker.
        decision_maker: String,
    },
    /// Missing scores, replaced by a neutral 5 each. Only in runs of older versions.
    NeutralScore {
        /// The decision maker.
        decision_maker: String,
    },
    /// Missing scores. The move has no total and no rank.
    NotScored {
        /// The decision maker.
        decision_maker: String,
    },
    /// Rounds that were replaced by a summary because the context window was full.
    Truncated {
        /// The message chain: `critic-D2`, `D2`.
        chain: String,
    },
}

impl DebateDegradation {
    /// Whether every decision maker of a debate with these problems has scores.
    pub fn is_scored(degraded: &[Self]) -> bool {
        !degraded.iter().any(|one| matches!(one, Self::NotScored { .. }))
    }

    /// The problem as the memo and the terminal write it.
    pub fn describe(&self) -> String {
        match self {
            Self::EndedEarly { thread, after_round, why } => {
                format!("the thread with {thread} ended after round {after_round} ({why})")
            }
            Self::Unstructured { thread, messages } => {
                let plural = if *messages == 1 { "" } else { "s" };
                format!("{messages} message{plural} in thread {thread} not in the requested format")
            }
            Self::ScoreFromText { decision_maker } => {
                format!("the scores of {decision_maker} were parsed from prose")
            }
            Self::NeutralScore { decision_maker } => {
                format!("{decision_maker} gave no usable scores; each is replaced by a neutral 5")
            }
            Self::NotScored { decision_maker } => {
                format!("{decision_maker} gave no usable scores, so the move is not ranked")
            }
            Self::Truncated { chain } => {
                format!(
                    "earlier rounds of {chain} were replaced by a summary because the context window was full"
                )
            }
        }
    }
}
