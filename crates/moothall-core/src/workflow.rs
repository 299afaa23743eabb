//! The interface of all workflows: results in, steps out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::consult::{ConsultResult, GatherFailureKind, PanelVerdict};
use crate::debate::DebateResult;
use crate::edit::EditResult;
use crate::model::{FailureKind, ModelFailure, ModelRequest};
use crate::program::ProgramResult;
use crate::sandbox::SandboxFailureKind;
use crate::{
    Effect, EffectId, EffectResult, FindingSeverity, RunEvent, RunEventBody, RunFinding, RunVerdict,
};

/// A pure state machine that requests effects and receives their results.
///
/// Implementations guarantee:
/// - The same results, in any possible order of arrival, lead to the same outcome.
/// - An effect id is requested once, and means the same effect on every replay.
/// - After a step with an outcome there is no further step; a result for an effect that is not
///   pending changes nothing.
pub trait Workflow {
    /// The first step.
    fn start(&mut self) -> Step;

    /// Advances by exactly one result.
    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult>;
}

impl<W: Workflow + ?Sized> Workflow for Box<W> {
    fn start(&mut self) -> Step {
        (**self).start()
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        (**self).resume(id, result)
    }
}

/// What the workflow requests next. A step may be empty if other effects are still pending.
#[must_use = "dropping a step stalls the run"]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Effects to perform; they may finish in any order.
    pub perform: Vec<(EffectId, Effect)>,
    /// Events to publish, before the effects are performed.
    pub publish: Vec<RunEvent>,
    /// The outcome, if this is the last step.
    pub outcome: Option<Outcome>,
}

impl Step {
    /// The last step of a run whose model call failed.
    pub(crate) fn model_failed(
        id: &EffectId,
        request: &ModelRequest,
        failure: ModelFailure,
    ) -> Self {
        let (kind, detail) = (failure.kind, failure.to_string());
        let found = RunFinding::new("model.failed", FindingSeverity::Block, id.as_str(), &detail);
        let publish = vec![RunEvent::model_failed(id, request, failure)];
        Self::failed(publish, found, Conclusion::Failed { kind }, detail)
    }

    /// The last step of a run that cannot continue, after `publish`.
    pub(crate) fn failed(
        mut publish: Vec<RunEvent>,
        found: RunFinding,
        conclusion: Conclusion,
        detail: String,
    ) -> Self {
        let model_failure = match &conclusion {
            Conclusion::Failed { kind } => Some(*kind),
            _ => None,
        };
        publish.push(RunEvent::of_run(RunEventBody::RunFailed { detail, model_failure }));
        let outcome = Some(Outcome::new(vec![found], conclusion));
        Self { perform: Vec::new(), publish, outcome }
    }
}

/// The outcome of a run. Deserialization fails if the verdict does not follow from the findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenOutcome")]
pub struct Outcome {
    /// Derived from the findings.
    pub verdict: RunVerdict,
    /// The findings.
    pub findings: Vec<RunFinding>,
    /// The result of the run.
    pub conclusion: Conclusion,
}

/// An outcome from a file or a guest's frame, before its verdict is checked.
#[derive(Deserialize)]
struct WrittenOutcome {
    verdict: RunVerdict,
    findings: Vec<RunFinding>,
    conclusion: Conclusion,
}

impl TryFrom<WrittenOutcome> for Outcome {
    type Error = &'static str;

    fn try_from(written: WrittenOutcome) -> Result<Self, Self::Error> {
        let outcome = Self::new(written.findings, written.conclusion);
        if outcome.verdict == written.verdict {
            Ok(outcome)
        } else {
            Err("the verdict does not match the findings")
        }
    }
}

impl Outcome {
    /// Derives the verdict, so no outcome can contradict its findings.
    pub fn new(findings: Vec<RunFinding>, conclusion: Conclusion) -> Self {
        Self { verdict: RunVerdict::of(&findings), findings, conclusion }
    }

    /// The verdict of the panel, if this is a consultation that had one.
    pub fn panel_verdict(&self) -> Option<&PanelVerdict> {
        match &self.conclusion {
            Conclusion::Ranked(result) => result.verdict.as_deref(),
            _ => None,
        }
    }
}

/// The result of a run, by workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "conclusion", rename_all = "snake_case")]
pub enum Conclusion {
    /// A model gave a valid answer.
    Answered {
        /// The answer.
        text: String,
        /// The parsed answer, if JSON was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// A model answered, but the answer is invalid.
    Unusable {
        /// The answer, for a person to read.
        text: String,
    },
    /// A model gave no answer.
    Failed {
        /// The kind of failure.
        kind: FailureKind,
    },
    /// A program ran and exited with 0, but had no contract, so its correctness is unknown.
    Ran(Box<ProgramResult>),
    /// A program fulfilled its contract.
    Passed(Box<ProgramResult>),
    /// A program fulfilled its contract, but needs review.
    Questioned(Box<ProgramResult>),
    /// No program fulfilled its contract.
    NotPassed(Box<ProgramResult>),
    /// A program could not be run, because of Moothall or the host and not of the program.
    NotExecuted {
        /// The kind of failure.
        kind: SandboxFailureKind,
    },
    /// A move was debated and scored.
    Debated(Box<DebateResult>),
    /// A move could not be debated.
    NotDebated {
        /// The reason.
        why: String,
    },
    /// Moves were debated and ranked.
    Ranked(Box<ConsultResult>),
    /// The result of an edit run.
    Edited(Box<EditResult>),
    /// No evidence could be gathered.
    NotGathered {
        /// The kind of failure.
        kind: GatherFailureKind,
    },
}

/// A result the workflow does not wait for. The engine and the workflow disagree, so the run stops.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unexpected result `{result}` for effect `{id}` while the workflow is {stage}")]
pub struct UnexpectedResult {
    /// The effect.
    pub id: EffectId,
    /// The kind of result.
    pub result: &'static str,
    /// The workflow's current stage.
    pub stage: &'static str,
}
