//! One sentence and everything that it cites.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::candidates::{Candidate, CandidateUnit, Formula, of_facts};
use super::citations::{Cited, citations};
use super::known::{FactRef, Index};
use super::passages::CitedText;
use super::verdict::ClaimVerdict;
use crate::evidence::{FactId, FilingEvent, Period, Source};

/// More facts in one sentence are not looked up: what they support together grows with their
/// square, and nobody can read such a sentence.
pub(super) const MAX_CITATIONS: usize = 24;

/// A citation that does not count, and why.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) printed: String,
    pub(super) verdict: ClaimVerdict,
    pub(super) detail: String,
}

/// What a sentence cites, resolved.
#[derive(Debug, Default)]
pub(super) struct Context<'a> {
    /// The cited facts, each once.
    pub(super) facts: Vec<FactRef<'a>>,
    /// The facts behind derived ones.
    pub(super) behind: Vec<FactRef<'a>>,
    /// What a number may be by those; what lies behind comes last.
    pub(super) candidates: Vec<Candidate<'a>>,
    /// How many candidates come from cited facts and not from those behind them.
    pub(super) cited_candidates: usize,
    pub(super) events: Vec<&'a FilingEvent>,
    pub(super) passages: Vec<CitedText<'a>>,
    pub(super) headlines: Vec<CitedText<'a>>,
    pub(super) is_assumed: bool,
    pub(super) refused: Vec<Refused>,
}

impl<'a> Context<'a> {
    pub(super) fn of(sentence: &str, index: &Index<'a>) -> Self {
        let mut context = Self::default();
        let found = citations(sentence);
        if let Some(beyond) = found.get(MAX_CITATIONS) {
            context.refused.push(Refused {
                printed: beyond.text.clone(),
                verdict: ClaimVerdict::Unchecked,
                detail: format!("more than {MAX_CITATIONS} citations in one sentence"),
            });
        }
        for citation in found.into_iter().take(MAX_CITATIONS) {
            if let Err(why) = context.resolve(&citation.cited, index) {
                context.refused.push(Refused {
                    printed: format!("[{}]", citation.text),
                    verdict: ClaimVerdict::BadCitation,
                    detail: why.to_owned(),
                });
            }
        }
        context.find_candidates(index, speaks_of_a_mean(sentence));
        context
    }

    pub(super) fn has_bad_citation(&self) -> bool {
        self.refused.iter().any(|refused| refused.verdict == ClaimVerdict::BadCitation)
    }

    /// The periods other than its own in which the sentence knows the metric of a fact.
    pub(super) fn other_periods(&self, id: &FactId) -> Vec<Period> {
        self.facts
            .iter()
            .chain(&self.behind)
            .filter(|fact| fact.id.metric == id.metric && fact.id.period != id.period)
            .map(|fact| fact.id.period)
            .collect()
    }

    fn resolve(&mut self, cited: &Cited, index: &Index<'a>) -> Result<(), &'static str> {
        match cited {
            Cited::Fact { metric, period } => {
                let sheet = index.sheet().ok_or("there is no fact sheet")?;
                let fact = sheet.cited(metric, period).ok_or("it is not in the fact sheet")?;
                if self.facts.iter().all(|known| known.id != fact.id) {
                    self.facts.push(fact);
                }
            }
            Cited::Event { accession } => {
                let event = index.event(accession).ok_or("there is no such filing event")?;
                self.events.push(event);
            }
            Cited::Passage { accession, item, paragraph } => {
                let text = index.passage(accession, item, *paragraph);
                let text = text.ok_or("there is no such passage")?;
                self.passages.push(CitedText::new(text));
            }
            Cited::Document { document, passage } => {
                let text = index.document(document, *passage);
                let text = text.ok_or("there is no such passage in the user's documents")?;
                self.passages.push(CitedText::new(text));
            }
            Cited::Headline { number } => {
                let text = index.headline(*number).ok_or("there is no such headline")?;
                self.headlines.push(CitedText::new(text));
            }
            Cited::Assumption => self.is_assumed = true,
            Cited::Malformed { why } => return Err(why),
        }
        Ok(())
    }

    /// The facts behind derived ones count as cited, but only among themselves: mixed with all the
    /// others they would support too much.
    fn find_candidates(&mut self, index: &Index<'a>, with_means: bool) {
        let Some(sheet) = index.sheet() else { return };
        let mut seen = BTreeSet::new();
        for fact in &self.facts {
            let Source::Derived { inputs, .. } = &fact.fact.source else { continue };
            for input in inputs.iter().filter_map(|id| sheet.fact(id)) {
                if self.behind.len() < MAX_CITATIONS && seen.insert(input.id) {
                    self.behind.push(input);
                }
            }
        }
        let counts =
            |known: &Candidate<'_>| with_means || !matches!(known.formula, Formula::Mean { .. });
        self.candidates = of_facts(&self.facts).into_iter().filter(counts).collect();
        self.cited_candidates = self.candidates.len();
        // A growth that is cited itself is not computed again with the tolerance of arithmetic.
        let is_cited = |known: &Candidate<'_>| {
            let cited = &self.candidates[..self.cited_candidates];
            let is_same = |other: &Candidate<'_>| {
                let distance = known.value.checked_sub(other.value);
                other.unit == known.unit && distance.is_some_and(|d| d.abs() < Decimal::new(1, 9))
            };
            known.unit == CandidateUnit::Ratio && known.is_computed() && cited.iter().any(is_same)
        };
        let behind: Vec<Candidate<'a>> = of_facts(&self.behind)
            .into_iter()
            .filter(|known| counts(known) && !is_cited(known))
            .collect();
        self.candidates.extend(behind);
    }
}

fn speaks_of_a_mean(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    lower.contains("averag") || lower.contains("mean ")
}
