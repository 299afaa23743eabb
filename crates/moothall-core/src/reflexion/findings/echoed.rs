//! Output that echoes what is expected of it.

use super::Attempt;
use crate::reflexion::contract::Expectation;
use crate::reflexion::python::Token;
use crate::{Finding, Severity};

/// Shorter expectations stand in honest programs by chance.
const LEAST_CHARS: usize = 8;

/// Letters and digits that do not stand in a program by chance.
const LEAST_BARE_CHARS: usize = 16;

/// A program that holds the very text it should have worked out may not have worked it out. Where
/// the task itself holds the text, writing it down is what was asked for. A person decides.
pub(super) fn echoed(attempt: &Attempt<'_>) -> Vec<Finding> {
    let Some(Expectation::Text { text }) = &attempt.contract.expect else { return Vec::new() };
    let expected = text.trim();
    if expected.chars().count() < LEAST_CHARS {
        return Vec::new();
    }
    let task_has = |part: &str| bare(attempt.task).contains(&bare(part));
    if task_has(expected) {
        return Vec::new();
    }
    let literal = || literals(attempt).any(|literal| literal.contains(expected));
    let spread = || {
        let expected = bare(expected);
        expected.chars().count() >= LEAST_BARE_CHARS && bare_code(attempt).contains(&expected)
    };
    let by_lines = || {
        let lines: Vec<_> =
            expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let worked_out: Vec<_> = lines.iter().filter(|line| !task_has(line)).collect();
        lines.len() > 1
            && !worked_out.is_empty()
            && worked_out.iter().map(|line| line.len()).sum::<usize>() >= LEAST_CHARS
            && worked_out
                .iter()
                .all(|line| literals(attempt).any(|literal| literal.trim() == **line))
    };
    if literal() || spread() || by_lines() {
        let message = "the expected text stands in the program itself";
        vec![attempt.finding("expectation.echoed", Severity::Escalate, message)]
    } else {
        Vec::new()
    }
}

fn literals<'t>(attempt: &'t Attempt<'_>) -> impl Iterator<Item = &'t str> {
    attempt.source.lines.iter().flat_map(|line| line.texts())
}

/// Letters and digits only: `[2, 3]` and `2 3` are the same.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The program's strings and numbers in the order they stand, bare.
fn bare_code(attempt: &Attempt<'_>) -> String {
    let tokens = attempt.source.lines.iter().flat_map(|line| &line.tokens);
    tokens
        .filter_map(|token| match token {
            Token::Text(text) => Some(bare(text)),
            Token::Number(text) => Some(bare(text)),
            Token::Name(_) | Token::Sign(_) => None,
        })
        .collect()
}
