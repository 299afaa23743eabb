//! The form in which a sheet stands in files.
//!
//! Only what was filed is written, as it was filed; everything that follows from it is computed
//! again when it is read. Filings, tags and spans are written once and referred to by position. One sheet
//! has one spelling, so its hash names it.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::cik::Cik;
use super::companyfacts::{Form, usable};
use super::data_check::DataCheck;
use super::day::Day;
use super::error::{EvidenceError, within};
use super::fact::{Fact, FactId, Filed, Restated, Source};
use super::metrics::{Kind, metric};
use super::period::Period;
use super::pick::{MAX_CANDIDATES, is_currency};
use super::sheet::{Foundation, Sheet};
use super::splits::{self, Split};
use super::submissions::Accession;
use super::text::cleaned;
use crate::Sha256Hex;

const WHAT: &str = "fact sheet";
/// Names the form and the rules by which a sheet is computed from it. A sheet of other rules cannot
/// be read, because it would come out different from the one that was written.
const FORMAT: &str = "moothall-f0/1";
const MAX_BYTES: usize = 4 << 20;
const MAX_YEARS: usize = 20;
/// Fifty metrics in ten years of seven periods are 3,500 facts.
const MAX_FILINGS: usize = 5_000;
const MAX_SPANS: usize = 5_000;
const MAX_SPLITS: usize = 20;
const MAX_NAME_CHARS: usize = 150;

impl Sheet {
    /// The bytes of the sheet, for a file.
    pub fn to_json(&self) -> Vec<u8> {
        // Strings, numbers and lists only: there is nothing that could not be written.
        serde_json::to_vec(&WrittenSheet::of(self)).unwrap_or_default()
    }

    /// Reads what [`Sheet::to_json`] wrote. Everything is checked like what comes from outside, and
    /// another spelling of the same sheet is refused: its hash would not be the sheet's name.
    pub fn from_json(bytes: &[u8]) -> Result<Self, EvidenceError> {
        within(MAX_BYTES, WHAT, bytes)?;
        let sheet: Self = serde_json::from_slice(bytes)
            .map_err(|source| EvidenceError::Json { what: WHAT, source })?;
        if sheet.to_json() != bytes {
            let reason = "it is not written as it would be".to_owned();
            return Err(EvidenceError::Invalid { what: WHAT, reason });
        }
        Ok(sheet)
    }

    /// The name of this sheet: the SHA-256 of its written form.
    pub fn hash(&self) -> Sha256Hex {
        Sha256Hex::of(&self.to_json())
    }
}

impl Serialize for Sheet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenSheet::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sheet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let foundation = WrittenSheet::deserialize(deserializer)?.read();
        foundation.map(Self::complete).map_err(|wrong| de::Error::custom(wrong.0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSheet {
    format: String,
    entity: String,
    cik: Cik,
    currency: String,
    as_of: Day,
    /// Pairs: a map with numbers for keys cannot be read inside of a tagged enum.
    fiscal_year_ends: Vec<(i32, Day)>,
    filings: Vec<(String, String, Day)>,
    concepts: Vec<String>,
    spans: Vec<(Option<Day>, Day)>,
    facts: BTreeMap<String, BTreeMap<Period, WrittenFact>>,
    /// The first value and its day, of facts that were changed.
    restated: BTreeMap<FactId, (Decimal, Day)>,
    splits: Vec<(u32, Day)>,
    candidates: Vec<(FactId, String, Decimal, Decimal)>,
    unreadable_rows: usize,
}

/// Value, position of the tag, of the filing, of the span.
type WrittenFact = (Decimal, usize, usize, usize);

/// What is wrong with a sheet.
struct Wrong(&'static str);

impl WrittenSheet {
    fn of(sheet: &Sheet) -> Self {
        let mut filings = Table::default();
        let mut concepts = Table::default();
        let mut spans = Table::default();
        let mut facts: BTreeMap<String, BTreeMap<Period, WrittenFact>> = BTreeMap::new();
        let mut restated = BTreeMap::new();
        for (id, fact) in &sheet.facts {
            let Some(filed) = fact.filed() else { continue };
            let as_filed = filed.split.as_ref().map_or(fact.value, |split| split.as_filed);
            let written = (
                as_filed,
                concepts.position(filed.concept.clone()),
                filings.position((filed.accession.clone(), filed.form.clone(), filed.filed)),
                spans.position((filed.start, filed.end)),
            );
            facts.entry(id.metric.clone()).or_default().insert(id.period, written);
            if let Some(first) = &filed.restated_from {
                restated.insert(id.clone(), (first.value, first.filed));
            }
        }
        let mut written = Self {
            format: FORMAT.to_owned(),
            entity: sheet.entity.clone(),
            cik: sheet.cik,
            currency: sheet.currency.clone(),
            as_of: sheet.as_of,
            fiscal_year_ends: sheet
                .fiscal_year_ends
                .iter()
                .map(|(&year, &end)| (year, end))
                .collect(),
            filings: filings.rows,
            concepts: concepts.rows,
            spans: spans.rows,
            facts,
            restated,
            splits: Vec::new(),
            candidates: Vec::new(),
            unreadable_rows: 0,
        };
        for check in &sheet.checks {
            match check {
                DataCheck::Candidates { id, concept, value, used } => {
                    written.candidates.push((id.clone(), concept.clone(), *value, *used));
                }
                DataCheck::Split { factor, first_filed } => {
                    written.splits.push((*factor, *first_filed));
                }
                DataCheck::UnreadableRows { count } => written.unreadable_rows = *count,
                // These follow from the facts.
                DataCheck::Identity { .. } | DataCheck::Restated { .. } => {}
            }
        }
        written
    }

    fn read(mut self) -> Result<Foundation, Wrong> {
        self.check_frame()?;
        let mut facts = BTreeMap::new();
        let mut restated = std::mem::take(&mut self.restated);
        for (name, periods) in std::mem::take(&mut self.facts) {
            for (period, written) in periods {
                let id = FactId::new(name.as_str(), period);
                let first = restated.remove(&id);
                let fact = self.read_fact(&id, written, first)?;
                facts.insert(id, fact);
            }
        }
        if !restated.is_empty() {
            return Err(Wrong("a restatement has no fact"));
        }
        let splits: Vec<Split> = self
            .splits
            .iter()
            .map(|&(factor, first_filed)| Split { first_filed, factor })
            .collect();
        if !splits::are_sound(&splits) {
            return Err(Wrong("a split is not one of shares"));
        }
        let candidates = self.read_candidates(&facts)?;
        Ok(Foundation {
            entity: self.entity,
            cik: self.cik,
            currency: self.currency,
            as_of: self.as_of,
            fiscal_year_ends: self.fiscal_year_ends.into_iter().collect(),
            facts,
            splits,
            candidates,
            unreadable_rows: self.unreadable_rows,
        })
    }

    /// Everything but the facts.
    fn check_frame(&self) -> Result<(), Wrong> {
        let too_many = self.fiscal_year_ends.len() > MAX_YEARS
            || self.filings.len() > MAX_FILINGS
            || self.spans.len() > MAX_SPANS
            || self.candidates.len() > MAX_CANDIDATES
            || self.splits.len() > MAX_SPLITS;
        if self.format != FORMAT {
            return Err(Wrong("it was made by other rules"));
        }
        if too_many {
            return Err(Wrong("it is too long"));
        }
        if self.fiscal_year_ends.is_empty() {
            return Err(Wrong("it has no fiscal year"));
        }
        let ends = &self.fiscal_year_ends;
        let in_order = ends.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1);
        if !in_order || !ends.iter().all(|(year, end)| year.abs_diff(end.year()) <= 2) {
            return Err(Wrong("a fiscal year has an end that it cannot have"));
        }
        if !is_currency(&self.currency) {
            return Err(Wrong("the currency is not one"));
        }
        if self.entity != cleaned(&self.entity, MAX_NAME_CHARS) {
            return Err(Wrong("the name is not one line of text"));
        }
        let filed = |(accession, form, filed): &(String, String, Day)| {
            Accession::parse(accession).is_some()
                && Form::parse(form).is_some()
                && *filed <= self.as_of
        };
        if !self.filings.iter().all(filed) {
            return Err(Wrong("a filing is not a periodic report up to its day"));
        }
        let span = |(start, end): &(Option<Day>, Day)| start.is_none_or(|start| start <= *end);
        if !self.spans.iter().all(span) {
            return Err(Wrong("a span ends before it starts"));
        }
        Ok(())
    }

    fn read_fact(
        &self,
        id: &FactId,
        (value, concept, filing, span): WrittenFact,
        first: Option<(Decimal, Day)>,
    ) -> Result<Fact, Wrong> {
        let metric = metric(&id.metric).ok_or(Wrong("a metric is not known"))?;
        let concept = self.concepts.get(concept).ok_or(Wrong("a tag is missing"))?;
        if !metric.concepts.contains(&concept.as_str()) {
            return Err(Wrong("a tag does not mean its metric"));
        }
        let (accession, form, filed) =
            self.filings.get(filing).ok_or(Wrong("a filing is missing"))?;
        let &(start, end) = self.spans.get(span).ok_or(Wrong("a span is missing"))?;
        if start.is_some() != (metric.kind == Kind::Flow) {
            return Err(Wrong("a balance has a span, or a flow has none"));
        }
        let years = &self.fiscal_year_ends;
        let year = id.period.fiscal_year();
        let known = years.first().is_some_and(|(first, _)| year >= first - 1)
            && years.last().is_some_and(|(last, _)| year <= last + 1);
        if !known {
            return Err(Wrong("a period is outside the fiscal years"));
        }
        let restated_from = match first {
            Some((value, filed)) => Some(Restated { value: read_value(value)?, filed }),
            None => None,
        };
        let filed = Filed {
            concept: concept.clone(),
            accession: accession.clone(),
            form: form.clone(),
            filed: *filed,
            start,
            end,
            restated_from,
            split: None,
        };
        let source = Source::Filed(Box::new(filed));
        Ok(Fact { value: read_value(value)?, unit: metric.unit, source })
    }

    fn read_candidates(&self, facts: &BTreeMap<FactId, Fact>) -> Result<Vec<DataCheck>, Wrong> {
        let read = |(id, concept, value, used): &(FactId, String, Decimal, Decimal)| {
            let sound = facts.contains_key(id)
                && metric(&id.metric)
                    .is_some_and(|metric| metric.concepts.contains(&concept.as_str()));
            sound
                .then(|| DataCheck::Candidates {
                    id: id.clone(),
                    concept: concept.clone(),
                    value: *value,
                    used: *used,
                })
                .ok_or(Wrong("a tag that was passed over belongs to no fact"))
        };
        self.candidates.iter().map(read).collect()
    }
}

fn read_value(value: Decimal) -> Result<Decimal, Wrong> {
    usable(value).ok_or(Wrong("a value is larger or finer than values are"))
}

/// Rows without repetition, in the order in which they came.
struct Table<T> {
    rows: Vec<T>,
    positions: BTreeMap<T, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), positions: BTreeMap::new() }
    }
}

impl<T: Ord + Clone> Table<T> {
    fn position(&mut self, row: T) -> usize {
        if let Some(&position) = self.positions.get(&row) {
            return position;
        }
        let position = self.rows.len();
        self.positions.insert(row.clone(), position);
        self.rows.push(row);
        position
    }
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
