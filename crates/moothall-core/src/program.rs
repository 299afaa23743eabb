//! Generates a program, runs it, checks the result, and retries with feedback on failure.
//!
//! ```text
//! generate ─► execute ─► judge ─► check ─► done
//!     ▲                    │        │
//!     └──── critique ◄─────┴────────┘
//! ```
//!
//! Exit code 0 alone does not count as success: a program passes if it fulfils its contract, and
//! without a contract it can only have run. Code decides, never a model. An attempt is used up when
//! a program was checked, or when a model wrote none. If no sandbox is available, the run ends and
//! no attempt counts as failed.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::{ModelReply, ModelRequest};
use crate::sandbox::{ExecutionExit, SandboxExecution, SandboxFailure, SandboxFailureKind};
use crate::structured::OutputCheck;
use crate::{
    Conclusion, Effect, EffectId, EffectResult, FindingSeverity, Outcome, RunEvent, RunEventBody,
    RunFinding, RunVerdict, Sha256Hex, Step, UnexpectedResult, Workflow,
};

mod attempt_failure;
mod contract;
mod contract_check;
pub mod demonstration;
pub mod findings;
mod ids;
mod input;
mod parse;
mod prompt;
pub mod python;
mod requests;
mod result;
mod steps;
#[cfg(test)]
#[path = "program/support_tests.rs"]
pub(crate) mod support;

pub use self::contract::{InvalidPattern, OutputExpectation, OutputPattern, ProgramContract};
pub(crate) use self::input::MAX_TASK_BYTES;
pub use self::input::{AnswerFormat, InvalidProgramInput, MAX_ATTEMPTS, ProgramInput};
pub use self::parse::{GeneratedProgram, MAX_CODE_BYTES, read_program};
pub use self::result::ProgramResult;

use self::attempt_failure::AttemptFailure;
use self::findings::{AttemptContext, finding};
use self::ids::ProgramIds;
use self::prompt::AttemptFeedback;
use self::python::PythonSource;
use self::steps::{model_failed, not_executed, perform};

/// How many characters of a critique an event shows.
const MAX_CRITIQUE_CHARS: usize = 2000;

/// The program workflow. See the module documentation.
pub struct ProgramRun {
    input: ProgramInput,
    schema: Box<dyn OutputCheck>,
    ids: Vec<ProgramIds>,
    /// The number of attempts started.
    attempt: usize,
    lessons: Vec<AttemptFeedback>,
    /// Files that earlier attempts tried to open but did not find.
    missed: BTreeSet<String>,
    /// How the previous attempt failed.
    last_failure: Option<AttemptFailure>,
    stage: ProgramStage,
}

impl fmt::Debug for ProgramRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramRun")
            .field("attempt", &self.attempt)
            .field("stage", &self.stage.name())
            .finish_non_exhaustive()
    }
}

enum ProgramStage {
    Ready,
    Generating(ModelRequest),
    AskedAgain(ModelRequest),
    Executing(ProgramCandidate),
    Checking {
        written: ProgramCandidate,
        execution: Box<SandboxExecution>,
        findings: Vec<RunFinding>,
    },
    Critiquing {
        request: ModelRequest,
        lesson: AttemptFeedback,
    },
    Done,
}

/// A generated program and its origin.
struct ProgramCandidate {
    program: GeneratedProgram,
    /// The answer it was extracted from.
    answer: String,
    /// The call that returned the answer.
    from: EffectId,
}

impl ProgramStage {
    fn name(&self) -> &'static str {
        match self {
            Self::Ready => "not started",
            Self::Generating(_) => "waiting for a program",
            Self::AskedAgain(_) => "waiting for the second answer",
            Self::Executing(_) => "waiting for the program to finish",
            Self::Checking { .. } => "waiting for the check",
            Self::Critiquing { .. } => "waiting for a critique",
            Self::Done => "done",
        }
    }

    /// The pending effect, if any.
    fn pending_effect<'a>(&self, ids: &'a ProgramIds) -> Option<&'a EffectId> {
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

impl ProgramRun {
    /// The workflow's name in events and receipts.
    pub const NAME: &str = "run";

    /// `schema` is used only if the contract expects JSON that matches a schema.
    pub fn new(
        input: ProgramInput,
        schema: Box<dyn OutputCheck>,
    ) -> Result<Self, InvalidProgramInput> {
        input.validate()?;
        let ids = (1..=input.attempts).map(ProgramIds::of).collect::<Result<_, _>>()?;
        Ok(Self {
            input,
            schema,
            ids,
            attempt: 0,
            lessons: Vec::new(),
            missed: BTreeSet::new(),
            last_failure: None,
            stage: ProgramStage::Ready,
        })
    }

    /// The number of the current attempt, starting at 1.
    fn number(&self) -> u32 {
        u32::try_from(self.attempt).unwrap_or(u32::MAX)
    }

    /// The effect ids of the current attempt. `new` creates ids for all attempts, and `next` stops
    /// when they are used up.
    fn ids(&self) -> Option<&ProgramIds> {
        self.attempt.checked_sub(1).and_then(|index| self.ids.get(index))
    }

    /// Starts the next attempt; `None` if none is left.
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
        self.stage = ProgramStage::Generating(request.clone());
        Some(perform(publish, id, Effect::CallModel(Box::new(request))))
    }

    fn first_answer(&mut self, id: &EffectId, request: ModelRequest, reply: ModelReply) -> Step {
        let mut publish = vec![RunEvent::model_replied(id, &request, &reply)];
        match (read_program(&reply), self.ids()) {
            (Ok(program), _) => self.execute(publish, id, program, reply.text),
            (Err(fault), Some(ids)) => {
                let next = ids.again.clone();
                publish.push(RunEvent::output_rejected(id, &fault));
                let again =
                    prompt::retry_request(&request, self.input.answer_form, &reply.text, &fault);
                self.stage = ProgramStage::AskedAgain(again.clone());
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
                let found =
                    vec![finding(fault.rule(), FindingSeverity::Block, id.as_str(), &message)];
                publish.push(self.findings_event(id, &found));
                let failure = AttemptFailure::NoProgram;
                let attempted = ProgramResult::without_program(self.number());
                let lesson = AttemptFeedback {
                    answer: reply.text,
                    findings: found,
                    stderr: String::new(),
                    critique: None,
                };
                self.continue_after_failure(publish, lesson, failure, attempted, None)
            }
        }
    }

    fn execute(
        &mut self,
        mut publish: Vec<RunEvent>,
        from: &EffectId,
        program: GeneratedProgram,
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
        self.stage =
            ProgramStage::Executing(ProgramCandidate { program, answer, from: from.clone() });
        perform(publish, id, Effect::Execute(Box::new(request)))
    }

    fn executed(
        &mut self,
        id: &EffectId,
        written: ProgramCandidate,
        execution: Box<SandboxExecution>,
    ) -> Step {
        let publish = vec![self.execution_event(id, &execution)];
        let source = PythonSource::read(&written.program.code);
        let found = contract_check::judge(
            &self.attempt_context(&source, &written, &execution),
            &*self.schema,
        );
        let request = match &self.input.contract.check {
            Some(script) if !contract_check::is_blocked(&found) => {
                requests::check(&self.input, script, &execution)
            }
            _ => return self.conclude(publish, written, &execution, found),
        };
        let (Some(request), Some(check)) = (request, self.ids().map(|ids| ids.check.clone()))
        else {
            let mut found = found;
            found.push(contract_check::cannot_check(id.as_str()));
            return self.conclude(publish, written, &execution, found);
        };
        self.stage = ProgramStage::Checking { written, execution, findings: found };
        perform(publish, check, Effect::Execute(Box::new(request)))
    }

    fn checked(
        &mut self,
        id: &EffectId,
        written: ProgramCandidate,
        execution: &SandboxExecution,
        mut found: Vec<RunFinding>,
        check: &SandboxExecution,
    ) -> Step {
        found.extend(contract_check::checked(check, id.as_str()));
        self.conclude(vec![self.execution_event(id, check)], written, execution, found)
    }

    /// Concludes a checked attempt: it ends the run, or becomes feedback for the next attempt.
    fn conclude(
        &mut self,
        mut publish: Vec<RunEvent>,
        written: ProgramCandidate,
        execution: &SandboxExecution,
        mut found: Vec<RunFinding>,
    ) -> Step {
        let Some(ids) = self.ids() else { return Step::default() };
        if written.from == ids.again {
            let message = "the first answer held no program";
            let subject = ids.generate.as_str();
            found.push(finding("output.asked-again", FindingSeverity::Note, subject, message));
        }
        let execute = ids.execute.clone();
        publish.push(self.findings_event(&execute, &found));
        let attempted =
            ProgramResult::of(self.number(), &written.from, &written.program.code, execution);
        if !contract_check::is_blocked(&found) {
            let attempted = Box::new(attempted);
            let conclusion = match RunVerdict::of(&found) {
                _ if self.input.contract.is_empty() => Conclusion::Ran(attempted),
                RunVerdict::Pass => Conclusion::Passed(attempted),
                RunVerdict::NeedsPerson | RunVerdict::Fail => Conclusion::Questioned(attempted),
            };
            return self.finish(publish, found, conclusion);
        }
        let source = PythonSource::read(&written.program.code);
        let missed = findings::missed_files(&self.attempt_context(&source, &written, execution));
        self.missed.extend(missed);
        let failure = AttemptFailure::of(&written.program.code, execution);
        let critique = prompt::critique(&self.input, &written.program.code, execution, &found);
        let lesson = AttemptFeedback {
            answer: written.answer,
            findings: found,
            stderr: execution.stderr.text.clone(),
            critique: None,
        };
        self.continue_after_failure(publish, lesson, failure, attempted, Some(critique))
    }

    /// Continues after a failed attempt if that makes sense, with a critique if there is a program
    /// to review.
    fn continue_after_failure(
        &mut self,
        publish: Vec<RunEvent>,
        lesson: AttemptFeedback,
        failure: AttemptFailure,
        attempted: ProgramResult,
        critique: Option<ModelRequest>,
    ) -> Step {
        let repeated = self.last_failure.as_ref().is_some_and(|last| last.is_repeated_by(&failure));
        self.last_failure = Some(failure);
        let is_last = self.attempt >= self.ids.len();
        let conclusion = || Conclusion::NotPassed(Box::new(attempted.clone()));
        if is_last || repeated {
            let mut found = lesson.findings;
            // If no attempt is left, the repetition is not why the run ends.
            if !is_last {
                let message =
                    "the attempt failed exactly as the one before; no further one is made";
                let subject = format!("attempt-{}", self.number());
                found.push(finding("run.repeated", FindingSeverity::Block, &subject, message));
            }
            return self.finish(publish, found, conclusion());
        }
        match (critique, self.ids().map(|ids| ids.critique.clone())) {
            (Some(request), Some(id)) => {
                self.stage = ProgramStage::Critiquing { request: request.clone(), lesson };
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
        mut lesson: AttemptFeedback,
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
        // A critique is requested only if another attempt is left.
        self.next(publish).unwrap_or_default()
    }

    fn finish(
        &mut self,
        mut publish: Vec<RunEvent>,
        findings: Vec<RunFinding>,
        conclusion: Conclusion,
    ) -> Step {
        self.stage = ProgramStage::Done;
        let outcome = Outcome::new(findings, conclusion);
        publish.push(RunEvent::of_run(RunEventBody::RunFinished { verdict: outcome.verdict }));
        Step { perform: Vec::new(), publish, outcome: Some(outcome) }
    }

    fn attempt_context<'a>(
        &'a self,
        source: &'a PythonSource<'a>,
        written: &'a ProgramCandidate,
        execution: &'a SandboxExecution,
    ) -> AttemptContext<'a> {
        AttemptContext {
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

    fn execution_event(&self, id: &EffectId, execution: &SandboxExecution) -> RunEvent {
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

    fn findings_event(&self, id: &EffectId, findings: &[RunFinding]) -> RunEvent {
        let (effect_id, findings) = (id.clone(), findings.to_vec());
        RunEvent::about(id, RunEventBody::Judged { effect_id, attempt: self.number(), findings })
    }
}

impl Workflow for ProgramRun {
    fn start(&mut self) -> Step {
        if !matches!(self.stage, ProgramStage::Ready) {
            return Step::default();
        }
        let workflow = Self::NAME.to_owned();
        let started = RunEvent::of_run(RunEventBody::RunStarted { workflow });
        // `new` guarantees at least one attempt.
        self.next(vec![started]).unwrap_or_default()
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let is_open = self.ids().is_some_and(|ids| self.stage.pending_effect(ids) == Some(id));
        let stage = if is_open {
            std::mem::replace(&mut self.stage, ProgramStage::Done)
        } else {
            ProgramStage::Done
        };
        Ok(match (stage, result) {
            (ProgramStage::Generating(request), EffectResult::ModelReplied(reply)) => {
                self.first_answer(id, request, reply)
            }
            (ProgramStage::AskedAgain(request), EffectResult::ModelReplied(reply)) => {
                self.second_answer(id, &request, reply)
            }
            (ProgramStage::Executing(written), EffectResult::Executed(execution)) => {
                self.executed(id, written, execution)
            }
            // The program has already finished, so a lost sandbox of its check is not the program's
            // fault.
            (ProgramStage::Checking { .. }, EffectResult::Executed(check))
                if matches!(check.exit, ExecutionExit::SandboxDied { .. }) =>
            {
                let detail = format!("the check was not run to its end: {}", check.exit);
                not_executed(id, SandboxFailure { kind: SandboxFailureKind::Lost, detail })
            }
            (
                ProgramStage::Checking { written, execution, findings },
                EffectResult::Executed(check),
            ) => self.checked(id, written, &execution, findings, &check),
            (ProgramStage::Critiquing { request, lesson }, EffectResult::ModelReplied(reply)) => {
                self.critiqued(id, &request, lesson, reply)
            }
            (
                ProgramStage::Generating(request)
                | ProgramStage::AskedAgain(request)
                | ProgramStage::Critiquing { request, .. },
                EffectResult::ModelFailed(failure),
            ) => model_failed(id, &request, failure),
            (
                ProgramStage::Executing(_) | ProgramStage::Checking { .. },
                EffectResult::NotExecuted(failure),
            ) => not_executed(id, failure),
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
#[path = "program_tests.rs"]
mod tests;
