//! What filings and people said later about the forecasts and the moves of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::forecasting::ForecastRecord;
use super::panel_record::PanelVerdict;
use crate::RunId;
use crate::evidence::{CalendarDay, Evidence};
use crate::verdict::{
    AnnouncementBasis, AnnouncementOutcome, ForecastOutcome, MemberForecast, MoveNote,
    ResolvedForecast, is_possibly_known, resolve_announcement, resolve_question,
};

/// What happened after a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOutcomes {
    /// Answers of filings to questions about figures.
    pub outcomes: Vec<ForecastOutcome>,
    /// Moves that the company took, with the day.
    pub taken: BTreeMap<String, CalendarDay>,
    /// Moves that the company had not taken on this day.
    pub not_taken: BTreeMap<String, CalendarDay>,
    /// Answers to questions about announcements.
    pub announcements: Vec<AnnouncementOutcome>,
}

impl RunOutcomes {
    /// What a person noted about each move.
    pub fn notes(&self) -> BTreeMap<String, MoveNote> {
        let not_taken = self.not_taken.iter();
        let not_taken = not_taken.map(|(id, day)| (id.clone(), MoveNote::NotTaken(*day)));
        let taken = self.taken.iter().map(|(id, day)| (id.clone(), MoveNote::Taken(*day)));
        not_taken.chain(taken).collect()
    }

    /// Notes what became of a move. The last note counts, so answers that follow from an earlier one
    /// are removed.
    pub fn note(&mut self, move_id: &str, note: MoveNote, record: Option<&ForecastRecord>) {
        self.taken.remove(move_id);
        self.not_taken.remove(move_id);
        match note {
            MoveNote::Taken(day) => self.taken.insert(move_id.to_owned(), day),
            MoveNote::NotTaken(day) => self.not_taken.insert(move_id.to_owned(), day),
        };
        let questions = record.into_iter().flat_map(|record| &record.announcements);
        for question in questions.filter(|question| question.move_id == move_id) {
            self.announcements.retain(|known| {
                let is_contradicted = matches!(note, MoveNote::Taken(_));
                known.question != question.id
                    || (known.basis == AnnouncementBasis::NoFiling && !is_contradicted)
            });
        }
    }

    /// Answers questions from filings that were gathered later. Returns the day of these filings, or
    /// `None` if they have no figures.
    pub fn answer(&mut self, record: &ForecastRecord, later: &Evidence) -> Option<CalendarDay> {
        let sheet = later.sheet.as_ref()?;
        let resolve = |question| resolve_question(question, sheet, record.asked);
        for outcome in record.questions.iter().filter_map(resolve) {
            // The first answer stays.
            if self.outcomes.iter().all(|known| known.question != outcome.question) {
                self.outcomes.push(outcome);
            }
        }
        let notes = self.notes();
        for question in &record.announcements {
            let note = notes.get(&question.move_id).copied();
            let found =
                resolve_announcement(question, record.asked, sheet.as_of, note, &later.events);
            // Without an answer, an earlier one stays: the list of filings has only the newest.
            if let Some(found) = found {
                self.announcements.retain(|known| known.question != question.id);
                self.announcements.push(found);
            }
        }
        Some(sheet.as_of)
    }
}

/// A run whose forecasts are scored.
#[derive(Debug)]
pub struct ScoredRun<'a, F> {
    /// The run.
    pub run_id: &'a RunId,
    /// Its verdict.
    pub verdict: &'a PanelVerdict,
    /// The day of the run.
    pub run_on: CalendarDay,
    /// What happened.
    pub outcomes: &'a RunOutcomes,
    /// The day up to which a model knows the world, if it is known.
    pub knowledge_until: F,
}

impl<F: Fn(&str) -> Option<CalendarDay>> ScoredRun<'_, F> {
    /// Stated chances about figures whose questions have an answer.
    pub fn figures(&self) -> Vec<ResolvedForecast> {
        let Some(record) = &self.verdict.forecasts else { return Vec::new() };
        let stated = record.forecasts.iter().filter_map(|stated| {
            let question = record.questions.iter().find(|one| one.id == stated.question)?;
            let mut answers = self.outcomes.outcomes.iter();
            let outcome = answers.find(|one| one.question == stated.question)?;
            let past = Some(question.past_frequency);
            self.resolved(stated, outcome.happened, past, question.period_end)
        });
        stated.collect()
    }

    /// Stated chances about announcements whose questions have an answer.
    pub fn announcements(&self) -> Vec<ResolvedForecast> {
        let Some(record) = &self.verdict.forecasts else { return Vec::new() };
        let stated = record.forecasts.iter().filter_map(|stated| {
            let mut answers = self.outcomes.announcements.iter();
            let outcome = answers.find(|one| one.question == stated.question)?;
            // A model that learned anything after the question may know the answer.
            self.resolved(stated, outcome.happened, None, record.asked)
        });
        stated.collect()
    }

    fn resolved(
        &self,
        stated: &MemberForecast,
        happened: bool,
        past_frequency: Option<u32>,
        period_end: CalendarDay,
    ) -> Option<ResolvedForecast> {
        let judge = self.verdict.record.judges.iter().find(|judge| judge.id == stated.member)?;
        let known = (self.knowledge_until)(&judge.model);
        Some(ResolvedForecast {
            question: format!("{}/{}", self.run_id, stated.question),
            member: stated.member.clone(),
            model: judge.model.clone(),
            chance: stated.chance,
            past_frequency,
            happened,
            is_possibly_known: is_possibly_known(period_end, known, self.run_on),
        })
    }
}
