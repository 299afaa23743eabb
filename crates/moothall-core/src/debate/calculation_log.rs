//! The calculations of one debate: which are requested, which are running, and what came of them.
//!
//! Requests wait until all calls of their half round have finished and are then numbered in the
//! order of the threads, so ids and limits do not depend on which answer arrives first.

use std::collections::BTreeMap;

use super::calculation::{CalculationRequest, CalculationResult, MAX_PER_DEBATE, MAX_PER_SPEAKER};
use crate::claims::{CitableCalculation, Claim, calculation_quotes};
use crate::sandbox::FileRef;
use crate::text::one_line;
use crate::{Effect, EffectId, EffectResult};

/// How many misquotes of one turn are reported.
const MAX_MISQUOTES: usize = 5;

/// Where a calculation belongs. Threads are identified by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CalculationPlace {
    Opening,
    Thread(usize),
}

/// A request that waits for the end of its half round.
#[derive(Debug)]
pub(crate) struct WaitingCalculation {
    /// The turn it is attached to.
    pub(crate) turn: EffectId,
    /// `critic` or the decision maker.
    pub(crate) speaker: String,
    /// The decision maker of the thread, or `all`.
    pub(crate) thread: String,
    pub(crate) round: u32,
    pub(crate) request: CalculationRequest,
}

/// A calculation that has ended, with the execution or the turn it is about.
#[derive(Debug)]
pub(crate) struct EndedCalculation {
    pub(crate) effect_id: EffectId,
    pub(crate) place: CalculationPlace,
    pub(crate) result: CalculationResult,
}

/// What follows from the requests of a half round.
#[derive(Debug, Default)]
pub(crate) struct StartedCalculations {
    /// Programs to run.
    pub(crate) perform: Vec<(EffectId, Effect)>,
    /// Calculations that are not run because their text is not accepted.
    pub(crate) ended: Vec<EndedCalculation>,
    /// Places whose speaker has no calculations left.
    pub(crate) refused: Vec<CalculationPlace>,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct CalculationLog {
    waiting: BTreeMap<CalculationPlace, WaitingCalculation>,
    running: BTreeMap<EffectId, (CalculationPlace, CalculationResult)>,
    /// All calculations with an id, by speaker.
    counts: BTreeMap<String, usize>,
    finished: Vec<CalculationResult>,
}

impl CalculationLog {
    pub(crate) fn request(&mut self, place: CalculationPlace, waiting: WaitingCalculation) {
        self.waiting.insert(place, waiting);
    }

    /// Whether programs are running.
    pub(crate) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Numbers the requests of the half round that ended.
    pub(crate) fn start(&mut self, move_id: &str, facts: FileRef) -> StartedCalculations {
        let mut started = StartedCalculations::default();
        for (place, waiting) in std::mem::take(&mut self.waiting) {
            let WaitingCalculation { turn, speaker, thread, round, request } = waiting;
            let all: usize = self.counts.values().sum();
            let own = self.counts.entry(speaker.clone()).or_default();
            if *own >= MAX_PER_SPEAKER || all >= MAX_PER_DEBATE {
                started.refused.push(place);
                continue;
            }
            *own += 1;
            let id = format!("X0:{move_id}-{speaker}-{own}");
            let result = CalculationResult::new(id, &speaker, &thread, round, request);
            match turn.child("calculation") {
                Ok(effect_id) if result.is_runnable() => {
                    let effect = Effect::Execute(Box::new(result.request(facts)));
                    started.perform.push((effect_id.clone(), effect));
                    self.running.insert(effect_id, (place, result));
                }
                _ => {
                    self.finished.push(result.clone());
                    started.ended.push(EndedCalculation { effect_id: turn, place, result });
                }
            }
        }
        started
    }

    /// Takes the result of an execution. `None` if no such execution is running, or if the result is
    /// of another kind.
    pub(crate) fn finish(
        &mut self,
        id: &EffectId,
        result: &EffectResult,
    ) -> Option<EndedCalculation> {
        self.running.get_mut(id)?.1.finish(result)?;
        let (place, result) = self.running.remove(id)?;
        self.finished.push(result.clone());
        Some(EndedCalculation { effect_id: id.clone(), place, result })
    }

    /// All calculations that have ended, by round and id.
    pub(crate) fn results(&self) -> Vec<CalculationResult> {
        let mut results = self.finished.clone();
        results.sort_by(|one, other| (one.round, &one.id).cmp(&(other.round, &other.id)));
        results
    }

    /// Numbers and citations of a text that do not agree with the calculations they cite.
    pub(crate) fn misquotes(&self, text: &str) -> Vec<String> {
        if !text.contains("X0:") {
            return Vec::new();
        }
        let known: Vec<CitableCalculation> =
            self.finished.iter().map(CalculationResult::citable).collect();
        let line = |claim: &Claim| {
            let printed = one_line(&claim.printed, 80);
            format!("\"{printed}\" does not match what it cites: {}", one_line(&claim.detail, 300))
        };
        let claims = calculation_quotes(text, &known);
        let flagged = claims.iter().filter(|claim| claim.verdict.is_flagged());
        flagged.take(MAX_MISQUOTES).map(line).collect()
    }
}
