//! Patterns of ours, compiled once.

use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

/// A pattern that stands in the source. The `regex` crate is linear in the text, so no sentence of
/// a model can make one slow.
///
/// A pattern that does not compile would find nothing; a test compiles every one of them.
pub(super) struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub(super) fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.regex()?.find(text)
    }

    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    pub(super) fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Match<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.find_iter(text))
    }

    pub(super) fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.captures_iter(text))
    }

    pub(super) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
