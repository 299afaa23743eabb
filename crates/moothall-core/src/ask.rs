//! The smallest workflow: one question, and one more where the answer is not what was asked for.

use crate::model::{ModelFailure, ModelReply, ModelRequest, StopReason};
use crate::structured::{OutputCheck, OutputFault, ask_again, read_json};
use crate::{
    Conclusion, Effect, EffectId, EffectResult, Finding, InvalidId, Outcome, RunEvent,
    RunEventBody, Severity, Step, UnexpectedResult, Workflow,
};

/// Asks a model once; where the request has a schema, checks the answer and asks again once with
/// the problems shown.
pub struct Ask {
    request: ModelRequest,
    check: Box<dyn OutputCheck>,
    first: EffectId,
    second: EffectId,
    stage: Stage,
}

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("stage", &self.stage.name()).finish_non_exhaustive()
    }
}

enum Stage {
    Ready,
    /// The request is kept where it is still needed: a second question grows out of the first.
    Asked,
    AskedAgain(ModelRequest),
    Done,
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Asked => "waiting for the answer",
            Self::AskedAgain(_) => "waiting for the second answer",
            Self::Done => "done",
        }
    }
}

impl Ask {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "ask";

    /// `check` is asked only where the request has a schema.
    pub fn new(request: ModelRequest, check: Box<dyn OutputCheck>) -> Result<Self, InvalidId> {
        let first: EffectId = "answer".parse()?;
        let second = first.child("ask-2")?;
        Ok(Self { request, check, first, second, stage: Stage::Ready })
    }

    /// The answer as it was asked for. Words may be cut off and still say something; a value may not.
    fn read(&self, reply: &ModelReply) -> Result<Conclusion, OutputFault> {
        let value = match &self.request.schema {
            Some(_) => Some(read_json(reply, self.check.as_ref())?),
            None if reply.text.trim().is_empty() => return Err(OutputFault::CutOff),
            None => None,
        };
        Ok(Conclusion::Answered { text: reply.text.clone(), value })
    }

    fn call(id: &EffectId, request: ModelRequest) -> Vec<(EffectId, Effect)> {
        vec![(id.clone(), Effect::CallModel(Box::new(request)))]
    }

    fn finish(publish: Vec<RunEvent>, findings: Vec<Finding>, conclusion: Conclusion) -> Step {
        let outcome = Outcome::new(findings, conclusion);
        let mut publish = publish;
        publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome.verdict }));
        Step { perform: Vec::new(), publish, outcome: Some(outcome) }
    }

    fn fail(id: &EffectId, request: &ModelRequest, failure: ModelFailure) -> Step {
        let (kind, detail) = (failure.kind, failure.to_string());
        let found = Finding::new("model.failed", Severity::Block, id.as_str(), &detail);
        let publish = vec![RunEvent::model_failed(id, request, failure)];
        Step::failed(publish, found, Conclusion::Failed { kind }, detail)
    }

    fn unusable(
        id: &EffectId,
        mut publish: Vec<RunEvent>,
        fault: &OutputFault,
        text: String,
    ) -> Step {
        publish.push(RunEvent::output_rejected(id, fault));
        let problems = fault.problems().join("; ");
        let finding = Finding::new(fault.rule(), Severity::Block, id.as_str(), problems);
        Self::finish(publish, vec![finding], Conclusion::Unusable { text })
    }
}

impl Workflow for Ask {
    fn start(&mut self) -> Step {
        if !matches!(self.stage, Stage::Ready) {
            return Step::default();
        }
        self.stage = Stage::Asked;
        Step {
            perform: Self::call(&self.first, self.request.clone()),
            publish: vec![RunEvent::of_run(RunEventBody::RunStarted {
                workflow: Self::NAME.to_owned(),
            })],
            outcome: None,
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        match (stage, result) {
            (Stage::Asked, EffectResult::ModelFailed(failure)) if *id == self.first => {
                Ok(Self::fail(id, &self.request, failure))
            }
            (Stage::AskedAgain(request), EffectResult::ModelFailed(failure))
                if *id == self.second =>
            {
                Ok(Self::fail(id, &request, failure))
            }
            (Stage::Asked, EffectResult::ModelReplied(reply)) if *id == self.first => {
                let mut publish = vec![RunEvent::model_replied(id, &self.request, &reply)];
                match self.read(&reply) {
                    Ok(conclusion) => Ok(Self::finish(publish, cut_off(id, &reply), conclusion)),
                    Err(fault) if self.request.schema.is_none() => {
                        Ok(Self::unusable(id, publish, &fault, reply.text))
                    }
                    Err(fault) => {
                        publish.push(RunEvent::output_rejected(id, &fault));
                        let again = ask_again(&self.request, &reply.text, &fault);
                        self.stage = Stage::AskedAgain(again.clone());
                        let perform = Self::call(&self.second, again);
                        Ok(Step { perform, publish, outcome: None })
                    }
                }
            }
            (Stage::AskedAgain(request), EffectResult::ModelReplied(reply))
                if *id == self.second =>
            {
                let publish = vec![RunEvent::model_replied(id, &request, &reply)];
                match self.read(&reply) {
                    Ok(conclusion) => {
                        let (first, why) =
                            (self.first.as_str(), "the first answer could not be used");
                        let note = Finding::new("output.asked-again", Severity::Note, first, why);
                        Ok(Self::finish(publish, vec![note], conclusion))
                    }
                    Err(fault) => Ok(Self::unusable(id, publish, &fault, reply.text)),
                }
            }
            (stage, result) => {
                let unexpected =
                    UnexpectedResult { id: id.clone(), result: result.name(), stage: stage.name() };
                self.stage = stage;
                Err(unexpected)
            }
        }
    }
}

/// Words that were cut off are worth showing, and worth a warning.
fn cut_off(id: &EffectId, reply: &ModelReply) -> Vec<Finding> {
    if reply.stop != StopReason::MaxTokens {
        return Vec::new();
    }
    let fault = OutputFault::CutOff;
    let problems = fault.problems().join("; ");
    vec![Finding::new(fault.rule(), Severity::Warn, id.as_str(), problems)]
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
