//! The file format of a sheet.
//!
//! Only filed facts are stored, as filed; everything derived from them is recomputed on reading.
//! Filings, tags and spans are stored once and referred to by index. Each sheet has exactly one
//! serialization, so its hash identifies it.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::cik::Cik;
use super::companyfacts::{ReportForm, usable};
use super::data_check::DataCheck;
use super::day::CalendarDay;
use super::error::{EvidenceError, check_size};
use super::fact::{Fact, FactId, FactSource, FilingSource, OriginalValue};
use super::fact_selection::{MAX_CANDIDATES, is_currency};
use super::metrics::{MetricKind, metric};
use super::period::FiscalPeriod;
use super::sanitize::cleaned;
use super::sheet::{FactSheet, SheetInput};
use super::splits::{self, ShareSplit};
use super::submissions::AccessionNumber;
use crate::Sha256Hex;

const DOCUMENT_KIND: &str = "fact sheet";
/// Identifies the format and the rules for deriving a sheet from it. A sheet with other rules is
/// rejected, because deriving it again would give a different result.
const FORMAT: &str = "moothall-f0/1";
const MAX_BYTES: usize = 4 << 20;
const MAX_YEARS: usize = 20;
/// Fifty metrics in ten years of seven periods are 3,500 facts.
const MAX_FILINGS: usize = 5_000;
const MAX_SPANS: usize = 5_000;
const MAX_SPLITS: usize = 20;
const MAX_NAME_CHARS: usize = 150;

impl FactSheet {
    /// Serializes the sheet for a file.
    pub fn to_json(&self) -> Vec<u8> {
        // Serializing strings, numbers and lists cannot fail.
        serde_json::to_vec(&StoredSheet::of(self)).unwrap_or_default()
    }

    /// Parses the output of [`FactSheet::to_json`]. The input is validated as untrusted data, and any
    /// other serialization of the same sheet is rejected, because its hash would not match.
    pub fn from_json(bytes: &[u8]) -> Result<Self, EvidenceError> {
        check_size(MAX_BYTES, DOCUMENT_KIND, bytes)?;
        let sheet: Self = serde_json::from_slice(bytes)
            .map_err(|source| EvidenceError::Json { what: DOCUMENT_KIND, source })?;
        if sheet.to_json() != bytes {
            let reason = "not in canonical form".to_owned();
            return Err(EvidenceError::Invalid { what: DOCUMENT_KIND, reason });
        }
        Ok(sheet)
    }

    /// The id of this sheet: the SHA-256 of its serialized form.
    pub fn hash(&self) -> Sha256Hex {
        Sha256Hex::of(&self.to_json())
    }
}

impl Serialize for FactSheet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredSheet::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FactSheet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let foundation = StoredSheet::deserialize(deserializer)?.read();
        foundation.map(Self::complete).map_err(|wrong| de::Error::custom(wrong.0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSheet {
    format: String,
    entity: String,
    cik: Cik,
    currency: String,
    as_of: CalendarDay,
    /// Pairs, because a map with integer keys cannot be deserialized inside a tagged enum.
    fiscal_year_ends: Vec<(i32, CalendarDay)>,
    filings: Vec<(String, String, CalendarDay)>,
    concepts: Vec<String>,
    spans: Vec<(Option<CalendarDay>, CalendarDay)>,
    facts: BTreeMap<String, BTreeMap<FiscalPeriod, WrittenFact>>,
    /// The first value and its filing date, for restated facts.
    restated: BTreeMap<FactId, (Decimal, CalendarDay)>,
    splits: Vec<(u32, CalendarDay)>,
    candidates: Vec<(FactId, String, Decimal, Decimal)>,
    unreadable_rows: usize,
}

/// Value, and the indexes of its tag, filing and span.
type WrittenFact = (Decimal, usize, usize, usize);

/// A validation error of a stored sheet.
struct SheetFormatError(&'static str);

impl StoredSheet {
    fn of(sheet: &FactSheet) -> Self {
        let mut filings = InternTable::default();
        let mut concepts = InternTable::default();
        let mut spans = InternTable::default();
        let mut facts: BTreeMap<String, BTreeMap<FiscalPeriod, WrittenFact>> = BTreeMap::new();
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
                // These are derived from the facts.
                DataCheck::Identity { .. } | DataCheck::Restated { .. } => {}
            }
        }
        written
    }

    fn read(mut self) -> Result<SheetInput, SheetFormatError> {
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
            return Err(SheetFormatError("a restatement refers to a missing fact"));
        }
        let splits: Vec<ShareSplit> = self
            .splits
            .iter()
            .map(|&(factor, first_filed)| ShareSplit { first_filed, factor })
            .collect();
        if !splits::are_sound(&splits) {
            return Err(SheetFormatError("a split has an invalid ratio"));
        }
        let candidates = self.read_candidates(&facts)?;
        Ok(SheetInput {
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

    /// Validates everything except the facts.
    fn check_frame(&self) -> Result<(), SheetFormatError> {
        let too_many = self.fiscal_year_ends.len() > MAX_YEARS
            || self.filings.len() > MAX_FILINGS
            || self.spans.len() > MAX_SPANS
            || self.candidates.len() > MAX_CANDIDATES
            || self.splits.len() > MAX_SPLITS;
        if self.format != FORMAT {
            return Err(SheetFormatError("unsupported format version"));
        }
        if too_many {
            return Err(SheetFormatError("too many entries"));
        }
        if self.fiscal_year_ends.is_empty() {
            return Err(SheetFormatError("no fiscal year"));
        }
        let ends = &self.fiscal_year_ends;
        let in_order = ends.is_sorted_by(|one, other| one.0 < other.0 && one.1 < other.1);
        if !in_order || !ends.iter().all(|(year, end)| year.abs_diff(end.year()) <= 2) {
            return Err(SheetFormatError("a fiscal year has an invalid end date"));
        }
        if !is_currency(&self.currency) {
            return Err(SheetFormatError("invalid currency code"));
        }
        if self.entity != cleaned(&self.entity, MAX_NAME_CHARS) {
            return Err(SheetFormatError(
                "the company name has hidden characters, extra spaces or more than 150 characters",
            ));
        }
        let filed = |(accession, form, filed): &(String, String, CalendarDay)| {
            AccessionNumber::parse(accession).is_some()
                && ReportForm::parse(form).is_some()
                && *filed <= self.as_of
        };
        if !self.filings.iter().all(filed) {
            return Err(SheetFormatError(
                "a filing is not a periodic report filed by the as-of date",
            ));
        }
        let span = |(start, end): &(Option<CalendarDay>, CalendarDay)| {
            start.is_none_or(|start| start <= *end)
        };
        if !self.spans.iter().all(span) {
            return Err(SheetFormatError("a span ends before it starts"));
        }
        Ok(())
    }

    fn read_fact(
        &self,
        id: &FactId,
        (value, concept, filing, span): WrittenFact,
        first: Option<(Decimal, CalendarDay)>,
    ) -> Result<Fact, SheetFormatError> {
        let metric = metric(&id.metric).ok_or(SheetFormatError("unknown metric"))?;
        let concept = self.concepts.get(concept).ok_or(SheetFormatError("missing tag"))?;
        if !metric.concepts.contains(&concept.as_str()) {
            return Err(SheetFormatError("a tag does not belong to its metric"));
        }
        let (accession, form, filed) =
            self.filings.get(filing).ok_or(SheetFormatError("missing filing"))?;
        let &(start, end) = self.spans.get(span).ok_or(SheetFormatError("missing span"))?;
        if start.is_some() != (metric.kind == MetricKind::Flow) {
            return Err(SheetFormatError("a balance has a start date or a flow has none"));
        }
        let years = &self.fiscal_year_ends;
        let year = id.period.fiscal_year();
        let known = years.first().is_some_and(|(first, _)| year >= first - 1)
            && years.last().is_some_and(|(last, _)| year <= last + 1);
        if !known {
            return Err(SheetFormatError("a period is outside the fiscal years"));
        }
        let restated_from = match first {
            Some((value, filed)) => Some(OriginalValue { value: read_value(value)?, filed }),
            None => None,
        };
        let filed = FilingSource {
            concept: concept.clone(),
            accession: accession.clone(),
            form: form.clone(),
            filed: *filed,
            start,
            end,
            restated_from,
            split: None,
        };
        let source = FactSource::Filed(Box::new(filed));
        Ok(Fact { value: read_value(value)?, unit: metric.unit, source })
    }

    fn read_candidates(
        &self,
        facts: &BTreeMap<FactId, Fact>,
    ) -> Result<Vec<DataCheck>, SheetFormatError> {
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
                .ok_or(SheetFormatError("an unused tag belongs to no fact"))
        };
        self.candidates.iter().map(read).collect()
    }
}

fn read_value(value: Decimal) -> Result<Decimal, SheetFormatError> {
    usable(value).ok_or(SheetFormatError("a value is too large or has too many decimals"))
}

/// Distinct rows in insertion order.
struct InternTable<T> {
    rows: Vec<T>,
    positions: BTreeMap<T, usize>,
}

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), positions: BTreeMap::new() }
    }
}

impl<T: Ord + Clone> InternTable<T> {
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
#[path = "sheet_format_tests.rs"]
mod tests;
