//! Detects programs that contain the expected output as a literal.

use super::AttemptContext;
use crate::program::contract::OutputExpectation;
use crate::program::python::PythonToken;
use crate::{FindingSeverity, RunFinding};

/// Shorter expectations occur in honest programs by chance.
const MIN_EXPECTED_CHARS: usize = 8;

/// The minimum number of letters and digits for a match that ignores separators.
const MIN_NORMALIZED_CHARS: usize = 16;

/// A program that contains the expected text may not have computed it. If the task contains the
/// text too, printing it literally is fine. Escalates for a person to decide.
pub(crate) fn echoed(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let Some(OutputExpectation::Text { text }) = &attempt.contract.expect else {
        return Vec::new();
    };
    let expected = text.trim();
    if expected.chars().count() < MIN_EXPECTED_CHARS {
        return Vec::new();
    }
    let task_has = |part: &str| alphanumeric_only(attempt.task).contains(&alphanumeric_only(part));
    if task_has(expected) {
        return Vec::new();
    }
    let literal = || literals(attempt).any(|literal| literal.contains(expected));
    let spread = || {
        let expected = alphanumeric_only(expected);
        expected.chars().count() >= MIN_NORMALIZED_CHARS
            && normalized_literals(attempt).contains(&expected)
    };
    let by_lines = || {
        let lines: Vec<_> =
            expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let worked_out: Vec<_> = lines.iter().filter(|line| !task_has(line)).collect();
        lines.len() > 1
            && !worked_out.is_empty()
            && worked_out.iter().map(|line| line.len()).sum::<usize>() >= MIN_EXPECTED_CHARS
            && worked_out
                .iter()
                .all(|line| literals(attempt).any(|literal| literal.trim() == **line))
    };
    if literal() || spread() || by_lines() {
        let message = "the expected text stands in the program itself";
        vec![attempt.finding("expectation.echoed", FindingSeverity::Escalate, message)]
    } else {
        Vec::new()
    }
}

fn literals<'t>(attempt: &'t AttemptContext<'_>) -> impl Iterator<Item = &'t str> {
    attempt.source.lines.iter().flat_map(|line| line.texts())
}

/// Letters and digits only, so that `[2, 3]` and `2 3` are equal.
fn alphanumeric_only(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The program's string and number literals in order, reduced by [`alphanumeric_only`].
fn normalized_literals(attempt: &AttemptContext<'_>) -> String {
    let tokens = attempt.source.lines.iter().flat_map(|line| &line.tokens);
    tokens
        .filter_map(|token| match token {
            PythonToken::Text(text) => Some(alphanumeric_only(text)),
            PythonToken::Number(text) => Some(alphanumeric_only(text)),
            PythonToken::Name(_) | PythonToken::Sign(_) => None,
        })
        .collect()
}
