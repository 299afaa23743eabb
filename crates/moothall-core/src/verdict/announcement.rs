//! Questions whether a company announces a move, and what became of moves by tier.
//!
//! Code cannot see in an 8-K whether it announces a move, so a person notes it. Only the absence of
//! any 8-K (of a foreign company: 6-K) is an answer by itself. An answer counts after the end of the window: otherwise announced
//! moves would be counted immediately and all others a year later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tiers::{TierList, VerdictTier};
use crate::evidence::{CalendarDay, FilingEvent};

/// Days in which the company can announce a move.
const WINDOW_DAYS: i32 = 365;

/// A question whether the company announces a move of the lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnouncementQuestion {
    /// Unique in a run, also among the questions about figures: `q16`.
    pub id: String,
    /// The move.
    pub move_id: String,
    /// Its title.
    pub title: String,
    /// The last day on which an announcement counts.
    pub last_day: CalendarDay,
}

impl AnnouncementQuestion {
    /// One question for each of these moves (id and title). Numbers start after `others`.
    pub fn of_moves<'a>(
        moves: impl IntoIterator<Item = (&'a str, String)>,
        others: usize,
        asked: CalendarDay,
    ) -> Vec<Self> {
        let moves = moves.into_iter().enumerate();
        let question = |(at, (move_id, title)): (usize, (&str, String))| Self {
            id: format!("q{}", others + at + 1),
            move_id: move_id.to_owned(),
            title,
            last_day: asked.plus_days(WINDOW_DAYS),
        };
        moves.map(question).collect()
    }

    /// The question in a few words, for people.
    pub fn summary(&self) -> String {
        format!("announced in an 8-K or 6-K by {}: {}", self.last_day, self.title)
    }

    /// The question in one sentence, for a model.
    pub fn text(&self) -> String {
        let Self { last_day, title, .. } = self;
        format!("the company will announce this move in an 8-K or 6-K by {last_day}: {title}")
    }
}

/// What a person noted about a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveNote {
    /// The company announced it on this day.
    Taken(CalendarDay),
    /// The company had not announced it on this day.
    NotTaken(CalendarDay),
}

/// The answer to a question about an announcement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnouncementOutcome {
    /// The question.
    pub question: String,
    /// Whether the company announced the move in time.
    pub happened: bool,
    /// Why this is known.
    pub basis: AnnouncementBasis,
}

/// Why the answer to a question about an announcement is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnnouncementBasis {
    /// A person noted it.
    Note,
    /// The company filed no 8-K or 6-K in the window.
    NoFiling,
}

/// The answer to a question, once its window is over on `as_of`. `asked` is the day up to which the
/// members knew filings; `events` are the newest ones of the company.
pub fn resolve_announcement(
    question: &AnnouncementQuestion,
    asked: CalendarDay,
    as_of: CalendarDay,
    note: Option<MoveNote>,
    events: &[FilingEvent],
) -> Option<AnnouncementOutcome> {
    if as_of <= question.last_day {
        return None;
    }
    let answer = |happened, basis| {
        Some(AnnouncementOutcome { question: question.id.clone(), happened, basis })
    };
    match note {
        // What was announced before is not a forecast.
        Some(MoveNote::Taken(day)) if day <= asked => None,
        Some(MoveNote::Taken(day)) => answer(day <= question.last_day, AnnouncementBasis::Note),
        Some(MoveNote::NotTaken(day)) if day > question.last_day => {
            answer(false, AnnouncementBasis::Note)
        }
        Some(MoveNote::NotTaken(_)) | None => {
            let is_within =
                |event: &FilingEvent| event.filed > asked && event.filed <= question.last_day;
            // An older event shows that the list reaches back to the start of the window.
            let is_covered = events.iter().any(|event| event.filed <= asked);
            let is_silent = is_covered && !events.iter().any(is_within);
            if is_silent { answer(false, AnnouncementBasis::NoFiling) } else { None }
        }
    }
}

/// What became of the moves of a tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TierOutcome {
    /// Moves in the tier, in all runs with recorded outcomes.
    pub moves: u32,
    /// Moves that the company took, as a person noted.
    pub taken: u32,
    /// Moves that the company did not take, as a person noted.
    pub not_taken: u32,
}

/// Adds the moves of a run to the outcomes by tier. Doing nothing is not a move.
pub fn count_tiers(
    outcomes: &mut BTreeMap<VerdictTier, TierOutcome>,
    tiers: &TierList,
    notes: &BTreeMap<String, MoveNote>,
) {
    for one in tiers.moves_by_estimate() {
        let Some(tier) = one.tier else { continue };
        let outcome = outcomes.entry(tier).or_default();
        outcome.moves += 1;
        match notes.get(&one.move_id) {
            Some(MoveNote::Taken(_)) => outcome.taken += 1,
            Some(MoveNote::NotTaken(_)) => outcome.not_taken += 1,
            None => {}
        }
    }
}

#[cfg(test)]
#[path = "announcement_tests.rs"]
mod tests;
