//! The company facts document of the SEC: every tagged value that a filer ever reported.
//!
//! `fy` and `fp` of a row belong to the filing and not to the value: two thirds of the annual rows
//! carry another year than their own. `frame` is missing on a third of the rows or more. So a row
//! is taken for what its dates say, and `fy` is kept with the filing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::cik::Cik;
use super::day::Day;
use super::error::{EvidenceError, within};
use super::submissions::Accession;
use super::text::cleaned;

const WHAT: &str = "company facts document";
/// Seen: up to 4 MB; some banks have more.
const MAX_BYTES: usize = 64 << 20;
const MAX_NAME_CHARS: usize = 150;
/// No company has this much of any currency, and sums of such values stay far from the limits of
/// the arithmetic.
const LARGEST_VALUE: i64 = 1_000_000_000_000_000_000;
/// More digits behind the point than any tag has.
const MOST_DECIMALS: u32 = 10;

/// A company facts document, read and checked row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanyFacts {
    pub(super) cik: Cik,
    pub(super) entity: String,
    pub(super) filings: Vec<FactsFiling>,
    /// Rows by unit (`USD`, `USD/shares`), by tag with its taxonomy (`us-gaap:Revenues`).
    pub(super) concepts: BTreeMap<String, BTreeMap<String, Vec<Row>>>,
    unreadable_rows: usize,
}

/// A filing that rows are from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FactsFiling {
    pub(super) filed: Day,
    pub(super) accession: String,
    pub(super) form: Form,
    /// The filer's label of the fiscal year in which it filed.
    pub(super) fiscal_year: Option<i32>,
}

/// One value of a filing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: Option<Day>,
    pub(super) end: Day,
    pub(super) value: Decimal,
    /// The position of its filing.
    pub(super) filing: usize,
}

/// A periodic report, original or amended. Values of other forms (proxy statements) are not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form(&'static str);

const ANNUAL_FORMS: &[&str] =
    &["10-K", "10-K/A", "10-KT", "10-KT/A", "20-F", "20-F/A", "40-F", "40-F/A"];
const INTERIM_FORMS: &[&str] = &["10-Q", "10-Q/A", "6-K", "6-K/A"];

impl Form {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut known = ANNUAL_FORMS.iter().chain(INTERIM_FORMS);
        known.find(|form| **form == text).map(|form| Self(form))
    }

    pub(super) fn is_annual(self) -> bool {
        ANNUAL_FORMS.contains(&self.0)
    }

    pub(super) fn as_str(self) -> &'static str {
        self.0
    }
}

impl CompanyFacts {
    /// Reads a document. A row of a periodic report that cannot be read is left out and counted:
    /// one strange row must not hide the other ten thousand.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvidenceError> {
        within(MAX_BYTES, WHAT, bytes)?;
        let document: Document<'_> = serde_json::from_slice(bytes)
            .map_err(|source| EvidenceError::Json { what: WHAT, source })?;
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

    /// The filer.
    pub fn cik(&self) -> Cik {
        self.cik
    }

    /// The filer's name.
    pub fn entity(&self) -> &str {
        &self.entity
    }

    /// How many rows of periodic reports could not be read.
    pub fn unreadable_rows(&self) -> usize {
        self.unreadable_rows
    }

    /// The same document as it was on a day: rows are only ever added, so what was filed later is
    /// left out.
    pub(super) fn rows_until<'a>(
        &'a self,
        rows: &'a [Row],
        as_of: Day,
    ) -> impl Iterator<Item = (&'a Row, &'a FactsFiling)> {
        let with_filing = rows.iter().filter_map(|row| Some((row, self.filings.get(row.filing)?)));
        with_filing.filter(move |(_, filing)| filing.filed <= as_of)
    }

    /// All rows up to a day with their units.
    pub(super) fn all_rows_until(
        &self,
        as_of: Day,
    ) -> impl Iterator<Item = (&str, &Row, &FactsFiling)> {
        self.concepts.values().flatten().flat_map(move |(unit, rows)| {
            self.rows_until(rows, as_of).map(move |(row, filing)| (unit.as_str(), row, filing))
        })
    }

    fn read_units(
        &mut self,
        units: BTreeMap<Cow<'_, str>, Vec<WrittenRow<'_>>>,
        known_filings: &mut BTreeMap<FactsFiling, usize>,
    ) -> BTreeMap<String, Vec<Row>> {
        let mut read = BTreeMap::new();
        for (unit, rows) in units {
            let mut kept = Vec::new();
            for row in rows {
                let Some(form) = Form::parse(&row.form) else { continue };
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
struct Document<'a> {
    cik: Cik,
    #[serde(borrow)]
    entity_name: Cow<'a, str>,
    #[serde(borrow)]
    facts: BTreeMap<Cow<'a, str>, BTreeMap<Cow<'a, str>, Concept<'a>>>,
}

#[derive(Deserialize)]
struct Concept<'a> {
    #[serde(borrow, default)]
    units: BTreeMap<Cow<'a, str>, Vec<WrittenRow<'a>>>,
}

#[derive(Deserialize)]
struct WrittenRow<'a> {
    #[serde(borrow)]
    start: Option<Cow<'a, str>>,
    #[serde(borrow)]
    end: Cow<'a, str>,
    /// The digits as they were written: a float would change some of them.
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

impl WrittenRow<'_> {
    fn read(
        &self,
        form: Form,
        known_filings: &mut BTreeMap<FactsFiling, usize>,
        filings: &mut Vec<FactsFiling>,
    ) -> Option<Row> {
        let start = match &self.start {
            Some(start) => Some(Day::parse(start)?),
            None => None,
        };
        let end = Day::parse(&self.end)?;
        if start.is_some_and(|start| start > end) {
            return None;
        }
        let value = decimal(self.val.get())?;
        let filing = FactsFiling {
            filed: Day::parse(&self.filed)?,
            accession: Accession::parse(&self.accn)?.to_string(),
            form,
            fiscal_year: self.fy,
        };
        let filing = *known_filings.entry(filing.clone()).or_insert_with(|| {
            filings.push(filing);
            filings.len() - 1
        });
        Some(Row { start, end, value, filing })
    }
}

/// A number as JSON writes it: `416161000000`, `7.46`, `1e-05`.
fn decimal(written: &str) -> Option<Decimal> {
    let value = if written.contains(['e', 'E']) {
        Decimal::from_scientific(written).ok()?
    } else {
        Decimal::from_str_exact(written).ok()?
    };
    usable(value)
}

/// A value in the one spelling it has in files, if it is one that a filing can have.
pub(super) fn usable(value: Decimal) -> Option<Decimal> {
    let value = value.normalize();
    let usable = value.abs() <= Decimal::from(LARGEST_VALUE) && value.scale() <= MOST_DECIMALS;
    usable.then_some(value)
}

#[cfg(test)]
#[path = "companyfacts_tests.rs"]
mod tests;
