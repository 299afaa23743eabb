//! Who sits on the committee, what they look for, and how moves are scored.
//!
//! A committee is data: the built-in one and a user's own file are the same type. Lenses are short
//! rules of judgement, not biographies: personas do not make models more accurate.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The highest score of a metric; the lowest is 1.
pub const TOP_LEVEL: u8 = 10;

/// The longest lens or question of a committee file.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A committee: analysts propose moves, the critic attacks them, decision makers defend and score
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committee {
    /// A short name, such as `board`.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    /// How many rounds a debate has.
    pub rounds: u32,
    /// How many moves each analyst proposes.
    pub moves_per_analyst: u32,
    /// Who proposes moves.
    pub analysts: Vec<Seat>,
    /// Who attacks them.
    pub critic: Seat,
    /// Who defends and then scores them.
    pub decision_makers: Vec<Seat>,
    /// What is scored, each from 1 to 10.
    pub metrics: Vec<Metric>,
}

/// A member of a committee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seat {
    /// Stable and short: `analyst_1`, `critic`, `D2`. It is a part of effect ids.
    pub id: String,
    /// What people call the member.
    pub name: String,
    /// What the member looks for and how; it goes into the prompt as it stands.
    pub lens: String,
}

/// One thing that is scored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// The field's name in scores: `risk_adjusted_return`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The question that a score answers.
    pub asks: String,
    /// What a score means, lowest first; observable, so that two scorers mean the same thing.
    pub levels: Vec<Level>,
}

/// The meaning of scores from `from` up to the next level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The lowest score with this meaning.
    pub from: u8,
    /// What must be the case.
    pub means: String,
}

/// Why a committee cannot sit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCommittee {
    /// Too few or too many of something.
    #[error("{what}: there are {found}, and there must be from {least} to {most}")]
    Count {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// An id that cannot stand in effect ids and files, or stands twice.
    #[error("`{0}` is not a usable id: letters, digits, - and _, at most 40, each once")]
    Id(String),
    /// A text is missing or too long.
    #[error("{what} of `{of}` is empty or longer than {} bytes", MAX_TEXT_BYTES)]
    Text {
        /// Which text.
        what: &'static str,
        /// Of whom.
        of: String,
    },
    /// The levels of a metric do not ascend from 1 to 10.
    #[error("the levels of `{0}` must ascend, begin at 1 and stay within 10")]
    Levels(String),
}

impl Committee {
    /// The highest score that a move can get: 120 for the built-in committee.
    pub fn top_score(&self) -> u32 {
        let cells = self.metrics.len().saturating_mul(self.decision_makers.len());
        u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(u32::from(TOP_LEVEL))
    }

    /// How many moves each analyst proposes when there shall be `moves` in all, as even as can be;
    /// analysts without a move are not asked.
    pub fn shares(&self, moves: Option<u32>) -> Vec<u32> {
        let analysts = u32::try_from(self.analysts.len()).unwrap_or(u32::MAX).max(1);
        let most = analysts.saturating_mul(self.moves_per_analyst);
        let moves = moves.unwrap_or(most).min(most);
        let share = |analyst: u32| moves / analysts + u32::from(analyst < moves % analysts);
        (0..analysts).map(share).collect()
    }

    /// Whether a debate can be held by it.
    pub fn validate(&self) -> Result<(), InvalidCommittee> {
        count("rounds", self.rounds as usize, 1, 20)?;
        count("moves per analyst", self.moves_per_analyst as usize, 1, 5)?;
        count("analysts", self.analysts.len(), 1, 8)?;
        count("decision makers", self.decision_makers.len(), 1, 5)?;
        count("metrics", self.metrics.len(), 1, 8)?;
        let mut seen = BTreeSet::new();
        let seats = self.analysts.iter().chain([&self.critic]).chain(&self.decision_makers);
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

fn count(
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
