//! The steps of a debate that are about calculations: requests, executions, and what both sides read.

use super::calculation_log::{CalculationPlace, EndedCalculation, WaitingCalculation};
use super::call::ParsedReply;
use super::{CRITIC, Debate, prompt};
use crate::{EffectId, FindingSeverity, RunEvent, RunEventBody, RunFinding, Step};

impl Debate {
    /// Keeps the calculation of a turn for the end of the half round, and checks what the turn
    /// quotes from earlier ones.
    pub(crate) fn note_calculation(&mut self, id: &EffectId, parsed: &ParsedReply) {
        if self.input.calculations.is_none() {
            return;
        }
        let seat = |index: &usize| self.threads.get(*index).map(|thread| thread.seat.id.clone());
        let (place, speaker, thread, round) = match parsed {
            ParsedReply::Opening(_) => {
                (CalculationPlace::Opening, CRITIC.to_owned(), "all".to_owned(), 1)
            }
            ParsedReply::Critic { thread, round, .. } => {
                let Some(id) = seat(thread) else { return };
                (CalculationPlace::Thread(*thread), CRITIC.to_owned(), id, *round)
            }
            ParsedReply::DecisionMaker { thread, round, .. } => {
                let Some(id) = seat(thread) else { return };
                (CalculationPlace::Thread(*thread), id.clone(), id, *round)
            }
            ParsedReply::Score { .. } => return,
        };
        let subject = format!("{}/round-{round}/{speaker}", self.input.move_id);
        for line in self.calculations.misquotes(&parsed.prose()) {
            let finding = RunFinding::new(
                "debate.calculation-misquoted",
                FindingSeverity::Warn,
                subject.clone(),
                line.clone(),
            );
            self.misquotes.push(finding);
            self.add_note(place, &format!("Check of {speaker}, round {round}: {line}"));
        }
        if let Some(request) = parsed.calculation().cloned() {
            let turn = id.clone();
            let waiting = WaitingCalculation { turn, speaker, thread, round, request };
            self.calculations.request(place, waiting);
        }
    }

    fn add_note(&mut self, place: CalculationPlace, line: &str) {
        match place {
            CalculationPlace::Opening => {
                self.threads.iter_mut().for_each(|thread| thread.add_note(line));
            }
            CalculationPlace::Thread(index) => {
                if let Some(thread) = self.threads.get_mut(index) {
                    thread.add_note(line);
                }
            }
        }
    }

    /// Runs the calculations of the half round that ended.
    pub(crate) fn start_calculations(&mut self, step: &mut Step) {
        let Some(facts) = self.input.calculations else { return };
        let started = self.calculations.start(self.input.shown_move_id(), facts);
        for place in started.refused {
            self.add_note(place, "A calculation was not run: its author has none left.");
        }
        for ended in started.ended {
            self.calculated(step, ended);
        }
        step.perform.extend(started.perform);
    }

    /// Shows both sides what came of a calculation.
    pub(crate) fn calculated(&mut self, step: &mut Step, ended: EndedCalculation) {
        let EndedCalculation { effect_id, place, result } = ended;
        self.add_note(place, &prompt::calculation_line(&result));
        let body = RunEventBody::Calculated {
            effect_id: effect_id.clone(),
            move_id: self.input.move_id.clone(),
            calculation: Box::new(result),
        };
        step.publish.push(RunEvent::about(&effect_id, body));
    }
}
