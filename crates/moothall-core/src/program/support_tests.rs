//! Shared test support.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{self, AttemptContext};
use super::python::PythonSource;
use super::{OutputExpectation, ProgramContract};
use crate::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use crate::sandbox::{
    CapturedOutput, ExecutionExit, FileRef, GuestPath, IsolationClass, SandboxAttestation,
    SandboxExecution, SandboxLimits,
};
use crate::{FindingSeverity, RunFinding, Sha256Hex};

pub(crate) fn reply(text: &str) -> ModelReply {
    ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: TokenUsage { input: 10, output: 3, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

pub(crate) fn execution(exit: ExecutionExit, stdout: &str, stderr: &str) -> SandboxExecution {
    let output = |text: &str| CapturedOutput { text: text.to_owned(), truncated: false };
    SandboxExecution {
        exit,
        stdout: output(stdout),
        stderr: output(stderr),
        files: BTreeMap::new(),
        left_behind: Vec::new(),
        attestation: SandboxAttestation {
            engine: "runsc".to_owned(),
            engine_version: "1".to_owned(),
            class: IsolationClass::UserKernel,
            image: "python".to_owned(),
            image_sha256: Sha256Hex::of(b"image"),
            guest_sha256: Sha256Hex::of(b"guest"),
            limits: SandboxLimits::default(),
            held_by: BTreeMap::new(),
            self_tests: Vec::new(),
        },
    }
}

pub(crate) fn ended(code: i32) -> ExecutionExit {
    ExecutionExit::Exited { code }
}

pub(crate) fn files(names: &[&str]) -> BTreeMap<GuestPath, FileRef> {
    let file = FileRef { sha256: Sha256Hex::of(b"file"), bytes: 4 };
    names.iter().map(|name| (name.parse().unwrap(), file)).collect()
}

pub(crate) fn expect_text(text: &str) -> ProgramContract {
    let expect = Some(OutputExpectation::Text { text: text.to_owned() });
    ProgramContract { expect, ..ProgramContract::default() }
}

/// A builder for attempts to check.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) task: &'static str,
    pub(crate) code: String,
    pub(crate) inputs: BTreeMap<GuestPath, FileRef>,
    pub(crate) packages: Vec<String>,
    pub(crate) dependencies: Vec<String>,
    pub(crate) contract: ProgramContract,
    pub(crate) execution: SandboxExecution,
    pub(crate) missed: BTreeSet<String>,
}

impl Case {
    /// A program that exited with 0.
    pub(crate) fn new(task: &'static str, code: &str) -> Self {
        Self {
            task,
            code: code.to_owned(),
            inputs: BTreeMap::new(),
            packages: Vec::new(),
            dependencies: Vec::new(),
            contract: ProgramContract::default(),
            execution: execution(ended(0), "", ""),
            missed: BTreeSet::new(),
        }
    }

    pub(crate) fn failed(self, stderr: &str) -> Self {
        Self { execution: execution(ended(1), "", stderr), ..self }
    }

    pub(crate) fn given(self, names: &[&str]) -> Self {
        Self { inputs: files(names), ..self }
    }

    pub(crate) fn left(mut self, names: &[&str]) -> Self {
        self.execution.files = files(names);
        self
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&AttemptContext<'_>) -> T) -> T {
        let source = PythonSource::read(&self.code);
        look(&AttemptContext {
            task: self.task,
            inputs: &self.inputs,
            packages: &self.packages,
            contract: &self.contract,
            source: &source,
            dependencies: &self.dependencies,
            execution: &self.execution,
            missed: &self.missed,
            subject: "attempt-1/execute",
        })
    }

    pub(crate) fn findings(&self) -> Vec<RunFinding> {
        self.with(findings::of_attempt)
    }

    /// Rules and severities only.
    pub(crate) fn rules(&self) -> Vec<(String, FindingSeverity)> {
        rules(&self.findings())
    }
}

pub(crate) fn rules(findings: &[RunFinding]) -> Vec<(String, FindingSeverity)> {
    findings.iter().map(|finding| (finding.rule.to_string(), finding.severity)).collect()
}
