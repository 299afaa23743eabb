//! Selects one value for each metric and period from the rows of filings.
//!
//! The first tag in a metric's list that has a value is used, decided per period and not per
//! company because filers change their tags. Of several filings the newest is used, and the value
//! of the first one is recorded.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rust_decimal::Decimal;

use super::companyfacts::{CompanyFacts, FactsFiling, ReportedValue};
use super::data_check::DataCheck;
use super::day::CalendarDay;
use super::fact::{Fact, FactId, FactSource, FactUnit, FilingSource, OriginalValue};
use super::fiscal_years::{FiscalYears, YEARS_BACK, reported_periods};
use super::metrics::{METRICS, MetricDefinition, MetricKind};
use super::period::FiscalPeriod;
use super::splits::{self, ShareSplit, SplitVote, factor_between};

/// The selected values, as filed.
#[derive(Debug)]
pub(crate) struct FactSelection {
    pub(crate) currency: String,
    pub(crate) facts: BTreeMap<FactId, Fact>,
    pub(crate) splits: Vec<ShareSplit>,
    /// Equivalent tags with different values.
    pub(crate) candidates: Vec<DataCheck>,
}

/// Limit on recorded disagreements between tags; real filers have a few dozen.
pub(crate) const MAX_CANDIDATES: usize = 1_000;

/// Metrics whose restatements reveal a split.
const SPLIT_INDICATORS: &[&str] = &["SharesDiluted", "EPSDiluted"];

/// Selects values from everything filed up to `as_of`.
pub(crate) fn select_facts(
    facts: &CompanyFacts,
    years: &FiscalYears,
    as_of: CalendarDay,
) -> FactSelection {
    let currency = reporting_currency(facts, as_of);
    let mut picker = FactSelector {
        facts,
        years,
        as_of,
        oldest_year: years.newest().unwrap_or_default() - YEARS_BACK,
        reported: reported_periods(facts, years, as_of),
        picked: BTreeMap::new(),
        votes: Vec::new(),
        passed_over: Vec::new(),
    };
    for metric in METRICS {
        let unit = match metric.unit {
            FactUnit::PerShare => format!("{currency}/shares"),
            FactUnit::Shares => "shares".to_owned(),
            FactUnit::Money | FactUnit::Ratio | FactUnit::Multiple | FactUnit::Days => {
                currency.clone()
            }
        };
        for concept in metric.concepts {
            picker.pick(metric, concept, &unit);
        }
    }
    let splits = splits::splits(picker.votes);
    let candidates = disagreeing(&picker.picked, picker.passed_over, &splits);
    FactSelection { currency, facts: picker.picked, splits, candidates }
}

/// The filer's currency: the plain currency unit used by most rows.
fn reporting_currency(facts: &CompanyFacts, as_of: CalendarDay) -> String {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (unit, _, _) in facts.all_rows_until(as_of) {
        if is_currency(unit) {
            *rows.entry(unit).or_default() += 1;
        }
    }
    let most_used = rows.into_iter().max_by_key(|(_, count)| *count);
    most_used.map_or("USD", |(unit, _)| unit).to_owned()
}

pub(crate) fn is_currency(unit: &str) -> bool {
    unit.len() == 3 && unit.bytes().all(|byte| byte.is_ascii_uppercase())
}

struct FactSelector<'a> {
    facts: &'a CompanyFacts,
    years: &'a FiscalYears,
    as_of: CalendarDay,
    oldest_year: i32,
    reported: BTreeMap<&'a str, FiscalPeriod>,
    picked: BTreeMap<FactId, Fact>,
    votes: Vec<SplitVote>,
    passed_over: Vec<UnusedValue>,
}

/// The value of a tag with lower priority than the one used.
struct UnusedValue {
    id: FactId,
    concept: &'static str,
    value: Decimal,
    filed: CalendarDay,
}

type Report<'a> = (&'a ReportedValue, &'a FactsFiling);

impl<'a> FactSelector<'a> {
    fn pick(&mut self, metric: &'static MetricDefinition, concept: &'static str, unit: &str) {
        for (period, mut reports) in self.by_period(metric, concept, unit) {
            reports.sort_by_key(|(row, filing)| {
                (filing.filed, &filing.accession, row.end, row.start, row.value)
            });
            if SPLIT_INDICATORS.contains(&metric.name) {
                self.votes.extend(split_votes(metric.unit, &reports));
            }
            let (Some(first), Some(last)) = (reports.first(), reports.last()) else { continue };
            let id = FactId::new(metric.name, period);
            match self.picked.entry(id) {
                Entry::Vacant(free) => {
                    free.insert(filed_fact(metric.unit, concept, first, last));
                }
                Entry::Occupied(taken) => self.passed_over.push(UnusedValue {
                    id: taken.key().clone(),
                    concept,
                    value: last.0.value,
                    filed: last.1.filed,
                }),
            }
        }
    }

    fn by_period(
        &self,
        metric: &MetricDefinition,
        concept: &str,
        unit: &str,
    ) -> BTreeMap<FiscalPeriod, Vec<Report<'a>>> {
        let mut by_period: BTreeMap<FiscalPeriod, Vec<Report<'a>>> = BTreeMap::new();
        let Some(rows) = self.facts.concepts.get(concept).and_then(|units| units.get(unit)) else {
            return by_period;
        };
        for (row, filing) in self.facts.rows_until(rows, self.as_of) {
            if (metric.kind == MetricKind::Balance) != row.start.is_none() {
                continue;
            }
            let period = if concept.starts_with("dei:") {
                self.reported.get(filing.accession.as_str()).copied()
            } else {
                self.years.label(row.start, row.end)
            };
            if let Some(period) = period.filter(|at| at.fiscal_year() >= self.oldest_year) {
                by_period.entry(period).or_default().push((row, filing));
            }
        }
        by_period
    }
}

/// Split factors between consecutive filings of a period.
fn split_votes(unit: FactUnit, reports: &[Report<'_>]) -> Vec<SplitVote> {
    let vote = |(old, new): (&Report<'_>, &Report<'_>)| {
        let factor = factor_between(unit, old.0.value, new.0.value)?;
        Some(SplitVote { after: new.1.filed, before: old.1.filed, factor })
    };
    reports.iter().zip(reports.iter().skip(1)).filter_map(vote).collect()
}

fn filed_fact(unit: FactUnit, concept: &str, first: &Report<'_>, last: &Report<'_>) -> Fact {
    let ((first_row, first_filing), (row, filing)) = (first, last);
    let changed = differ_by(row.value, first_row.value, Decimal::new(1, 3));
    let filed = FilingSource {
        concept: concept.to_owned(),
        accession: filing.accession.clone(),
        form: filing.form.as_str().to_owned(),
        filed: filing.filed,
        start: row.start,
        end: row.end,
        restated_from: changed
            .then_some(OriginalValue { value: first_row.value, filed: first_filing.filed }),
        split: None,
    };
    Fact { value: row.value, unit, source: FactSource::Filed(Box::new(filed)) }
}

/// Whether two values differ by more than `part` of the first. Values that cannot be compared count
/// as different.
pub(crate) fn differ_by(value: Decimal, other: Decimal, part: Decimal) -> bool {
    let difference = value.checked_sub(other).map(|difference| difference.abs());
    let allowed = value.abs().checked_mul(part);
    difference.zip(allowed).is_none_or(|(difference, allowed)| difference > allowed)
}

/// Unused tags whose values differ by more than 0.5 %, after adjusting for splits.
fn disagreeing(
    picked: &BTreeMap<FactId, Fact>,
    passed_over: Vec<UnusedValue>,
    splits: &[ShareSplit],
) -> Vec<DataCheck> {
    let basis = |unit, value, filed| {
        splits::split_adjusted(unit, value, splits::factor_since(splits, filed)).unwrap_or(value)
    };
    let check = |other: UnusedValue| {
        let fact = picked.get(&other.id)?;
        let used = basis(fact.unit, fact.value, fact.filed()?.filed);
        let passed_over = basis(fact.unit, other.value, other.filed);
        differ_by(used, passed_over, Decimal::new(5, 3)).then(|| DataCheck::Candidates {
            id: other.id,
            concept: other.concept.to_owned(),
            value: passed_over,
            used,
        })
    };
    passed_over.into_iter().filter_map(check).take(MAX_CANDIDATES).collect()
}
