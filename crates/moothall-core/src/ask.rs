//! The smallest workflow: one model call, and one retry if the answer does not match its schema.

use crate::echo::repeats_question;
use crate::model::{ModelReply, ModelRequest, StopReason};
use crate::structured::{OutputCheck, OutputFault, ask_again, read_json};
use crate::{
    Conclusion, Effect, EffectId, EffectResult, FindingSeverity, InvalidId, Outcome, RunEvent,
    RunEventBody, RunFinding, Step, UnexpectedResult, Workflow,
};

/// Calls a model once. If the request has a schema, validates the answer and retries once with the
/// problems listed.
pub struct AskWorkflow {
    request: ModelRequest,
    check: Box<dyn OutputCheck>,
    first: EffectId,
    second: EffectId,
    stage: AskStage,
}

impl std::fmt::Debug for AskWorkflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskWorkflow").field("stage", &self.stage.name()).finish_non_exhaustive()
    }
}

enum AskStage {
    Ready,
    /// The first request is not stored here: the retry is built from `AskWorkflow::request`.
    Asked,
    AskedAgain(ModelRequest),
    Done,
}

impl AskStage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Asked => "waiting for the answer",
            Self::AskedAgain(_) => "waiting for the second answer",
            Self::Done => "done",
        }
    }
}

impl AskWorkflow {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "ask";

    /// `check` runs only if the request has a schema.
    pub fn new(request: ModelRequest, check: Box<dyn OutputCheck>) -> Result<Self, InvalidId> {
        let first: EffectId = "answer".parse()?;
        let second = first.child("ask-2")?;
        Ok(Self { request, check, first, second, stage: AskStage::Ready })
    }

    /// Parses the answer. Truncated prose is accepted; truncated JSON is not.
    fn read(&self, reply: &ModelReply) -> Result<Conclusion, OutputFault> {
        let value = match &self.request.schema {
            Some(_) => Some(read_json(reply, self.check.as_ref())?),
            None if reply.text.trim().is_empty() => return Err(OutputFault::CutOff),
            None => None,
        };
        Ok(Conclusion::Answered { text: reply.text.clone(), value })
    }

    /// Warnings about an answer that is kept.
    fn doubts(&self, id: &EffectId, reply: &ModelReply) -> Vec<RunFinding> {
        let mut findings = Vec::new();
        let mut warn = |rule, why: String| {
            findings.push(RunFinding::new(rule, FindingSeverity::Warn, id.as_str(), why));
        };
        if reply.stop == StopReason::MaxTokens {
            let fault = OutputFault::CutOff;
            warn(fault.rule(), fault.problems().join("; "));
        }
        // Not asked again, because a question may ask for this.
        if self.request.schema.is_none() && repeats_question(&self.request, &reply.text) {
            warn("output.echo", "the answer repeats the question".to_owned());
        }
        findings
    }

    fn call(id: &EffectId, request: ModelRequest) -> Vec<(EffectId, Effect)> {
        vec![(id.clone(), Effect::CallModel(Box::new(request)))]
    }

    fn finish(publish: Vec<RunEvent>, findings: Vec<RunFinding>, conclusion: Conclusion) -> Step {
        let outcome = Outcome::new(findings, conclusion);
        let mut publish = publish;
        publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome.verdict }));
        Step { perform: Vec::new(), publish, outcome: Some(outcome) }
    }

    fn unusable(
        id: &EffectId,
        mut publish: Vec<RunEvent>,
        fault: &OutputFault,
        text: String,
    ) -> Step {
        publish.push(RunEvent::output_rejected(id, fault));
        let problems = fault.problems().join("; ");
        let finding = RunFinding::new(fault.rule(), FindingSeverity::Block, id.as_str(), problems);
        Self::finish(publish, vec![finding], Conclusion::Unusable { text })
    }
}

impl Workflow for AskWorkflow {
    fn start(&mut self) -> Step {
        if !matches!(self.stage, AskStage::Ready) {
            return Step::default();
        }
        self.stage = AskStage::Asked;
        Step {
            perform: Self::call(&self.first, self.request.clone()),
            publish: vec![RunEvent::of_run(RunEventBody::RunStarted {
                workflow: Self::NAME.to_owned(),
            })],
            outcome: None,
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let stage = std::mem::replace(&mut self.stage, AskStage::Done);
        match (stage, result) {
            (AskStage::Asked, EffectResult::ModelFailed(failure)) if *id == self.first => {
                Ok(Step::model_failed(id, &self.request, failure))
            }
            (AskStage::AskedAgain(request), EffectResult::ModelFailed(failure))
                if *id == self.second =>
            {
                Ok(Step::model_failed(id, &request, failure))
            }
            (AskStage::Asked, EffectResult::ModelReplied(reply)) if *id == self.first => {
                let mut publish = vec![RunEvent::model_replied(id, &self.request, &reply)];
                match self.read(&reply) {
                    Ok(conclusion) => {
                        Ok(Self::finish(publish, self.doubts(id, &reply), conclusion))
                    }
                    Err(fault) if self.request.schema.is_none() => {
                        Ok(Self::unusable(id, publish, &fault, reply.text))
                    }
                    Err(fault) => {
                        publish.push(RunEvent::output_rejected(id, &fault));
                        let again = ask_again(&self.request, &reply.text, &fault);
                        self.stage = AskStage::AskedAgain(again.clone());
                        let perform = Self::call(&self.second, again);
                        Ok(Step { perform, publish, outcome: None })
                    }
                }
            }
            (AskStage::AskedAgain(request), EffectResult::ModelReplied(reply))
                if *id == self.second =>
            {
                let publish = vec![RunEvent::model_replied(id, &request, &reply)];
                match self.read(&reply) {
                    Ok(conclusion) => {
                        let (first, why) =
                            (self.first.as_str(), "the first answer could not be used");
                        let note = RunFinding::new(
                            "output.asked-again",
                            FindingSeverity::Note,
                            first,
                            why,
                        );
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

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
