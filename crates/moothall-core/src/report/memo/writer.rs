//! Prepares model output for a memo: checks numbers, adds marks, and turns citations into links.

use std::collections::BTreeSet;

use super::sources;
use crate::claims::{CitableEvidence, ClaimChecker};
use crate::debate::cites;
use crate::evidence::Evidence;
use crate::report::consult_report::ConsultReport;
use crate::report::document::{DocumentBlock, FilingLink, TextSpan, Words};
use crate::report::unsupported_numbers::flag_reason;
use crate::report::visible::visible_line;

/// Checks model output, and collects the marks and citations.
pub(crate) struct MemoWriter<'a> {
    evidence: Option<&'a Evidence>,
    checker: Option<ClaimChecker<'a>>,
    notes: Vec<String>,
    cited: BTreeSet<String>,
}

impl<'a> MemoWriter<'a> {
    /// Synthetic data has no evidence to check against; the notice at the top of the memo says so.
    pub(crate) fn new(view: &'a ConsultReport) -> Self {
        let evidence = view.evidence().filter(|_| !view.proceedings.is_synthetic());
        let checker = evidence.map(|evidence| {
            let calculations = &view.calculations;
            ClaimChecker::new(CitableEvidence { calculations, ..evidence.into() })
        });
        Self { evidence, checker, notes: Vec::new(), cited: BTreeSet::new() }
    }

    /// Converts model output, with a mark for each unsupported number or citation.
    pub(crate) fn checked(&mut self, words: &str) -> Words {
        let words = visible_line(words);
        let mut spans = self.with_citations(&words);
        let Some(checker) = &self.checker else { return spans };
        // Marks go at the end, because a citation may be at the start of the next sentence.
        for claim in checker.check(&words).iter().filter(|claim| claim.verdict.is_flagged()) {
            self.notes.push(format!("“{}”: {}", claim.printed, flag_reason(claim)));
            spans.push(TextSpan::text(" "));
            spans.push(TextSpan::Mark { number: self.notes.len() });
        }
        spans
    }

    /// Converts a citation, given its id without brackets.
    pub(crate) fn citation(&mut self, id: &str) -> TextSpan {
        let id = visible_line(id);
        let found = self.evidence.and_then(|evidence| {
            let id = sources::canonical_citation(evidence, &id)?;
            Some((sources::link(evidence, &id), id))
        });
        let Some((url, id)) = found else { return TextSpan::Cite { id, url: None, listed: false } };
        self.cited.insert(id.clone());
        TextSpan::Cite { id, url, listed: true }
    }

    /// The link to a filing, if there is one.
    pub(crate) fn filing(&self, accession: &str) -> Option<FilingLink> {
        sources::filing(self.evidence?, accession)
    }

    /// The source list.
    pub(crate) fn sources(&self) -> Vec<DocumentBlock> {
        let Some(evidence) = self.evidence else { return Vec::new() };
        sources::listed(evidence, &self.cited)
    }

    /// The explanation of the marks.
    pub(crate) fn marks(&self) -> Vec<DocumentBlock> {
        if self.notes.is_empty() {
            return Vec::new();
        }
        let items = (1..).zip(&self.notes).map(|(number, note)| {
            let mut words = vec![TextSpan::Mark { number }];
            words.push(TextSpan::text(&format!(" {note}")));
            words
        });
        vec![
            DocumentBlock::heading(1, "Marks"),
            DocumentBlock::paragraph(
                "Numbers and citations above that the evidence does not support.",
            ),
            DocumentBlock::List { numbered: false, items: items.collect() },
        ]
    }

    /// Splits `[F0:Revenue:FY2025; F0:Revenue:FY2024]` into two citations; other brackets are text.
    fn with_citations(&mut self, words: &str) -> Words {
        let mut spans = Words::new();
        let mut plain = String::new();
        let mut rest = words;
        while let Some((before, behind)) = rest.split_once('[') {
            plain.push_str(before);
            let found = behind.split_once(']').and_then(|(inside, after)| {
                let ids = cites(&format!("[{inside}]"), []);
                (!ids.is_empty() && ids.len() == inside.split([';', ',']).count())
                    .then_some((ids, after))
            });
            match found {
                Some((ids, after)) => {
                    if !plain.is_empty() {
                        spans.push(TextSpan::text(&std::mem::take(&mut plain)));
                    }
                    for (at, id) in ids.iter().enumerate() {
                        if at > 0 {
                            spans.push(TextSpan::text(" "));
                        }
                        spans.push(self.citation(id));
                    }
                    rest = after;
                }
                None => {
                    plain.push('[');
                    rest = behind;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            spans.push(TextSpan::text(&plain));
        }
        spans
    }
}
