//! What the tests of this workflow share.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{self, Attempt};
use super::python::Source;
use super::{Contract, Expectation};
use crate::model::{ModelReply, StopReason, Usage, UsageBasis};
use crate::sandbox::{
    Attestation, Execution, Exit, FileRef, GuestPath, IsolationClass, Limits, Output,
};
use crate::{Finding, Severity, Sha256Hex};

pub(super) fn reply(text: &str) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: Usage { input: 10, output: 3, ..Usage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    }
}

pub(super) fn execution(exit: Exit, stdout: &str, stderr: &str) -> Execution {
    let output = |text: &str| Output { text: text.to_owned(), truncated: false };
    Execution {
        exit,
        stdout: output(stdout),
        stderr: output(stderr),
        files: BTreeMap::new(),
        left_behind: Vec::new(),
        attestation: Attestation {
            engine: "runsc".to_owned(),
            engine_version: "1".to_owned(),
            class: IsolationClass::UserKernel,
            image: "python".to_owned(),
            image_sha256: Sha256Hex::of(b"image"),
            guest_sha256: Sha256Hex::of(b"guest"),
            limits: Limits::default(),
            held_by: BTreeMap::new(),
            self_tests: Vec::new(),
        },
    }
}

pub(super) fn ended(code: i32) -> Exit {
    Exit::Exited { code }
}

pub(super) fn files(names: &[&str]) -> BTreeMap<GuestPath, FileRef> {
    let file = FileRef { sha256: Sha256Hex::of(b"file"), bytes: 4 };
    names.iter().map(|name| (name.parse().unwrap(), file)).collect()
}

pub(super) fn expect_text(text: &str) -> Contract {
    let expect = Some(Expectation::Text { text: text.to_owned() });
    Contract { expect, ..Contract::default() }
}

/// An attempt to be judged, in plain words.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) task: &'static str,
    pub(super) code: String,
    pub(super) inputs: BTreeMap<GuestPath, FileRef>,
    pub(super) packages: Vec<String>,
    pub(super) dependencies: Vec<String>,
    pub(super) contract: Contract,
    pub(super) execution: Execution,
    pub(super) missed: BTreeSet<String>,
}

impl Case {
    /// A program that ended with 0.
    pub(super) fn new(task: &'static str, code: &str) -> Self {
        Self {
            task,
            code: code.to_owned(),
            inputs: BTreeMap::new(),
            packages: Vec::new(),
            dependencies: Vec::new(),
            contract: Contract::default(),
            execution: execution(ended(0), "", ""),
            missed: BTreeSet::new(),
        }
    }

    pub(super) fn failed(self, stderr: &str) -> Self {
        Self { execution: execution(ended(1), "", stderr), ..self }
    }

    pub(super) fn given(self, names: &[&str]) -> Self {
        Self { inputs: files(names), ..self }
    }

    pub(super) fn left(mut self, names: &[&str]) -> Self {
        self.execution.files = files(names);
        self
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&Attempt<'_>) -> T) -> T {
        let source = Source::read(&self.code);
        look(&Attempt {
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

    pub(super) fn findings(&self) -> Vec<Finding> {
        self.with(findings::of_attempt)
    }

    /// Rules and severities only.
    pub(super) fn rules(&self) -> Vec<(String, Severity)> {
        rules(&self.findings())
    }
}

pub(super) fn rules(findings: &[Finding]) -> Vec<(String, Severity)> {
    findings.iter().map(|finding| (finding.rule.to_string(), finding.severity)).collect()
}
