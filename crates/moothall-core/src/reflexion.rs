//! Write a program, run it, judge it, learn from the failure, try again.
//!
//! ```text
//! generate ─► execute ─► judge ─► check ─► done
//!     ▲                    │        │
//!     └──── critique ◄─────┴────────┘
//! ```
//!
//! Ending with 0 is not success: a program passes if it keeps its contract, and without a contract
//! it can only have run. What decides is code, never a model. An attempt is spent when a program was
//! judged, or when a model wrote none; a sandbox that could not be had ends the run and is nobody's
//! fault in it.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::{ModelReply, ModelRequest};
use crate::sandbox::{Execution, Exit, SandboxFailure, SandboxFailureKind};
use crate::structured::OutputCheck;
use crate::{
    Conclusion, Effect, EffectId, EffectResult, Finding, Outcome, RunEvent, RunEventBody, Severity,
    Sha256Hex, Step, UnexpectedResult, Verdict, Workflow,
};

mod attempted;
mod contract;
pub mod demonstration;
pub mod findings;
mod ids;
mod input;
mod judge;
mod program;
mod prompt;
pub mod python;
mod repeated;
mod requests;
mod steps;
#[cfg(test)]
#[path = "reflexion/support_tests.rs"]
mod support;

pub use self::attempted::Attempted;
pub use self::contract::{Contract, Expectation, InvalidPattern, Pattern};
pub(crate) use self::input::MAX_TASK_BYTES;
pub use self::input::{AnswerForm, InvalidReflexion, MAX_ATTEMPTS, ReflexionInput};
pub use self::program::{Generated, MAX_CODE_BYTES, read_program};

use self::findings::{Attempt, finding};
use self::ids::Ids;
use self::prompt::Lesson;
use self::python::Source;
use self::repeated::Failure;
use self::steps::{model_failed, not_executed, perform};

/// How much of a critique an event shows.
const MAX_CRITIQUE_CHARS: usize = 2000;

/// See the module documentation.
pub struct Reflexion {
    input: ReflexionInput,
    schema: Box<dyn OutputCheck>,
    ids: Vec<Ids>,
    /// How many attempts were begun.
    attempt: usize,
    lessons: Vec<Lesson>,
    /// Files that earlier attempts looked for in vain.
    missed: BTreeSet<String>,
    /// How the attempt before this one failed.
    last_failure: Option<Failure>,
    stage: Stage,
}

impl fmt::Debug for Reflexion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflexion")
            .field("attempt", &self.attempt)
            .field("stage", &self.stage.name())
            .finish_non_exhaustive()
    }
}

enum Stage {
    Ready,
    Generating(ModelRequest),
    AskedAgain(ModelRequest),
    Executing(Written),
    Checking { written: Written, execution: Box<Execution>, findings: Vec<Finding> },
    Critiquing { request: ModelRequest, lesson: Lesson },
    Done,
}

/// A program that was written.
struct Written {
    program: Generated,
    /// The answer that it was taken from.
    answer: String,
    /// The call that gave it.
    from: EffectId,
}

impl Stage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Generating(_) => "waiting for a program",
            Self::AskedAgain(_) => "waiting for a program for the second time",
            Self::Executing(_) => "waiting for the program's end",
            Self::Checking { .. } => "waiting for the check",
            Self::Critiquing { .. } => "waiting for a critique",
            Self::Done => "done",
        }
    }

    /// The effect that is open, where one is.
    fn waits_for<'a>(&self, ids: &'a Ids) -> Option<&'a EffectId> {
        match self {
            Self::Ready | Self::Done => None,
            Self::Generating(_) => Some(&ids.generate),
            Self::AskedAgain(_) => Some(&ids.again),
            Self::Executing(_) => Some(&ids.execute),
            Self::Checking { .. } => Some(&ids.check),
            Self::Critiquing { .. } => Some(&ids.critique),
        }
    }
}

impl Reflexion {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "run";

    /// `schema` is asked only where the contract expects JSON that follows a schema.
    pub fn new(
        input: ReflexionInput,
        schema: Box<dyn OutputCheck>,
    ) -> Result<Self, InvalidReflexion> {
        input.validate()?;
        let ids = (1..=input.attempts).map(Ids::of).collect::<Result<_, _>>()?;
        Ok(Self {
            input,
            schema,
            ids,
            attempt: 0,
            lessons: Vec::new(),
            missed: BTreeSet::new(),
            last_failure: None,
            stage: Stage::Ready,
        })
    }

    /// The number of the attempt under way, from 1.
    fn number(&self) -> u32 {
        u32::try_from(self.attempt).unwrap_or(u32::MAX)
    }

    /// The effects of the attempt under way. `new` made ids for every attempt there can be, and
    /// `next` stops before there are more.
    fn ids(&self) -> Option<&Ids> {
        self.attempt.checked_sub(1).and_then(|index| self.ids.get(index))
    }

    /// Begins another attempt, or ends the run where there is none left.
    fn next(&mut self, mut publish: Vec<RunEvent>) -> Option<Step> {
        let id = self.ids.get(self.attempt)?.generate.clone();
        self.attempt += 1;
        publish.push(RunEvent::about(
            &id,
            RunEventBody::AttemptStarted {
                effect_id: id.clone(),
                attempt: self.number(),
                of: self.input.attempts,
            },
        ));
        let request = prompt::generate(&self.input, &self.lessons);
        self.stage = Stage::Generating(request.clone());
        Some(perform(publish, id, Effect::CallModel(Box::new(request))))
    }

    fn first_answer(&mut self, id: &EffectId, request: ModelRequest, reply: ModelReply) -> Step {
        let mut publish = vec![RunEvent::model_replied(id, &request, &reply)];
        match (read_program(&reply), self.ids()) {
            (Ok(program), _) => self.execute(publish, id, program, reply.text),
            (Err(fault), Some(ids)) => {
                let next = ids.again.clone();
                publish.push(RunEvent::output_rejected(id, &fault));
                let again = prompt::again(&request, self.input.answer_form, &reply.text, &fault);
                self.stage = Stage::AskedAgain(again.clone());
                perform(publish, next, Effect::CallModel(Box::new(again)))
            }
            (Err(_), None) => Step::default(),
        }
    }

    fn second_answer(&mut self, id: &EffectId, request: &ModelRequest, reply: ModelReply) -> Step {
        let mut publish = vec![RunEvent::model_replied(id, request, &reply)];
        match read_program(&reply) {
            Ok(program) => self.execute(publish, id, program, reply.text),
            Err(fault) => {
                publish.push(RunEvent::output_rejected(id, &fault));
                let message = fault.problems().join("; ");
                let found = vec![finding(fault.rule(), Severity::Block, id.as_str(), &message)];
                publish.push(self.judged(id, &found));
                let failure = Failure::NoProgram;
                let attempted = Attempted::without_program(self.number());
                let lesson = Lesson {
                    answer: reply.text,
                    findings: found,
                    stderr: String::new(),
                    critique: None,
                };
                self.learn(publish, lesson, failure, attempted, None)
            }
        }
    }

    fn execute(
        &mut self,
        mut publish: Vec<RunEvent>,
        from: &EffectId,
        program: Generated,
        answer: String,
    ) -> Step {
        let Some(ids) = self.ids() else { return Step::default() };
        let body = RunEventBody::CodeGenerated {
            effect_id: from.clone(),
            attempt: self.number(),
            code_sha256: Sha256Hex::of(program.code.as_bytes()),
            code_lines: program.code.lines().count() as u64,
            dependencies: program.dependencies.clone(),
            confidence_permille: program.confidence_permille,
        };
        publish.push(RunEvent::about(from, body));
        let (id, request) = (ids.execute.clone(), requests::program(&self.input, &program.code));
        self.stage = Stage::Executing(Written { program, answer, from: from.clone() });
        perform(publish, id, Effect::Execute(Box::new(request)))
    }

    fn executed(&mut self, id: &EffectId, written: Written, execution: Box<Execution>) -> Step {
        let publish = vec![self.ran(id, &execution)];
        let source = Source::read(&written.program.code);
        let found = judge::judge(&self.as_judged(&source, &written, &execution), &*self.schema);
        let request = match &self.input.contract.check {
            Some(script) if !judge::is_blocked(&found) => {
                requests::check(&self.input, script, &execution)
            }
            _ => return self.conclude(publish, written, &execution, found),
        };
        let (Some(request), Some(check)) = (request, self.ids().map(|ids| ids.check.clone()))
        else {
            let mut found = found;
            found.push(judge::cannot_check(id.as_str()));
            return self.conclude(publish, written, &execution, found);
        };
        self.stage = Stage::Checking { written, execution, findings: found };
        perform(publish, check, Effect::Execute(Box::new(request)))
    }

    fn checked(
        &mut self,
        id: &EffectId,
        written: Written,
        execution: &Execution,
        mut found: Vec<Finding>,
        check: &Execution,
    ) -> Step {
        found.extend(judge::checked(check, id.as_str()));
        self.conclude(vec![self.ran(id, check)], written, execution, found)
    }

    /// An attempt is judged: it is the last one, or it teaches the next.
    fn conclude(
        &mut self,
        mut publish: Vec<RunEvent>,
        written: Written,
        execution: &Execution,
        mut found: Vec<Finding>,
    ) -> Step {
        let Some(ids) = self.ids() else { return Step::default() };
        if written.from == ids.again {
            let message = "the first answer held no program";
            let subject = ids.generate.as_str();
            found.push(finding("output.asked-again", Severity::Note, subject, message));
        }
        let execute = ids.execute.clone();
        publish.push(self.judged(&execute, &found));
        let attempted =
            Attempted::of(self.number(), &written.from, &written.program.code, execution);
        if !judge::is_blocked(&found) {
            let attempted = Box::new(attempted);
            let conclusion = match Verdict::of(&found) {
                _ if self.input.contract.is_empty() => Conclusion::Ran(attempted),
                Verdict::Pass => Conclusion::Passed(attempted),
                Verdict::NeedsPerson | Verdict::Fail => Conclusion::Questioned(attempted),
            };
            return self.finish(publish, found, conclusion);
        }
        let source = Source::read(&written.program.code);
        let missed = findings::missed_files(&self.as_judged(&source, &written, execution));
        self.missed.extend(missed);
        let failure = Failure::of(&written.program.code, execution);
        let critique = prompt::critique(&self.input, &written.program.code, execution, &found);
        let lesson = Lesson {
            answer: written.answer,
            findings: found,
            stderr: execution.stderr.text.clone(),
            critique: None,
        };
        self.learn(publish, lesson, failure, attempted, Some(critique))
    }

    /// Goes on after a failed attempt, if that makes sense: with a critique where there is
    /// something to speak about.
    fn learn(
        &mut self,
        publish: Vec<RunEvent>,
        lesson: Lesson,
        failure: Failure,
        attempted: Attempted,
        critique: Option<ModelRequest>,
    ) -> Step {
        let repeated = self.last_failure.as_ref().is_some_and(|last| last.is_repeated_by(&failure));
        self.last_failure = Some(failure);
        let is_last = self.attempt >= self.ids.len();
        let conclusion = || Conclusion::NotPassed(Box::new(attempted.clone()));
        if is_last || repeated {
            let mut found = lesson.findings;
            // Where no attempt is left, that it failed as before is no reason for anything.
            if !is_last {
                let message =
                    "the attempt failed exactly as the one before; no further one is made";
                let subject = format!("attempt-{}", self.number());
                found.push(finding("run.repeated", Severity::Block, &subject, message));
            }
            return self.finish(publish, found, conclusion());
        }
        match (critique, self.ids().map(|ids| ids.critique.clone())) {
            (Some(request), Some(id)) => {
                self.stage = Stage::Critiquing { request: request.clone(), lesson };
                perform(publish, id, Effect::CallModel(Box::new(request)))
            }
            _ => {
                let found = lesson.findings.clone();
                self.lessons.push(lesson);
                self.next(publish).unwrap_or_else(|| self.finish(Vec::new(), found, conclusion()))
            }
        }
    }

    fn critiqued(
        &mut self,
        id: &EffectId,
        request: &ModelRequest,
        mut lesson: Lesson,
        reply: ModelReply,
    ) -> Step {
        let body = RunEventBody::Critiqued {
            effect_id: id.clone(),
            attempt: self.number(),
            text: reply.text.chars().take(MAX_CRITIQUE_CHARS).collect(),
        };
        let publish = vec![RunEvent::model_replied(id, request, &reply), RunEvent::about(id, body)];
        lesson.critique = Some(reply.text).filter(|text| !text.trim().is_empty());
        self.lessons.push(lesson);
        // A critique is asked for only where another attempt is left.
        self.next(publish).unwrap_or_default()
    }

    fn finish(
        &mut self,
        mut publish: Vec<RunEvent>,
        findings: Vec<Finding>,
        conclusion: Conclusion,
    ) -> Step {
        self.stage = Stage::Done;
        let outcome = Outcome::new(findings, conclusion);
        publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome.verdict }));
        Step { perform: Vec::new(), publish, outcome: Some(outcome) }
    }

    fn as_judged<'a>(
        &'a self,
        source: &'a Source<'a>,
        written: &'a Written,
        execution: &'a Execution,
    ) -> Attempt<'a> {
        Attempt {
            task: &self.input.task,
            inputs: &self.input.inputs,
            packages: &self.input.packages,
            contract: &self.input.contract,
            source,
            dependencies: &written.program.dependencies,
            execution,
            missed: &self.missed,
            subject: self.ids().map_or("run", |ids| ids.execute.as_str()),
        }
    }

    fn ran(&self, id: &EffectId, execution: &Execution) -> RunEvent {
        let body = RunEventBody::Executed {
            effect_id: id.clone(),
            attempt: self.number(),
            exit: execution.exit.clone(),
            engine: execution.attestation.engine.clone(),
            class: execution.attestation.class,
            stdout_bytes: execution.stdout.text.len() as u64,
            stderr_bytes: execution.stderr.text.len() as u64,
            files: execution.files.clone(),
        };
        RunEvent::about(id, body)
    }

    fn judged(&self, id: &EffectId, findings: &[Finding]) -> RunEvent {
        let (effect_id, findings) = (id.clone(), findings.to_vec());
        RunEvent::about(id, RunEventBody::Judged { effect_id, attempt: self.number(), findings })
    }
}

impl Workflow for Reflexion {
    fn start(&mut self) -> Step {
        if !matches!(self.stage, Stage::Ready) {
            return Step::default();
        }
        let workflow = Self::NAME.to_owned();
        let started = RunEvent::of_run(RunEventBody::RunStarted { workflow });
        // There is at least one attempt: `new` saw to it.
        self.next(vec![started]).unwrap_or_default()
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let is_open = self.ids().is_some_and(|ids| self.stage.waits_for(ids) == Some(id));
        let stage =
            if is_open { std::mem::replace(&mut self.stage, Stage::Done) } else { Stage::Done };
        Ok(match (stage, result) {
            (Stage::Generating(request), EffectResult::ModelReplied(reply)) => {
                self.first_answer(id, request, reply)
            }
            (Stage::AskedAgain(request), EffectResult::ModelReplied(reply)) => {
                self.second_answer(id, &request, reply)
            }
            (Stage::Executing(written), EffectResult::Executed(execution)) => {
                self.executed(id, written, execution)
            }
            // The program is not even there any more: that its check's sandbox died is ours.
            (Stage::Checking { .. }, EffectResult::Executed(check))
                if matches!(check.exit, Exit::SandboxDied { .. }) =>
            {
                let detail = format!("the check was not run to its end: {}", check.exit);
                not_executed(id, SandboxFailure { kind: SandboxFailureKind::Lost, detail })
            }
            (Stage::Checking { written, execution, findings }, EffectResult::Executed(check)) => {
                self.checked(id, written, &execution, findings, &check)
            }
            (Stage::Critiquing { request, lesson }, EffectResult::ModelReplied(reply)) => {
                self.critiqued(id, &request, lesson, reply)
            }
            (
                Stage::Generating(request)
                | Stage::AskedAgain(request)
                | Stage::Critiquing { request, .. },
                EffectResult::ModelFailed(failure),
            ) => model_failed(id, &request, failure),
            (Stage::Executing(_) | Stage::Checking { .. }, EffectResult::NotExecuted(failure)) => {
                not_executed(id, failure)
            }
            (stage, result) => {
                if is_open {
                    self.stage = stage;
                }
                let (result, stage) = (result.name(), self.stage.name());
                return Err(UnexpectedResult { id: id.clone(), result, stage });
            }
        })
    }
}

#[cfg(test)]
#[path = "reflexion_tests.rs"]
mod tests;
