//! Scores without a debate: of doing nothing, and of every move where the user wants a baseline.

use super::ids::{Written, alone};
use super::nothing::{NOTHING, nothing};
use super::words::lines;
use super::workflow::{Consult, Task};
use crate::debate::{self, DebateInput, Scorecard};
use crate::model::{ModelReply, ModelRequest, Purpose};
use crate::structured::ask_again;
use crate::{EffectId, RunEvent, Step};

/// The longest answer that is kept to be shown again or searched.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// A question for scores.
pub(super) struct Alone {
    /// The number of the move; 0 is doing nothing.
    number: u32,
    /// The decision maker's place.
    seat: usize,
    /// The second question, where this is the first.
    again: Option<EffectId>,
    /// What the first was answered, where this is the second.
    first: Option<String>,
}

impl Consult {
    /// Asks for all scores without a debate. It happens beside the debates.
    pub(super) fn start_scoring_alone(&mut self, step: &mut Step) {
        if self.input.terms.do_nothing {
            self.known.nothing = Some(nothing(&self.known));
        }
        let mut wanted = Vec::new();
        let Some(dossier) = self.known.dossier.clone() else { return };
        if let Some(doing_nothing) = &self.known.nothing {
            let markdown = self.known.marked(doing_nothing.markdown()).into();
            let input = self.debate_about(NOTHING, dossier, markdown);
            wanted.push((0, input, "score", Purpose::ScoreNothing));
        }
        if self.input.terms.baseline {
            let numbers = self.known.debated_moves();
            wanted.extend(numbers.filter_map(|number| {
                Some((number, self.debate(number)?, "baseline", Purpose::ScoreBaseline))
            }));
        }
        for (number, input, what, purpose) in wanted {
            self.score_alone(step, number, &input, what, purpose);
        }
    }

    fn score_alone(
        &mut self,
        step: &mut Step,
        number: u32,
        input: &DebateInput,
        what: &str,
        purpose: Purpose,
    ) {
        for (seat, maker) in input.decision_makers.iter().enumerate() {
            // The committee was tried out before the run began: all of them can be asked.
            let Some(request) = debate::alone::ask(input, seat, purpose) else { continue };
            let Ok(Written { ask, again }) = alone(&input.move_id, what, &maker.id) else {
                continue;
            };
            let task = Alone { number, seat, again: Some(again), first: None };
            self.call(step, ask, Task::Alone(task), request);
        }
    }

    pub(super) fn scored_alone(
        &mut self,
        id: &EffectId,
        alone: Alone,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let metrics = &self.input.committee.metrics;
        let fault = match debate::alone::read(reply, metrics) {
            Ok(card) => return self.keep_card(&alone, card),
            Err(fault) => fault,
        };
        step.publish.push(RunEvent::output_rejected(id, &fault));
        let answer = lines(&reply.text, MAX_ANSWER_BYTES);
        match &alone.again {
            Some(again) => {
                let (again, request) = (again.clone(), ask_again(request, &answer, &fault));
                let task = Alone { again: None, first: Some(answer), ..alone };
                self.call(step, again, Task::Alone(task), request);
            }
            None => {
                let first = alone.first.as_deref();
                let texts = std::iter::once(answer.as_str()).chain(first);
                let card = debate::alone::read_words(texts, metrics);
                self.keep_card(&alone, card);
            }
        }
    }

    /// Nobody answered: a neutral card stands there and says that it is one.
    pub(super) fn not_scored_alone(&mut self, alone: &Alone) {
        let metrics = &self.input.committee.metrics;
        let card = debate::alone::read_words(alone.first.as_deref().into_iter(), metrics);
        self.keep_card(alone, card);
    }

    fn keep_card(&mut self, alone: &Alone, card: Scorecard) {
        let makers = &self.input.committee.decision_makers;
        if let Some(maker) = makers.get(alone.seat) {
            let cards = self.known.scored_alone.entry(alone.number).or_default();
            cards.insert(maker.id.clone(), card);
        }
    }
}

#[cfg(test)]
#[path = "alone_tests.rs"]
mod tests;
