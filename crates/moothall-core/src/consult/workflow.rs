//! The machine: what is open, what an answer means, and when a layer is done.
//!
//! A layer is done when nothing is open. Whatever an answer leads to (a second question, a rewrite)
//! is opened before anyone looks, so no layer ends too early, and no count can go wrong.

use std::collections::BTreeMap;
use std::fmt;

use super::alone::Alone;
use super::checking;
use super::estimate::calls;
use super::ids::Ids;
use super::input::{ConsultInput, EvidenceSource, GatherFailure, InvalidConsult};
use super::outcome::outcome_of;
use super::proceedings::{Document, Failure, Proceedings};
use super::ranked::RankedMove;
use crate::debate::Debate;
use crate::evidence::{Evidence, Provenance};
use crate::model::{ModelFailure, ModelRequest};
use crate::{
    Conclusion, Effect, EffectId, EffectResult, Finding, RunEvent, RunEventBody, Severity, Step,
    UnexpectedResult, Workflow,
};

/// A consultation. See [`crate::consult`].
pub struct Consult {
    pub(super) input: ConsultInput,
    pub(super) ids: Ids,
    pub(super) known: Proceedings,
    /// Every effect that is asked for and not answered.
    pub(super) open: BTreeMap<EffectId, Open>,
    pub(super) stage: Stage,
}

impl fmt::Debug for Consult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consult")
            .field("stage", &self.stage.name())
            .field("open", &self.open.keys())
            .finish_non_exhaustive()
    }
}

/// What the run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Ready,
    Gathering,
    Synthesizing,
    Inferring,
    Analysing,
    Reviewing,
    Debating,
    Done,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Gathering => "gathering evidence",
            Self::Synthesizing => "making evidence up",
            Self::Inferring => "reading the evidence",
            Self::Analysing => "waiting for moves",
            Self::Reviewing => "waiting for a person",
            Self::Debating => "waiting for debates",
            Self::Done => "done",
        }
    }
}

/// An effect that is not answered.
pub(super) enum Open {
    Gather,
    Call(Box<Call>),
    Review,
    Debate { number: u32 },
}

/// A question to a model.
pub(super) struct Call {
    pub(super) task: Task,
    pub(super) request: ModelRequest,
}

/// What a model was asked to do.
pub(super) enum Task {
    Synthesize(Synthetic),
    /// F1 or F2; with the first text where this is the rewrite.
    Read(Reading, Option<Document>),
    /// The moves of a desk.
    Propose {
        desk: usize,
        attempt: Attempt,
    },
    /// One move of a desk again.
    Rewrite {
        desk: usize,
        number: u32,
    },
    /// Scores without a debate.
    Alone(Alone),
}

/// What a model makes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Synthetic {
    Financials,
    News,
}

/// The two readings of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    F1,
    F2,
}

/// Which question to an analyst it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Second,
}

impl Task {
    /// The analyst whose work it is.
    pub(super) fn desk(&self) -> Option<usize> {
        match self {
            Self::Propose { desk, .. } | Self::Rewrite { desk, .. } => Some(*desk),
            Self::Synthesize(_) | Self::Read(..) | Self::Alone(_) => None,
        }
    }
}

impl Consult {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "consult";

    /// The question that waits for a person before the debates.
    pub const REVIEW: &str = "moves/review";

    /// Checks the input and names every effect there can be.
    pub fn new(input: ConsultInput) -> Result<Self, InvalidConsult> {
        input.validate()?;
        let ids = Ids::of(&input)?;
        let consult = Self {
            input,
            ids,
            known: Proceedings::default(),
            open: BTreeMap::new(),
            stage: Stage::Ready,
        };
        // Whether the committee can hold a debate is known before anything is spent.
        Debate::new(consult.debate_about("m1", "a dossier".into(), "a move".into()))?;
        Ok(consult)
    }

    /// What is known so far.
    pub fn proceedings(&self) -> &Proceedings {
        &self.known
    }

    /// Asks for an effect and remembers what its answer will be for.
    pub(super) fn perform(&mut self, step: &mut Step, id: EffectId, effect: Effect, open: Open) {
        self.open.insert(id.clone(), open);
        step.perform.push((id, effect));
    }

    pub(super) fn call(
        &mut self,
        step: &mut Step,
        id: EffectId,
        task: Task,
        request: ModelRequest,
    ) {
        let effect = Effect::CallModel(Box::new(request.clone()));
        self.perform(step, id, effect, Open::Call(Box::new(Call { task, request })));
    }

    fn gathered(&mut self, mut evidence: Evidence) {
        if self.input.gather.source == EvidenceSource::Synthetic {
            // Nothing that is real is mixed with what is made up.
            evidence = Evidence {
                provenance: Provenance::Synthetic,
                sheet: None,
                events: Vec::new(),
                passages: Vec::new(),
                documents: Vec::new(),
                headlines: Vec::new(),
                ..evidence
            };
        }
        let (evidence, left_out) = checking::without_injections(evidence);
        self.known.evidence = Some(Box::new(evidence));
        self.known.left_out = left_out;
    }

    fn not_gathered(&mut self, id: &EffectId, failure: GatherFailure) -> Step {
        let GatherFailure { kind, detail } = failure;
        let found = Finding::new("evidence.not-gathered", Severity::Block, id.as_str(), &detail);
        self.fail(Vec::new(), found, Conclusion::NotGathered { kind }, detail)
    }

    /// There is nothing to go on with.
    pub(super) fn fail(
        &mut self,
        publish: Vec<RunEvent>,
        found: Finding,
        conclusion: Conclusion,
        detail: String,
    ) -> Step {
        self.stage = Stage::Done;
        self.open.clear();
        Step::failed(publish, found, conclusion, detail)
    }

    /// Ranks what there is and ends the run.
    pub(super) fn finish(&mut self, step: &mut Step) {
        self.stage = Stage::Done;
        let outcome = outcome_of(&self.input, &self.known);
        let (recommended, other) = match &outcome.conclusion {
            Conclusion::Ranked(ranked) => (ids(&ranked.recommended), ids(&ranked.other)),
            _ => (Vec::new(), Vec::new()),
        };
        self.layer_complete(step, 4, vec!["memo.md".to_owned()], None);
        let body = RunEventBody::PipelineComplete { verdict: outcome.verdict, recommended, other };
        step.publish.push(RunEvent::of_run(body));
        step.outcome = Some(outcome);
    }

    fn not_answered(&mut self, id: &EffectId, call: Call, failure: ModelFailure, step: &mut Step) {
        let why = Failure::of_model(&failure);
        step.publish.push(RunEvent::model_failed(id, &call.request, failure));
        self.without_answer(call.task, why, step);
    }

    fn unexpected(&self, id: &EffectId, result: &EffectResult) -> UnexpectedResult {
        let stage = self.stage.name();
        UnexpectedResult { id: id.clone(), result: result.name(), stage }
    }
}

impl Workflow for Consult {
    fn start(&mut self) -> Step {
        let mut step = Step::default();
        if self.stage != Stage::Ready {
            return step;
        }
        self.stage = Stage::Gathering;
        let input = &self.input;
        step.publish
            .push(RunEvent::of_run(RunEventBody::RunStarted { workflow: Self::NAME.to_owned() }));
        step.publish.push(RunEvent::of_run(RunEventBody::ConsultStarted {
            ticker: input.gather.subject().to_owned(),
            listed: !input.gather.ticker.is_empty(),
            rounds: input.committee.rounds,
            moves: input.all_moves(),
            provenance: input.gather.source,
            est_calls: calls(input),
        }));
        self.layer_start(&mut step, 0);
        let (id, request) = (self.ids.gather.clone(), self.input.gather.clone());
        self.perform(&mut step, id, Effect::Gather(Box::new(request)), Open::Gather);
        step
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let Some(open) = self.open.remove(id) else { return Err(self.unexpected(id, &result)) };
        let mut step = Step::default();
        match (open, result) {
            (Open::Gather, EffectResult::Gathered(evidence)) => self.gathered(*evidence),
            (Open::Gather, EffectResult::NotGathered(failure)) => {
                return Ok(self.not_gathered(id, failure));
            }
            (Open::Call(call), EffectResult::ModelReplied(reply)) => {
                self.answered(id, *call, &reply, &mut step);
            }
            (Open::Call(call), EffectResult::ModelFailed(failure)) => {
                self.not_answered(id, *call, failure, &mut step);
            }
            (Open::Review, EffectResult::PersonSaid(review)) => {
                self.reviewed(id, *review, &mut step);
            }
            (Open::Debate { number }, EffectResult::ChildEnded(end)) => {
                self.debated(id, number, *end, &mut step);
            }
            (open, result) => {
                let unexpected = self.unexpected(id, &result);
                self.open.insert(id.clone(), open);
                return Err(unexpected);
            }
        }
        // A layer may have nothing to do: then the next one begins at once.
        while self.open.is_empty() && self.stage != Stage::Done {
            self.next_layer(&mut step);
        }
        Ok(step)
    }
}

impl Consult {
    fn next_layer(&mut self, step: &mut Step) {
        let is_made_up = self.input.gather.source == EvidenceSource::Synthetic;
        match self.stage {
            Stage::Gathering if is_made_up => self.start_synthesizing(step),
            Stage::Gathering | Stage::Synthesizing => self.start_inferring(step),
            Stage::Inferring => self.start_analysing(step),
            Stage::Analysing if self.input.terms.pause_after_moves => self.start_reviewing(step),
            Stage::Analysing | Stage::Reviewing => self.start_debating(step),
            Stage::Debating => self.start_ranking(step),
            Stage::Ready | Stage::Done => self.stage = Stage::Done,
        }
    }
}

fn ids(moves: &[RankedMove]) -> Vec<String> {
    moves.iter().map(|one| one.move_id.clone()).collect()
}

#[cfg(test)]
#[path = "workflow_tests.rs"]
mod tests;
