//! Scores that are not part of a debate: for doing nothing, for every move if the user requests a
//! baseline, and the cards of the panel.

use super::do_nothing::{DO_NOTHING_ID, do_nothing_move};
use super::ids::{RequestIds, alone};
use super::truncate::lines;
use super::workflow::{Consult, ConsultTask};
use crate::debate::{self, DebateInput, Scorecard};
use crate::model::{CallPurpose, ModelReply, ModelRequest};
use crate::structured::ask_again;
use crate::{EffectId, PromptRevision, RunEvent, Step};

/// Replies are truncated to this length before they are quoted to the model or searched for scores.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// A pending request for scores that are not part of a debate.
pub(crate) struct ScoreTask {
    pub(crate) target: ScoreTarget,
    /// Effect id of the retry; `None` if this is the retry.
    pub(crate) again: Option<EffectId>,
    /// Reply to the first request, if this is the retry.
    pub(crate) first: Option<String>,
}

/// Who scores what.
pub(crate) enum ScoreTarget {
    /// A decision maker, by index, scores a move without a debate; number 0 is doing nothing.
    Alone { number: u32, seat: usize },
    /// A panel member scores a case.
    Panel { case_id: String, member: String },
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
            let target = ScoreTarget::Alone { number, seat };
            let task = ScoreTask { target, again: Some(again), first: None };
            self.call(step, ask, ConsultTask::Score(task), request);
        }
    }

    pub(crate) fn scored(
        &mut self,
        id: &EffectId,
        task: ScoreTask,
        request: &ModelRequest,
        reply: &ModelReply,
        step: &mut Step,
    ) {
        let metrics = &self.input.committee.metrics;
        let revision = self.score_revision(&task.target);
        let fault = match debate::baseline::read(revision, reply, metrics) {
            Ok(card) => return self.store_scorecard(task.target, card),
            Err(fault) => fault,
        };
        step.publish.push(RunEvent::output_rejected(id, &fault));
        let answer = lines(&reply.text, MAX_ANSWER_BYTES);
        match &task.again {
            Some(again) => {
                let (again, request) = (again.clone(), ask_again(request, &answer, &fault));
                let task = ScoreTask { again: None, first: Some(answer), ..task };
                self.call(step, again, ConsultTask::Score(task), request);
            }
            None => {
                let first = task.first.as_deref();
                let texts = std::iter::once(answer.as_str()).chain(first);
                let card = debate::baseline::read_unstructured(revision, texts, metrics);
                self.store_scorecard(task.target, card);
            }
        }
    }

    /// Without a usable reply, keeps a card that is marked as not given.
    pub(crate) fn not_scored(&mut self, task: ScoreTask) {
        let metrics = &self.input.committee.metrics;
        let texts = task.first.as_deref().into_iter();
        let revision = self.score_revision(&task.target);
        let card = debate::baseline::read_unstructured(revision, texts, metrics);
        self.store_scorecard(task.target, card);
    }

    /// A missing card of the panel is missing in every revision, never a neutral 5.
    fn score_revision(&self, target: &ScoreTarget) -> PromptRevision {
        match target {
            ScoreTarget::Alone { .. } => self.known.prompts,
            ScoreTarget::Panel { .. } => PromptRevision::CURRENT,
        }
    }

    fn store_scorecard(&mut self, target: ScoreTarget, card: Scorecard) {
        match target {
            ScoreTarget::Alone { number, seat } => {
                if let Some(maker) = self.input.committee.decision_makers.get(seat) {
                    let cards = self.known.scored_alone.entry(number).or_default();
                    cards.insert(maker.id.clone(), card);
                }
            }
            ScoreTarget::Panel { case_id, member } => {
                self.known.panel.cards.entry(case_id).or_default().insert(member, card);
            }
        }
    }
}

#[cfg(test)]
#[path = "baseline_tests.rs"]
mod tests;
