//! Any program is read without a panic, and every rule has an answer to it, whatever was asked for
//! and whatever came of running it.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use moothall_core::Sha256Hex;
use moothall_core::model::{ModelReply, StopReason, Usage, UsageBasis};
use moothall_core::reflexion::findings::{Attempt, of_attempt};
use moothall_core::reflexion::python::Source;
use moothall_core::reflexion::{Contract, Expectation, read_program};
use moothall_core::sandbox::{Attestation, Execution, Exit, IsolationClass, Limits, Output};

/// What parts the input: the program, the task, and what was printed.
const PART: char = '\u{1e}';

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split(PART);
    let mut part = || parts.next().unwrap_or("");
    let (code, task, stdout, stderr) = (part(), part(), part(), part());
    let source = Source::read(code);
    check_reading(code, &source);
    check_answer(code);

    let expect = Some(Expectation::Text { text: stdout.to_owned() });
    for (exit, contract) in [
        (Exit::Exited { code: 0 }, Contract::default()),
        (Exit::Exited { code: 0 }, Contract { expect, ..Contract::default() }),
        (Exit::Exited { code: 1 }, Contract::default()),
    ] {
        let execution = execution(exit, stdout, stderr);
        let attempt = Attempt {
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
});

/// Every word stands in the program, in order, and every line knows its heads.
fn check_reading(code: &str, source: &Source<'_>) {
    let ends = code.matches('\n').count() + 1;
    for (index, line) in source.lines.iter().enumerate() {
        assert!(!line.tokens.is_empty());
        assert!((1..=ends).contains(&line.number));
        assert!(source.heads(index).all(|head| head.indent < line.indent));
        assert!(source.calls(line).iter().all(|call| !call.name().is_empty()));
    }
    assert!(source.lines.is_sorted_by_key(|line| line.number));
    assert!(source.says_the_same_as(&Source::read(code)));
    let _ = (source.imports(), source.file_uses());
}

fn check_answer(text: &str) {
    let reply = ModelReply {
        text: text.to_owned(),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: Usage::default(),
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: None,
    };
    if let Ok(program) = read_program(&reply) {
        assert!(!program.code.trim().is_empty());
        assert!(program.confidence_permille.is_none_or(|share| share <= 1000));
    }
}

fn execution(exit: Exit, stdout: &str, stderr: &str) -> Execution {
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
