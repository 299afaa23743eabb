//! The fact sheet F0: filed facts, derived facts, gaps and data problems.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::cik::Cik;
use super::companyfacts::CompanyFacts;
use super::data_check::{DataCheck, DataGap};
use super::day::CalendarDay;
use super::error::EvidenceError;
use super::fact::{Fact, FactId};
use super::fact_selection::select_facts;
use super::fact_table::FactTable;
use super::fiscal_years::FiscalYears;
use super::period::FiscalPeriod;
use super::splits::{self, ShareSplit};
use super::{consistency, derive, quarters};

/// What a company filed up to a day, and what is derived from it. Immutable and identified by its
/// hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSheet {
    /// The filer's name.
    pub entity: String,
    /// The filer's CIK.
    pub cik: Cik,
    /// The currency of all amounts, such as `USD`.
    pub currency: String,
    /// Only filings up to this day were used.
    pub as_of: CalendarDay,
    /// All facts by id.
    pub facts: BTreeMap<FactId, Fact>,
    /// Missing facts that a reader would expect, and why they are missing.
    pub gaps: Vec<DataGap>,
    /// Inconsistencies, restatements and adjustments.
    pub checks: Vec<DataCheck>,
    /// The last day of each fiscal year, keyed by the filer's own label.
    pub fiscal_year_ends: BTreeMap<i32, CalendarDay>,
}

impl FactSheet {
    /// Builds the sheet from filings up to `as_of`.
    pub fn build(facts: &CompanyFacts, as_of: CalendarDay) -> Result<Self, EvidenceError> {
        let years = FiscalYears::read(facts, as_of);
        if years.newest().is_none() {
            return Err(EvidenceError::NoAnnualReport { as_of });
        }
        let picked = select_facts(facts, &years, as_of);
        Ok(Self::complete(SheetInput {
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

    /// Looks up a fact by id.
    pub fn fact(&self, id: &FactId) -> Option<&Fact> {
        self.facts.get(id)
    }

    /// The value of a metric in a period.
    pub fn value(&self, metric: &str, period: FiscalPeriod) -> Option<Decimal> {
        self.fact(&FactId::new(metric, period)).map(|fact| fact.value)
    }

    /// The label of the newest fiscal year closed by an annual report.
    pub fn newest_year(&self) -> Option<i32> {
        self.fiscal_year_ends.last_key_value().map(|(&year, _)| year)
    }

    /// Derives everything that follows from the filed facts.
    pub(crate) fn complete(foundation: SheetInput) -> Self {
        let SheetInput { mut facts, splits, fiscal_year_ends, candidates, .. } = foundation;
        splits::adjust(&mut facts, &splits);
        let mut table = FactTable::new(facts);
        quarters::add(&mut table);
        let mut gaps = derive::add(&mut table);
        gaps.extend(consistency::not_filed(&table, &fiscal_year_ends));

        let mut checks = candidates;
        checks.extend(splits.iter().map(|split| DataCheck::Split {
            factor: split.factor,
            first_filed: split.first_filed,
        }));
        checks.extend(consistency::identities(&table, &fiscal_year_ends));
        checks.extend(consistency::restatements(&table, &splits));
        if foundation.unreadable_rows > 0 {
            checks.push(DataCheck::UnreadableRows { count: foundation.unreadable_rows });
        }
        Self {
            entity: foundation.entity,
            cik: foundation.cik,
            currency: foundation.currency,
            as_of: foundation.as_of,
            facts: table.into_facts(),
            gaps: gaps.into_iter().collect(),
            checks,
            fiscal_year_ends,
        }
    }
}

/// The filed facts that a sheet is derived from. Only these are stored in files.
#[derive(Debug)]
pub(crate) struct SheetInput {
    pub(crate) entity: String,
    pub(crate) cik: Cik,
    pub(crate) currency: String,
    pub(crate) as_of: CalendarDay,
    pub(crate) fiscal_year_ends: BTreeMap<i32, CalendarDay>,
    pub(crate) facts: BTreeMap<FactId, Fact>,
    pub(crate) splits: Vec<ShareSplit>,
    pub(crate) candidates: Vec<DataCheck>,
    pub(crate) unreadable_rows: usize,
}

#[cfg(test)]
#[path = "sheet_tests.rs"]
mod tests;
