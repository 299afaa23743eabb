//! Whether an attempt failed as the one before: then another one is money for nothing.

use super::python::Source;
use crate::sandbox::{Execution, Exit};

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// The model wrote no program, twice.
    NoProgram,
    /// A program was judged.
    Program {
        /// Its text.
        code: String,
        /// How it failed, where that says enough to compare. Two programs that were stopped at a
        /// limit did not fail in the same way: the second may have been the better one.
        way: Option<Way>,
    },
}

/// How a program failed: by these words, or by this output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    exit: Exit,
    said: String,
}

impl Failure {
    pub(super) fn of(code: &str, execution: &Execution) -> Self {
        Self::Program { code: code.to_owned(), way: Way::of(execution) }
    }

    /// Whether `next` is the same failure again.
    pub(super) fn is_repeated_by(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::NoProgram, Self::NoProgram) => true,
            (Self::Program { code, way }, Self::Program { code: next, way: next_way }) => {
                (way.is_some() && way == next_way)
                    || Source::read(code).says_the_same_as(&Source::read(next))
            }
            _ => false,
        }
    }
}

impl Way {
    fn of(execution: &Execution) -> Option<Self> {
        match execution.exit {
            Exit::Exited { .. } | Exit::Signalled { .. } => {}
            Exit::TimedOut | Exit::OutOfMemory | Exit::SandboxDied { .. } => return None,
        }
        let stderr = normalised(&execution.stderr.text);
        // A program that says nothing about its error, or has none, is known by its output.
        let said = if stderr.is_empty() || execution.exit.is_zero() {
            execution.stdout.text.trim_end().to_owned()
        } else {
            stderr
        };
        Some(Self { exit: execution.exit.clone(), said })
    }
}

/// An error text without what changes from run to run: line numbers, addresses, spacing. The lines
/// of the program that a traceback shows stay, because they say where it failed.
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
                // Carets under the place of an error.
                '^' | '~' => {}
                _ => plain.push(c),
            }
        }
        plain
    });
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "repeated_tests.rs"]
mod tests;
