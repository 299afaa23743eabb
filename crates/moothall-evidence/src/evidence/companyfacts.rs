//! Reads the SEC's company facts document: every tagged value that a filer ever reported.
//!
//! `fy` and `fp` of a row belong to the filing, not to the value: two thirds of the annual rows
//! carry a year other than their own. `frame` is missing on a third of the rows or more. The period
//! of a row therefore comes from its dates, and `fy` is stored with the filing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::cik::Cik;
use super::day::CalendarDay;
use super::error::{EvidenceError, check_size};
use super::sanitize::cleaned;
use super::submissions::AccessionNumber;

const DOCUMENT_KIND: &str = "company facts document";
/// Observed: up to 4 MB; some banks have more.
const MAX_BYTES: usize = 64 << 20;
const MAX_NAME_CHARS: usize = 150;
/// No company has this much of any currency, and sums of such values stay far from the limits of
/// `Decimal`.
const LARGEST_VALUE: i64 = 1_000_000_000_000_000_000;
/// More decimals than any tag uses.
const MAX_DECIMALS: u32 = 10;

/// A parsed company facts document, checked row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyFacts {
    pub(crate) cik: Cik,
    pub(crate) entity: String,
    pub(crate) filings: Vec<FactsFiling>,
    /// Rows by tag with its taxonomy (`us-gaap:Revenues`), then by unit (`USD`, `USD/shares`).
    pub(crate) concepts: BTreeMap<String, BTreeMap<String, Vec<ReportedValue>>>,
    unreadable_rows: usize,
}

/// A filing that reported rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FactsFiling {
    pub(crate) filed: CalendarDay,
    pub(crate) accession: String,
    pub(crate) form: ReportForm,
    /// The fiscal year label that the filer gave the filing.
    pub(crate) fiscal_year: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportedValue {
    pub(crate) start: Option<CalendarDay>,
    pub(crate) end: CalendarDay,
    pub(crate) value: Decimal,
    /// Index of its filing.
    pub(crate) filing: usize,
}

/// A periodic report, original or amended. Values from other forms (proxy statements) are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReportForm(&'static str);

const ANNUAL_FORMS: &[&str] =
    &["10-K", "10-K/A", "10-KT", "10-KT/A", "20-F", "20-F/A", "40-F", "40-F/A"];
const INTERIM_FORMS: &[&str] = &["10-Q", "10-Q/A", "6-K", "6-K/A"];

impl ReportForm {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut known = ANNUAL_FORMS.iter().chain(INTERIM_FORMS);
        known.find(|form| **form == text).map(|form| Self(form))
    }

    pub(crate) fn is_annual(self) -> bool {
        ANNUAL_FORMS.contains(&self.0)
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.0
    }
}

impl CompanyFacts {
    /// Parses a document. An unreadable row of a periodic report is skipped and counted, so it
    /// does not make the other ten thousand unavailable.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvidenceError> {
        check_size(MAX_BYTES, DOCUMENT_KIND, bytes)?;
        let document: CompanyFactsJson<'_> = serde_json::from_slice(bytes)
            .map_err(|source| EvidenceError::Json { what: DOCUMENT_KIND, source })?;
        let mut facts = Self {
            cik: document.cik,
            entity: cleaned(&document.entity_name, MAX_NAME_CHARS),
            filings: Vec::new(),
            concepts: BTreeMap::new(),
            unreadable_rows: 0,
        };
        let mut known_filings = BTreeMap::new();
        for (taxonomy, concepts) in document.facts {
            for (name, concept) in concepts {
                let units = facts.read_units(concept.units, &mut known_filings);
                if !units.is_empty() {
                    facts.concepts.insert(format!("{taxonomy}:{name}"), units);
                }
            }
        }
        Ok(facts)
    }

    /// The filer's CIK.
    pub fn cik(&self) -> Cik {
        self.cik
    }

    /// The filer's name.
    pub fn entity(&self) -> &str {
        &self.entity
    }

    /// Number of rows of periodic reports that could not be read.
    pub fn unreadable_rows(&self) -> usize {
        self.unreadable_rows
    }

    /// The rows known on a given day. Rows are only ever added, so it is enough to skip those filed
    /// later.
    pub(crate) fn rows_until<'a>(
        &'a self,
        rows: &'a [ReportedValue],
        as_of: CalendarDay,
    ) -> impl Iterator<Item = (&'a ReportedValue, &'a FactsFiling)> {
        let with_filing = rows.iter().filter_map(|row| Some((row, self.filings.get(row.filing)?)));
        with_filing.filter(move |(_, filing)| filing.filed <= as_of)
    }

    /// All rows known on a given day, with their units.
    pub(crate) fn all_rows_until(
        &self,
        as_of: CalendarDay,
    ) -> impl Iterator<Item = (&str, &ReportedValue, &FactsFiling)> {
        self.concepts.values().flatten().flat_map(move |(unit, rows)| {
            self.rows_until(rows, as_of).map(move |(row, filing)| (unit.as_str(), row, filing))
        })
    }

    fn read_units(
        &mut self,
        units: BTreeMap<Cow<'_, str>, Vec<ReportedValueJson<'_>>>,
        known_filings: &mut BTreeMap<FactsFiling, usize>,
    ) -> BTreeMap<String, Vec<ReportedValue>> {
        let mut read = BTreeMap::new();
        for (unit, rows) in units {
            let mut kept = Vec::new();
            for row in rows {
                let Some(form) = ReportForm::parse(&row.form) else { continue };
                match row.read(form, known_filings, &mut self.filings) {
                    Some(row) => kept.push(row),
                    None => self.unreadable_rows += 1,
                }
            }
            if !kept.is_empty() {
                read.insert(unit.into_owned(), kept);
            }
        }
        read
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompanyFactsJson<'a> {
    cik: Cik,
    #[serde(borrow)]
    entity_name: Cow<'a, str>,
    #[serde(borrow)]
    facts: BTreeMap<Cow<'a, str>, BTreeMap<Cow<'a, str>, ConceptJson<'a>>>,
}

#[derive(Deserialize)]
struct ConceptJson<'a> {
    #[serde(borrow, default)]
    units: BTreeMap<Cow<'a, str>, Vec<ReportedValueJson<'a>>>,
}

#[derive(Deserialize)]
struct ReportedValueJson<'a> {
    #[serde(borrow)]
    start: Option<Cow<'a, str>>,
    #[serde(borrow)]
    end: Cow<'a, str>,
    /// The digits as written, because a float would change some of them.
    #[serde(borrow)]
    val: &'a RawValue,
    #[serde(borrow)]
    accn: Cow<'a, str>,
    fy: Option<i32>,
    #[serde(borrow)]
    form: Cow<'a, str>,
    #[serde(borrow)]
    filed: Cow<'a, str>,
}

impl ReportedValueJson<'_> {
    fn read(
        &self,
        form: ReportForm,
        known_filings: &mut BTreeMap<FactsFiling, usize>,
        filings: &mut Vec<FactsFiling>,
    ) -> Option<ReportedValue> {
        let start = match &self.start {
            Some(start) => Some(CalendarDay::parse(start)?),
            None => None,
        };
        let end = CalendarDay::parse(&self.end)?;
        if start.is_some_and(|start| start > end) {
            return None;
        }
        let value = decimal(self.val.get())?;
        let filing = FactsFiling {
            filed: CalendarDay::parse(&self.filed)?,
            accession: AccessionNumber::parse(&self.accn)?.to_string(),
            form,
            fiscal_year: self.fy,
        };
        let filing = *known_filings.entry(filing.clone()).or_insert_with(|| {
            filings.push(filing);
            filings.len() - 1
        });
        Some(ReportedValue { start, end, value, filing })
    }
}

/// Parses a JSON number: `416161000000`, `7.46`, `1e-05`.
fn decimal(written: &str) -> Option<Decimal> {
    let value = if written.contains(['e', 'E']) {
        Decimal::from_scientific(written).ok()?
    } else {
        Decimal::from_str_exact(written).ok()?
    };
    usable(value)
}

/// Normalizes a value for storage; `None` if no filing can have it.
pub(crate) fn usable(value: Decimal) -> Option<Decimal> {
    let value = value.normalize();
    let usable = value.abs() <= Decimal::from(LARGEST_VALUE) && value.scale() <= MAX_DECIMALS;
    usable.then_some(value)
}

#[cfg(test)]
#[path = "companyfacts_tests.rs"]
mod tests;
