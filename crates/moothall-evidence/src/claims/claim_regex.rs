//! Static regexes, compiled once.

use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

/// A static regex, compiled on first use. The `regex` crate runs in time linear in the text, so no
/// model output can make a match slow.
///
/// An invalid pattern would match nothing; a test compiles every pattern.
pub(crate) struct ClaimRegex {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl ClaimRegex {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.regex()?.find(text)
    }

    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    pub(crate) fn find_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Match<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.find_iter(text))
    }

    pub(crate) fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        self.regex().into_iter().flat_map(move |regex| regex.captures_iter(text))
    }

    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }
}

#[cfg(test)]
#[path = "claim_regex_tests.rs"]
mod tests;
