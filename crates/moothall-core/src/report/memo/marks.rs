//! Marks on words of agents that the evidence does not carry.

use std::fmt::Write as _;

use super::plain;
use crate::claims::Checker;
use crate::evidence::Evidence;

/// Checks what goes into a memo and remembers what it marked.
pub(super) struct Marks<'a> {
    checker: Option<Checker<'a>>,
    notes: Vec<String>,
}

impl<'a> Marks<'a> {
    /// Without evidence there is nothing to check against; the head of the memo says so.
    pub(super) fn new(evidence: Option<&'a Evidence>) -> Self {
        Self { checker: evidence.map(|evidence| Checker::new(evidence.into())), notes: Vec::new() }
    }

    /// Words of an agent, without markup, with a mark where a number or a citation does not hold.
    pub(super) fn checked(&mut self, words: &str) -> String {
        let words = plain(words);
        let Some(checker) = &self.checker else { return words };
        let mut text = words;
        // After the whole text: a citation may open the sentence after the one it belongs to.
        let flagged: Vec<_> =
            checker.check(&text).into_iter().filter(|claim| claim.verdict.is_flagged()).collect();
        for claim in flagged {
            self.notes.push(format!(
                "“{}”: {}{}",
                plain(&claim.printed),
                claim.verdict.to_string().replace('_', " ").to_lowercase(),
                if claim.detail.is_empty() {
                    String::new()
                } else {
                    format!("; {}", plain(&claim.detail))
                }
            ));
            let _ = write!(text, " ⚠{}", self.notes.len());
        }
        text
    }

    /// What the marks mean.
    pub(super) fn explain(&self, text: &mut String) -> std::fmt::Result {
        if self.notes.is_empty() {
            return Ok(());
        }
        writeln!(
            text,
            "## Marks\n\nNumbers and citations in the words above that the evidence does not carry.\n"
        )?;
        for (at, note) in self.notes.iter().enumerate() {
            writeln!(text, "- ⚠{} {note}", at + 1)?;
        }
        writeln!(text)
    }
}
