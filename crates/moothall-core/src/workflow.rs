//! The shape of every workflow: results in, steps out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::consult::{GatherFailureKind, Ranked};
use crate::debate::Debated;
use crate::edit::Edited;
use crate::model::FailureKind;
use crate::reflexion::Attempted;
use crate::sandbox::SandboxFailureKind;
use crate::{Effect, EffectId, EffectResult, Finding, RunEvent, RunEventBody, Verdict};

/// A pure state machine that asks for effects and is told their results.
///
/// What implementors promise:
/// - The same results, in any order in which they can arrive, lead to the same end.
/// - An effect id is asked for once, and means the same effect on every replay.
/// - After a step with an outcome there is no further step; a result for an effect that is not open
///   changes nothing.
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

/// What the machine wants next. A step may be empty: then other effects are still open.
#[must_use = "dropping a step stalls the run"]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Effects to perform; they may finish in any order.
    pub perform: Vec<(EffectId, Effect)>,
    /// Events to publish, before the effects are performed.
    pub publish: Vec<RunEvent>,
    /// The end, where this is the last step.
    pub outcome: Option<Outcome>,
}

impl Step {
    /// The last step of a run that cannot go on, after `publish`.
    pub(crate) fn failed(
        mut publish: Vec<RunEvent>,
        found: Finding,
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

/// How a run ended. One whose verdict does not follow from its findings cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenOutcome")]
pub struct Outcome {
    /// A function of the findings.
    pub verdict: Verdict,
    /// Everything the checks observed.
    pub findings: Vec<Finding>,
    /// What the run has to show.
    pub conclusion: Conclusion,
}

/// An outcome as it stands in a file or a guest's frame, before anyone looked at it.
#[derive(Deserialize)]
struct WrittenOutcome {
    verdict: Verdict,
    findings: Vec<Finding>,
    conclusion: Conclusion,
}

impl TryFrom<WrittenOutcome> for Outcome {
    type Error = &'static str;

    fn try_from(written: WrittenOutcome) -> Result<Self, Self::Error> {
        let outcome = Self::new(written.findings, written.conclusion);
        if outcome.verdict == written.verdict {
            Ok(outcome)
        } else {
            Err("the verdict does not follow from the findings")
        }
    }
}

impl Outcome {
    /// Derives the verdict, so that no outcome can contradict its findings.
    pub fn new(findings: Vec<Finding>, conclusion: Conclusion) -> Self {
        Self { verdict: Verdict::of(&findings), findings, conclusion }
    }
}

/// What a run has to show, in the words of its trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "conclusion", rename_all = "snake_case")]
pub enum Conclusion {
    /// A model answered as it was asked to.
    Answered {
        /// The words.
        text: String,
        /// The parsed answer, where JSON was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// There is an answer, but it is not what was asked for.
    Unusable {
        /// The words, for a person to look at.
        text: String,
    },
    /// There is no answer.
    Failed {
        /// Why.
        kind: FailureKind,
    },
    /// A program ran and ended with 0. Nobody said what it had to do, so nobody knows whether it
    /// did.
    Ran(Box<Attempted>),
    /// A program kept its contract.
    Passed(Box<Attempted>),
    /// A program kept its contract, but in a way that a person must look at.
    Questioned(Box<Attempted>),
    /// No program did what it had to.
    NotPassed(Box<Attempted>),
    /// A program could not be run. It is our failure or the host's, never the program's.
    NotExecuted {
        /// Why.
        kind: SandboxFailureKind,
    },
    /// A move was debated and scored.
    Debated(Box<Debated>),
    /// A move could not be debated at all.
    NotDebated {
        /// Why, in words.
        why: String,
    },
    /// Moves were tried and ranked.
    Ranked(Box<Ranked>),
    /// Files were to be changed.
    Edited(Box<Edited>),
    /// There was no evidence to begin with.
    NotGathered {
        /// Why.
        kind: GatherFailureKind,
    },
}

/// A result that the machine did not wait for. The driver and the machine disagree, so the run
/// stops.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the workflow does not wait for `{result}` of effect `{id}` while it is {stage}")]
pub struct UnexpectedResult {
    /// The effect.
    pub id: EffectId,
    /// The kind of result.
    pub result: &'static str,
    /// What the machine is doing.
    pub stage: &'static str,
}
