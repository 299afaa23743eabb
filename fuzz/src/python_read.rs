//! Any program is parsed without a panic, and every rule gives a result for it, for any task and
//! any result of running it.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::Sha256Hex;
use moothall_core::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use moothall_core::program::findings::{AttemptContext, of_attempt};
use moothall_core::program::python::PythonSource;
use moothall_core::program::{OutputExpectation, ProgramContract, read_program};
use moothall_core::sandbox::{
    CapturedOutput, ExecutionExit, IsolationClass, SandboxAttestation, SandboxExecution,
    SandboxLimits,
};

/// Separates the parts of the input: the program, the task, stdout and stderr.
const PART: char = '\u{1e}';

pub fn python_read(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split(PART);
    let mut part = || parts.next().unwrap_or("");
    let (code, task, stdout, stderr) = (part(), part(), part(), part());
    let source = PythonSource::read(code);
    check_reading(code, &source);
    check_answer(code);

    let expect = Some(OutputExpectation::Text { text: stdout.to_owned() });
    for (exit, contract) in [
        (ExecutionExit::Exited { code: 0 }, ProgramContract::default()),
        (
            ExecutionExit::Exited { code: 0 },
            ProgramContract { expect, ..ProgramContract::default() },
        ),
        (ExecutionExit::Exited { code: 1 }, ProgramContract::default()),
    ] {
        let execution = execution(exit, stdout, stderr);
        let attempt = AttemptContext {
            task,
            inputs: &BTreeMap::new(),
            packages: &["numpy".to_owned()],
            contract: &contract,
            source: &source,
            dependencies: &[stdout.to_owned()],
            execution: &execution,
            missed: &BTreeSet::from(["users.json".to_owned()]),
            subject: "attempt-1/execute",
        };
        let findings = of_attempt(&attempt);
        assert_eq!(findings, of_attempt(&attempt));
        assert!(findings.iter().all(|finding| finding.message.chars().count() <= 400));
    }
}

/// Checks that the parsed lines are in the program, in order, and that the headers of a line are
/// indented less than the line.
fn check_reading(code: &str, source: &PythonSource<'_>) {
    let ends = code.matches('\n').count() + 1;
    for (index, line) in source.lines.iter().enumerate() {
        assert!(!line.tokens.is_empty());
        assert!((1..=ends).contains(&line.number));
        assert!(source.enclosing_headers(index).all(|head| head.indent < line.indent));
        assert!(source.calls(line).iter().all(|call| !call.name().is_empty()));
    }
    assert!(source.lines.is_sorted_by_key(|line| line.number));
    assert!(source.is_equivalent_to(&PythonSource::read(code)));
    let _ = (source.imports(), source.file_uses());
}

fn check_answer(text: &str) {
    let reply = ModelReply {
        fallback: None,
        text: text.to_owned(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: None,
    };
    if let Ok(program) = read_program(&reply) {
        assert!(!program.code.trim().is_empty());
        assert!(program.confidence_permille.is_none_or(|share| share <= 1000));
    }
}

fn execution(exit: ExecutionExit, stdout: &str, stderr: &str) -> SandboxExecution {
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
