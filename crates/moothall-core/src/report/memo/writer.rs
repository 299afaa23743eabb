//! Words of agents on their way into a memo: checked, marked, with their citations as links.

use std::collections::BTreeSet;

use super::sources;
use crate::claims::Checker;
use crate::debate::cites;
use crate::evidence::Evidence;
use crate::report::document::{Block, Link, Span, Words};
use crate::report::view::ConsultView;
use crate::report::visible::visible_line;

/// Checks what goes into a memo, and remembers what it marked and what was cited.
pub(super) struct Writer<'a> {
    evidence: Option<&'a Evidence>,
    checker: Option<Checker<'a>>,
    notes: Vec<String>,
    cited: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    /// Without evidence there is nothing to check against; the head of the memo says so.
    pub(super) fn new(view: &'a ConsultView) -> Self {
        let evidence = view.evidence().filter(|_| !view.proceedings.is_synthetic());
        let checker = evidence.map(|evidence| Checker::new(evidence.into()));
        Self { evidence, checker, notes: Vec::new(), cited: BTreeSet::new() }
    }

    /// Words of an agent, with a mark where a number or a citation does not hold.
    pub(super) fn checked(&mut self, words: &str) -> Words {
        let words = visible_line(words);
        let mut spans = self.with_citations(&words);
        let Some(checker) = &self.checker else { return spans };
        // After the whole text: a citation may open the sentence after the one it belongs to.
        for claim in checker.check(&words).iter().filter(|claim| claim.verdict.is_flagged()) {
            let verdict = claim.verdict.to_string().replace('_', " ").to_lowercase();
            let mut note = format!("“{}”: {verdict}", claim.printed);
            if !claim.detail.is_empty() {
                note.push_str(&format!("; {}", claim.detail));
            }
            self.notes.push(note);
            spans.push(Span::text(" "));
            spans.push(Span::Mark { number: self.notes.len() });
        }
        spans
    }

    /// A citation, by its id without brackets.
    pub(super) fn citation(&mut self, id: &str) -> Span {
        let id = visible_line(id);
        let found = self.evidence.and_then(|evidence| {
            let id = sources::listed_as(evidence, &id)?;
            Some((sources::link(evidence, &id), id))
        });
        let Some((url, id)) = found else { return Span::Cite { id, url: None, listed: false } };
        self.cited.insert(id.clone());
        Span::Cite { id, url, listed: true }
    }

    /// A filing of the company, where it can be read.
    pub(super) fn filing(&self, accession: &str) -> Option<Link> {
        sources::filing(self.evidence?, accession)
    }

    /// What was cited and is known, each with its filing.
    pub(super) fn sources(&self) -> Vec<Block> {
        let Some(evidence) = self.evidence else { return Vec::new() };
        sources::listed(evidence, &self.cited)
    }

    /// What the marks mean.
    pub(super) fn marks(&self) -> Vec<Block> {
        if self.notes.is_empty() {
            return Vec::new();
        }
        let items = (1..).zip(&self.notes).map(|(number, note)| {
            let mut words = vec![Span::Mark { number }];
            words.push(Span::text(&format!(" {note}")));
            words
        });
        vec![
            Block::heading(1, "Marks"),
            Block::paragraph(
                "Numbers and citations in the words above that the evidence does not carry.",
            ),
            Block::List { numbered: false, items: items.collect() },
        ]
    }

    /// `[F0:Revenue:FY2025; F0:Revenue:FY2024]` as two citations; other brackets are words.
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
                        spans.push(Span::text(&std::mem::take(&mut plain)));
                    }
                    for (at, id) in ids.iter().enumerate() {
                        if at > 0 {
                            spans.push(Span::text(" "));
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
            spans.push(Span::text(&plain));
        }
        spans
    }
}
