//! The fact sheet F0: what was filed, what follows from it, and what to know about it.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::book::Book;
use super::cik::Cik;
use super::companyfacts::CompanyFacts;
use super::data_check::{DataCheck, Gap};
use super::day::Day;
use super::error::EvidenceError;
use super::fact::{Fact, FactId};
use super::fiscal::FiscalYears;
use super::period::Period;
use super::pick::pick;
use super::splits::{self, Split};
use super::{checks, derive, quarters};

/// What a company filed up to a day, and what follows from it; one immutable document, named by its
/// hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// The filer's name.
    pub entity: String,
    /// The filer's number.
    pub cik: Cik,
    /// The currency of all money, such as `USD`.
    pub currency: String,
    /// Only filings up to this day were used.
    pub as_of: Day,
    /// Every fact under its id.
    pub facts: BTreeMap<FactId, Fact>,
    /// What a reader would look for and not find, and why.
    pub gaps: Vec<Gap>,
    /// What does not fit together in the data, or was changed before.
    pub checks: Vec<DataCheck>,
    /// The last day of each fiscal year by the filer's own label.
    pub fiscal_year_ends: BTreeMap<i32, Day>,
}

impl Sheet {
    /// Builds the sheet from what was filed up to `as_of`.
    pub fn build(facts: &CompanyFacts, as_of: Day) -> Result<Self, EvidenceError> {
        let years = FiscalYears::read(facts, as_of);
        if years.newest().is_none() {
            return Err(EvidenceError::NoAnnualReport { as_of });
        }
        let picked = pick(facts, &years, as_of);
        Ok(Self::complete(Foundation {
            entity: facts.entity.clone(),
            cik: facts.cik,
            currency: picked.currency,
            as_of,
            fiscal_year_ends: years.ends().clone(),
            facts: picked.facts,
            splits: picked.splits,
            candidates: picked.candidates,
            unreadable_rows: facts.unreadable_rows(),
        }))
    }

    /// The fact with this id.
    pub fn fact(&self, id: &FactId) -> Option<&Fact> {
        self.facts.get(id)
    }

    /// The value of a metric in a period.
    pub fn value(&self, metric: &str, period: Period) -> Option<Decimal> {
        self.fact(&FactId::new(metric, period)).map(|fact| fact.value)
    }

    /// The label of the newest fiscal year that an annual report closed.
    pub fn newest_year(&self) -> Option<i32> {
        self.fiscal_year_ends.last_key_value().map(|(&year, _)| year)
    }

    /// Computes all that follows from what was filed.
    pub(super) fn complete(foundation: Foundation) -> Self {
        let Foundation { mut facts, splits, fiscal_year_ends, candidates, .. } = foundation;
        splits::adjust(&mut facts, &splits);
        let mut book = Book::new(facts);
        quarters::add(&mut book);
        let mut gaps = derive::add(&mut book);
        gaps.extend(checks::not_filed(&book, &fiscal_year_ends));

        let mut checks = candidates;
        checks.extend(splits.iter().map(|split| DataCheck::Split {
            factor: split.factor,
            first_filed: split.first_filed,
        }));
        checks.extend(checks::identities(&book, &fiscal_year_ends));
        checks.extend(checks::restatements(&book, &splits));
        if foundation.unreadable_rows > 0 {
            checks.push(DataCheck::UnreadableRows { count: foundation.unreadable_rows });
        }
        Self {
            entity: foundation.entity,
            cik: foundation.cik,
            currency: foundation.currency,
            as_of: foundation.as_of,
            facts: book.into_facts(),
            gaps: gaps.into_iter().collect(),
            checks,
            fiscal_year_ends,
        }
    }
}

/// What a sheet is computed from: what was filed, as it was filed. It is what a file holds of a
/// sheet.
#[derive(Debug)]
pub(super) struct Foundation {
    pub(super) entity: String,
    pub(super) cik: Cik,
    pub(super) currency: String,
    pub(super) as_of: Day,
    pub(super) fiscal_year_ends: BTreeMap<i32, Day>,
    pub(super) facts: BTreeMap<FactId, Fact>,
    pub(super) splits: Vec<Split>,
    pub(super) candidates: Vec<DataCheck>,
    pub(super) unreadable_rows: usize,
}

#[cfg(test)]
#[path = "sheet_tests.rs"]
mod tests;
