//! The consultation workflow: tracks pending effects, handles their results and advances the
//! stages.
//!
//! A stage is done when no effect is pending. Follow-up requests (a retry, a rewrite) are
//! registered before that is checked, so no stage ends too early.

use std::collections::BTreeMap;
use std::fmt;

use super::baseline::ScoreTask;
use super::estimate::calls;
use super::ids::ConsultIds;
use super::input::{ConsultInput, EvidenceSource, GatherFailure, InvalidConsult};
use super::outcome::outcome_of;
use super::panel::DebateKey;
use super::result::RankedMove;
use super::state::{AgentFailure, CheckedDocument, ConsultState};
use super::text_check;
use crate::debate::Debate;
use crate::evidence::{Evidence, Provenance};
use crate::model::{ModelFailure, ModelRequest};
use crate::{
    Conclusion, Effect, EffectId, EffectResult, FindingSeverity, RunEvent, RunEventBody,
    RunFinding, Step, UnexpectedResult, Workflow,
};

/// A consultation. See [`crate::consult`].
pub struct Consult {
    pub(crate) input: ConsultInput,
    pub(crate) ids: ConsultIds,
    pub(crate) known: ConsultState,
    /// Effects that were requested and have no result yet.
    pub(crate) open: BTreeMap<EffectId, PendingConsultEffect>,
    pub(crate) stage: ConsultStage,
}

impl fmt::Debug for Consult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consult")
            .field("stage", &self.stage.name())
            .field("open", &self.open.keys())
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsultStage {
    Ready,
    Gathering,
    Synthesizing,
    Inferring,
    Analysing,
    Reviewing,
    Debating,
    Checking,
    Repeating,
    Forecasting,
    Done,
}

impl ConsultStage {
    fn name(self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Gathering => "gathering evidence",
            Self::Synthesizing => "generating synthetic evidence",
            Self::Inferring => "reading the evidence",
            Self::Analysing => "waiting for moves",
            Self::Reviewing => "waiting for review",
            Self::Debating => "waiting for debates",
            Self::Checking => "waiting for the panel",
            Self::Repeating => "waiting for repeated debates",
            Self::Forecasting => "waiting for forecasts",
            Self::Done => "done",
        }
    }
}

/// A pending effect.
pub(crate) enum PendingConsultEffect {
    Gather,
    Call(Box<ConsultCall>),
    Review,
    Debate(DebateKey),
}

/// A pending model call.
pub(crate) struct ConsultCall {
    pub(crate) task: ConsultTask,
    pub(crate) request: ModelRequest,
}

/// Purpose of a model call.
pub(crate) enum ConsultTask {
    Synthesize(SyntheticDataKind),
    /// F1 or F2.
    Read(EvidenceReading, ReadingAttempt),
    /// The moves of an analyst.
    Propose {
        analyst_index: usize,
        attempt: AnalystAttempt,
    },
    /// A rewrite of one move of an analyst.
    Rewrite {
        analyst_index: usize,
        number: u32,
    },
    /// Scores that are not part of a debate.
    Score(ScoreTask),
    /// Chances about later filings.
    Forecast {
        member: String,
    },
}

/// Attempts to get a reading.
pub(crate) enum ReadingAttempt {
    First,
    /// With the first version, if it can be used.
    Rewrite(Option<CheckedDocument>),
}

/// Kinds of synthetic data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyntheticDataKind {
    Financials,
    News,
}

/// The two readings of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvidenceReading {
    F1,
    F2,
}

/// The first request to an analyst, or the retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnalystAttempt {
    First,
    Second,
}

impl ConsultTask {
    /// Index of the analyst in `ids.analyst_ids`, for analyst tasks.
    pub(crate) fn analyst_index(&self) -> Option<usize> {
        match self {
            Self::Propose { analyst_index, .. } | Self::Rewrite { analyst_index, .. } => {
                Some(*analyst_index)
            }
            Self::Synthesize(_) | Self::Read(..) | Self::Score(_) | Self::Forecast { .. } => None,
        }
    }
}

impl Consult {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "consult";

    /// Effect id of the review before the debates.
    pub const REVIEW: &str = "moves/review";

    /// Validates the input and prepares the effect ids.
    pub fn new(input: ConsultInput) -> Result<Self, InvalidConsult> {
        input.validate()?;
        let ids = ConsultIds::of(&input)?;
        let consult = Self {
            known: ConsultState {
                prompts: input.calls.prompts,
                own_prompts: input.committee.prompts.clone(),
                ..ConsultState::default()
            },
            input,
            ids,
            open: BTreeMap::new(),
            stage: ConsultStage::Ready,
        };
        // Rejects a committee that cannot hold a debate before anything is spent.
        Debate::new(consult.debate_about("m1", "a dossier".into(), "a move".into()))?;
        Ok(consult)
    }

    /// The current state.
    pub fn state(&self) -> &ConsultState {
        &self.known
    }

    /// Requests an effect and registers it as pending.
    pub(crate) fn perform(
        &mut self,
        step: &mut Step,
        id: EffectId,
        effect: Effect,
        open: PendingConsultEffect,
    ) {
        self.open.insert(id.clone(), open);
        step.perform.push((id, effect));
    }

    pub(crate) fn call(
        &mut self,
        step: &mut Step,
        id: EffectId,
        task: ConsultTask,
        request: ModelRequest,
    ) {
        let effect = Effect::CallModel(Box::new(request.clone()));
        self.perform(
            step,
            id,
            effect,
            PendingConsultEffect::Call(Box::new(ConsultCall { task, request })),
        );
    }

    fn gathered(&mut self, mut evidence: Evidence) {
        if self.input.gather.source == EvidenceSource::Synthetic {
            // Real evidence must not be mixed with synthetic evidence.
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
        let (evidence, left_out) = text_check::without_injections(evidence);
        self.known.evidence = Some(Box::new(evidence));
        self.known.left_out = left_out;
    }

    fn not_gathered(&mut self, id: &EffectId, failure: GatherFailure) -> Step {
        let GatherFailure { kind, detail } = failure;
        let found =
            RunFinding::new("evidence.not-gathered", FindingSeverity::Block, id.as_str(), &detail);
        self.fail(Vec::new(), found, Conclusion::NotGathered { kind }, detail)
    }

    /// Ends the run with a failure.
    pub(crate) fn fail(
        &mut self,
        publish: Vec<RunEvent>,
        found: RunFinding,
        conclusion: Conclusion,
        detail: String,
    ) -> Step {
        self.stage = ConsultStage::Done;
        self.open.clear();
        Step::failed(publish, found, conclusion, detail)
    }

    /// Ranks the moves and ends the run.
    pub(crate) fn finish(&mut self, step: &mut Step) {
        self.stage = ConsultStage::Done;
        let outcome = outcome_of(&self.input, &self.known);
        let (recommended, other, close_calls) = match &outcome.conclusion {
            Conclusion::Ranked(ranked) => {
                (ids(&ranked.recommended), ids(&ranked.other), ranked.close_calls())
            }
            _ => (Vec::new(), Vec::new(), Vec::new()),
        };
        self.layer_complete(step, 4, vec!["memo.md".to_owned()], None);
        let verdict = outcome.verdict;
        let body = RunEventBody::PipelineComplete { verdict, recommended, other, close_calls };
        step.publish.push(RunEvent::of_run(body));
        step.outcome = Some(outcome);
    }

    fn not_answered(
        &mut self,
        id: &EffectId,
        call: ConsultCall,
        failure: ModelFailure,
        step: &mut Step,
    ) {
        let why = AgentFailure::of_model(&failure);
        if !self.input.is_inherited(id) {
            step.publish.push(RunEvent::model_failed(id, &call.request, failure));
        }
        self.record_failure(call.task, why, step);
    }

    fn unexpected(&self, id: &EffectId, result: &EffectResult) -> UnexpectedResult {
        let stage = self.stage.name();
        UnexpectedResult { id: id.clone(), result: result.name(), stage }
    }
}

impl Workflow for Consult {
    fn start(&mut self) -> Step {
        let mut step = Step::default();
        if self.stage != ConsultStage::Ready {
            return step;
        }
        self.stage = ConsultStage::Gathering;
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
        self.perform(
            &mut step,
            id,
            Effect::Gather(Box::new(request)),
            PendingConsultEffect::Gather,
        );
        step
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let Some(open) = self.open.remove(id) else { return Err(self.unexpected(id, &result)) };
        let mut step = Step::default();
        match (open, result) {
            (PendingConsultEffect::Gather, EffectResult::Gathered(evidence)) => {
                self.gathered(*evidence)
            }
            (PendingConsultEffect::Gather, EffectResult::NotGathered(failure)) => {
                return Ok(self.not_gathered(id, failure));
            }
            (PendingConsultEffect::Call(call), EffectResult::ModelReplied(reply)) => {
                self.answered(id, *call, &reply, &mut step);
            }
            (PendingConsultEffect::Call(call), EffectResult::ModelFailed(failure)) => {
                self.not_answered(id, *call, failure, &mut step);
            }
            (PendingConsultEffect::Review, EffectResult::PersonSaid(review)) => {
                self.reviewed(id, *review, &mut step);
            }
            (PendingConsultEffect::Debate(key), EffectResult::ChildEnded(end)) => {
                self.debated(id, &key, *end, &mut step);
            }
            (open, result) => {
                let unexpected = self.unexpected(id, &result);
                self.open.insert(id.clone(), open);
                return Err(unexpected);
            }
        }
        // A stage may have nothing to do; then the next one starts immediately.
        while self.open.is_empty() && self.stage != ConsultStage::Done {
            self.next_layer(&mut step);
        }
        Ok(step)
    }
}

impl Consult {
    fn next_layer(&mut self, step: &mut Step) {
        let is_made_up = self.input.gather.source == EvidenceSource::Synthetic;
        match self.stage {
            ConsultStage::Gathering if is_made_up => self.start_synthesizing(step),
            ConsultStage::Gathering | ConsultStage::Synthesizing => self.start_inferring(step),
            ConsultStage::Inferring => self.start_analysing(step),
            ConsultStage::Analysing if self.input.inherited_review().is_some() => {
                self.apply_inherited_review(step)
            }
            ConsultStage::Analysing if self.input.terms.pause_after_moves => {
                self.start_reviewing(step)
            }
            ConsultStage::Analysing | ConsultStage::Reviewing => self.start_debating(step),
            ConsultStage::Debating if self.plan().is_some() => self.start_checking(step),
            ConsultStage::Debating => self.start_ranking(step),
            ConsultStage::Checking | ConsultStage::Repeating => self.close_panel_stage(step),
            ConsultStage::Forecasting => self.start_ranking(step),
            ConsultStage::Ready | ConsultStage::Done => self.stage = ConsultStage::Done,
        }
    }
}

fn ids(moves: &[RankedMove]) -> Vec<String> {
    moves.iter().map(|one| one.move_id.clone()).collect()
}

#[cfg(test)]
#[path = "workflow_tests.rs"]
mod tests;
