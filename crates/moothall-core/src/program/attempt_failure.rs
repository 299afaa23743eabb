//! Detects whether an attempt failed in the same way as the previous one. Another attempt would
//! then be wasted.

use super::python::PythonSource;
use crate::sandbox::{ExecutionExit, SandboxExecution};

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttemptFailure {
    /// The model wrote no program in two answers.
    NoProgram,
    /// A program was checked and failed.
    Program {
        /// The source code.
        code: String,
        /// How it failed, if that can be compared. Two programs stopped at a limit did not
        /// necessarily fail in the same way: the second may have been better.
        way: Option<FailureSignature>,
    },
}

/// How a program failed: its exit status and its error text or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureSignature {
    exit: ExecutionExit,
    said: String,
}

impl AttemptFailure {
    pub(crate) fn of(code: &str, execution: &SandboxExecution) -> Self {
        Self::Program { code: code.to_owned(), way: FailureSignature::of(execution) }
    }

    pub(crate) fn is_repeated_by(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::NoProgram, Self::NoProgram) => true,
            (Self::Program { code, way }, Self::Program { code: next, way: next_way }) => {
                (way.is_some() && way == next_way)
                    || PythonSource::read(code).is_equivalent_to(&PythonSource::read(next))
            }
            _ => false,
        }
    }
}

impl FailureSignature {
    fn of(execution: &SandboxExecution) -> Option<Self> {
        match execution.exit {
            ExecutionExit::Exited { .. } | ExecutionExit::Signalled { .. } => {}
            ExecutionExit::TimedOut
            | ExecutionExit::OutOfMemory
            | ExecutionExit::SandboxDied { .. } => return None,
        }
        let stderr = normalised(&execution.stderr.text);
        // Without an error message, compare the output.
        let said = if stderr.is_empty() || execution.exit.is_zero() {
            execution.stdout.text.trim_end().to_owned()
        } else {
            stderr
        };
        Some(Self { exit: execution.exit.clone(), said })
    }
}

/// An error text without parts that change between runs: line numbers, addresses, spacing. The
/// source lines in a traceback are kept, because they show where it failed.
fn normalised(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let is_address = word.trim_matches(|c: char| !c.is_alphanumeric()).starts_with("0x");
        if is_address {
            return "0x#".to_owned();
        }
        let mut plain = String::with_capacity(word.len());
        for c in word.chars() {
            match c {
                '0'..='9' if plain.ends_with('#') => {}
                '0'..='9' => plain.push('#'),
                // Carets that mark the position of an error.
                '^' | '~' => {}
                _ => plain.push(c),
            }
        }
        plain
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "attempt_failure_tests.rs"]
mod tests;
