//! Scores without a debate: for doing nothing, and for every move if the user requests a baseline.

use super::do_nothing::{DO_NOTHING_ID, do_nothing_move};
use super::ids::{RequestIds, alone};
use super::truncate::lines;
use super::workflow::{Consult, ConsultTask};
use crate::debate::{self, DebateInput, Scorecard};
use crate::model::{CallPurpose, ModelReply, ModelRequest};
use crate::structured::ask_again;
use crate::{EffectId, RunEvent, Step};

/// Replies are truncated to this length before they are quoted to the model or searched for scores.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// A pending request for scores without a debate.
pub(crate) struct BaselineTask {
    /// Move number; 0 is doing nothing.
    number: u32,
    /// Index of the decision maker.
    seat: usize,
    /// Effect id of the retry; `None` if this is the retry.
    again: Option<EffectId>,
    /// Reply to the first request, if this is the retry.
    first: Option<String>,
}

impl Consult {
    /// Requests all scores without a debate. Runs in parallel with the debates.
    pub(crate) fn start_scoring_alone(&mut self, step: &mut Step) {
        if self.input.terms.do_nothing {
            self.known.nothing = Some(do_nothing_move(&self.known));
        }
        let mut wanted = Vec::new();
        let Some(dossier) = self.known.dossier.clone() else { return };
        if let Some(doing_nothing) = &self.known.nothing {
            let markdown = self.known.marked(doing_nothing.markdown()).into();
            let input = self.debate_about(DO_NOTHING_ID, dossier, markdown);
            wanted.push((0, input, "score", CallPurpose::ScoreNothing));
        }
        if self.input.terms.baseline {
            let numbers = self.known.debated_moves();
            wanted.extend(numbers.filter_map(|number| {
                Some((number, self.debate(number)?, "baseline", CallPurpose::ScoreBaseline))
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
        purpose: CallPurpose,
    ) {
        for (seat, maker) in input.decision_makers.iter().enumerate() {
            // Always succeeds: the committee was validated before the run started.
            let Some(request) = debate::baseline::ask(input, seat, purpose) else { continue };
            let Ok(RequestIds { ask, again }) = alone(&input.move_id, what, &maker.id) else {
                continue;
            };
            let task = BaselineTask { number, seat, again: Some(again), first: None };
            self.call(step, ask, ConsultTask::Alone(task), request);
        }
    }

    pub(crate) fn scored_alone(
        &mut self,
        id: &EffectId,
        alone: BaselineTask,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let metrics = &self.input.committee.metrics;
        let fault = match debate::baseline::read(self.known.prompts, reply, metrics) {
            Ok(card) => return self.store_scorecard(&alone, card),
            Err(fault) => fault,
        };
        step.publish.push(RunEvent::output_rejected(id, &fault));
        let answer = lines(&reply.text, MAX_ANSWER_BYTES);
        match &alone.again {
            Some(again) => {
                let (again, request) = (again.clone(), ask_again(request, &answer, &fault));
                let task = BaselineTask { again: None, first: Some(answer), ..alone };
                self.call(step, again, ConsultTask::Alone(task), request);
            }
            None => {
                let first = alone.first.as_deref();
                let texts = std::iter::once(answer.as_str()).chain(first);
                let card = debate::baseline::read_unstructured(self.known.prompts, texts, metrics);
                self.store_scorecard(&alone, card);
            }
        }
    }

    /// Without a usable reply, keeps a card that is marked as not given.
    pub(crate) fn not_scored_alone(&mut self, alone: &BaselineTask) {
        let metrics = &self.input.committee.metrics;
        let texts = alone.first.as_deref().into_iter();
        let card = debate::baseline::read_unstructured(self.known.prompts, texts, metrics);
        self.store_scorecard(alone, card);
    }

    fn store_scorecard(&mut self, alone: &BaselineTask, card: Scorecard) {
        let makers = &self.input.committee.decision_makers;
        if let Some(maker) = makers.get(alone.seat) {
            let cards = self.known.scored_alone.entry(alone.number).or_default();
            cards.insert(maker.id.clone(), card);
        }
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
