//! Resolves everything that a sentence cites.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::candidates::{CandidateFormula, CandidateUnit, ValueCandidate, of_facts};
use super::citations::{CitationTarget, citations};
use super::cited_text::CitedText;
use super::fact_index::{EvidenceIndex, FactRef};
use super::verdict::ClaimVerdict;
use crate::evidence::{FactId, FactSource, FilingEvent, FiscalPeriod};

/// Limit on resolved citations per sentence: the number of combined candidates grows with its
/// square.
pub(crate) const MAX_CITATIONS: usize = 24;

/// A rejected citation and the reason.
#[derive(Debug)]
pub(crate) struct RejectedCitation {
    pub(crate) printed: String,
    pub(crate) verdict: ClaimVerdict,
    pub(crate) detail: String,
}

/// The resolved citations of a sentence.
#[derive(Debug, Default)]
pub(crate) struct SentenceContext<'a> {
    /// The cited facts, without duplicates.
    pub(crate) facts: Vec<FactRef<'a>>,
    /// The inputs of cited derived facts.
    pub(crate) behind: Vec<FactRef<'a>>,
    /// The values a number may have; those from `behind` come last.
    pub(crate) candidates: Vec<ValueCandidate<'a>>,
    /// How many candidates come from cited facts rather than from `behind`.
    pub(crate) cited_candidates: usize,
    pub(crate) events: Vec<&'a FilingEvent>,
    pub(crate) passages: Vec<CitedText<'a>>,
    pub(crate) headlines: Vec<CitedText<'a>>,
    pub(crate) is_assumed: bool,
    pub(crate) refused: Vec<RejectedCitation>,
}

impl<'a> SentenceContext<'a> {
    pub(crate) fn of(sentence: &str, index: &EvidenceIndex<'a>) -> Self {
        let mut context = Self::default();
        let found = citations(sentence);
        if let Some(beyond) = found.get(MAX_CITATIONS) {
            context.refused.push(RejectedCitation {
                printed: beyond.text.clone(),
                verdict: ClaimVerdict::Unchecked,
                detail: format!("more than {MAX_CITATIONS} citations in one sentence"),
            });
        }
        for citation in found.into_iter().take(MAX_CITATIONS) {
            if let Err(why) = context.resolve(&citation.cited, index) {
                context.refused.push(RejectedCitation {
                    printed: format!("[{}]", citation.text),
                    verdict: ClaimVerdict::BadCitation,
                    detail: why.to_owned(),
                });
            }
        }
        context.find_candidates(index, mentions_average(sentence));
        context
    }

    pub(crate) fn has_bad_citation(&self) -> bool {
        self.refused.iter().any(|refused| refused.verdict == ClaimVerdict::BadCitation)
    }

    /// The other periods for which the sentence cites the metric of a fact, directly or through a
    /// derived fact.
    pub(crate) fn other_periods(&self, id: &FactId) -> Vec<FiscalPeriod> {
        self.facts
            .iter()
            .chain(&self.behind)
            .filter(|fact| fact.id.metric == id.metric && fact.id.period != id.period)
            .map(|fact| fact.id.period)
            .collect()
    }

    fn resolve(
        &mut self,
        cited: &CitationTarget,
        index: &EvidenceIndex<'a>,
    ) -> Result<(), &'static str> {
        match cited {
            CitationTarget::Fact { metric, period } => {
                let sheet = index.sheet().ok_or("there is no fact sheet")?;
                let fact = sheet.cited(metric, period).ok_or("it is not in the fact sheet")?;
                if self.facts.iter().all(|known| known.id != fact.id) {
                    self.facts.push(fact);
                }
            }
            CitationTarget::Event { accession } => {
                let event = index.event(accession).ok_or("there is no such filing event")?;
                self.events.push(event);
            }
            CitationTarget::Passage { accession, item, paragraph } => {
                let text = index.passage(accession, item, *paragraph);
                let text = text.ok_or("there is no such passage")?;
                self.passages.push(CitedText::new(text));
            }
            CitationTarget::Document { document, passage } => {
                let text = index.document(document, *passage);
                let text = text.ok_or("there is no such passage in the user's documents")?;
                self.passages.push(CitedText::new(text));
            }
            CitationTarget::Headline { number } => {
                let text = index.headline(*number).ok_or("there is no such headline")?;
                self.headlines.push(CitedText::new(text));
            }
            CitationTarget::Calculation { id } => index.find_calculation(id)?,
            CitationTarget::Assumption => self.is_assumed = true,
            CitationTarget::Malformed { why } => return Err(why),
        }
        Ok(())
    }

    /// Inputs of derived facts count as cited, but are combined only with each other: combined with
    /// all cited facts they would support too many values.
    fn find_candidates(&mut self, index: &EvidenceIndex<'a>, with_means: bool) {
        let Some(sheet) = index.sheet() else { return };
        let mut seen = BTreeSet::new();
        for fact in &self.facts {
            let FactSource::Derived { inputs, .. } = &fact.fact.source else { continue };
            for input in inputs.iter().filter_map(|id| sheet.fact(id)) {
                if self.behind.len() < MAX_CITATIONS && seen.insert(input.id) {
                    self.behind.push(input);
                }
            }
        }
        let counts = |known: &ValueCandidate<'_>| {
            with_means || !matches!(known.formula, CandidateFormula::Mean { .. })
        };
        self.candidates = of_facts(&self.facts).into_iter().filter(counts).collect();
        self.cited_candidates = self.candidates.len();
        // Do not recompute a ratio that is cited directly: the computed one would get the wider
        // tolerance of arithmetic.
        let is_cited = |known: &ValueCandidate<'_>| {
            let cited = &self.candidates[..self.cited_candidates];
            let is_same = |other: &ValueCandidate<'_>| {
                let distance = known.value.checked_sub(other.value);
                other.unit == known.unit && distance.is_some_and(|d| d.abs() < Decimal::new(1, 9))
            };
            known.unit == CandidateUnit::Ratio && known.is_computed() && cited.iter().any(is_same)
        };
        let behind: Vec<ValueCandidate<'a>> = of_facts(&self.behind)
            .into_iter()
            .filter(|known| counts(known) && !is_cited(known))
            .collect();
        self.candidates.extend(behind);
    }
}

fn mentions_average(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    lower.contains("averag") || lower.contains("mean ")
}
