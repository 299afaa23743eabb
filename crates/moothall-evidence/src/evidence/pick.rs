//! From rows of filings to one value for each metric and period.
//!
//! For each period the first tag of a metric's list that has a value is used, per period and not
//! per company: filers change their tags. Of several filings the newest counts, and what the first
//! one said is kept.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rust_decimal::Decimal;

use super::companyfacts::{CompanyFacts, FactsFiling, Row};
use super::data_check::DataCheck;
use super::day::Day;
use super::fact::{Fact, FactId, Filed, Restated, Source, Unit};
use super::fiscal::{FiscalYears, YEARS_BACK, reported_periods};
use super::metrics::{Kind, METRICS, Metric};
use super::period::Period;
use super::splits::{self, Split, SplitVote, factor_between};

/// What was picked, as it was filed.
#[derive(Debug)]
pub(super) struct Picked {
    pub(super) currency: String,
    pub(super) facts: BTreeMap<FactId, Fact>,
    pub(super) splits: Vec<Split>,
    /// Tags that should mean the same and say something else.
    pub(super) candidates: Vec<DataCheck>,
}

/// The most disagreements between tags that are kept; real filers have a few dozen.
pub(super) const MAX_CANDIDATES: usize = 1_000;

/// Metrics whose restatements show a split.
const SHOW_SPLITS: &[&str] = &["SharesDiluted", "EPSDiluted"];

/// Picks from everything that was filed up to a day.
pub(super) fn pick(facts: &CompanyFacts, years: &FiscalYears, as_of: Day) -> Picked {
    let currency = reporting_currency(facts, as_of);
    let mut picker = Picker {
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
            Unit::PerShare => format!("{currency}/shares"),
            Unit::Shares => "shares".to_owned(),
            Unit::Money | Unit::Ratio | Unit::Multiple | Unit::Days => currency.clone(),
        };
        for concept in metric.concepts {
            picker.pick(metric, concept, &unit);
        }
    }
    let splits = splits::splits(picker.votes);
    let candidates = disagreeing(&picker.picked, picker.passed_over, &splits);
    Picked { currency, facts: picker.picked, splits, candidates }
}

/// The filer's currency: the plain currency unit that most rows have.
fn reporting_currency(facts: &CompanyFacts, as_of: Day) -> String {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (unit, _, _) in facts.all_rows_until(as_of) {
        if is_currency(unit) {
            *rows.entry(unit).or_default() += 1;
        }
    }
    let most_used = rows.into_iter().max_by_key(|(_, count)| *count);
    most_used.map_or("USD", |(unit, _)| unit).to_owned()
}

/// Three capital letters.
pub(super) fn is_currency(unit: &str) -> bool {
    unit.len() == 3 && unit.bytes().all(|byte| byte.is_ascii_uppercase())
}

struct Picker<'a> {
    facts: &'a CompanyFacts,
    years: &'a FiscalYears,
    as_of: Day,
    oldest_year: i32,
    reported: BTreeMap<&'a str, Period>,
    picked: BTreeMap<FactId, Fact>,
    votes: Vec<SplitVote>,
    passed_over: Vec<PassedOver>,
}

/// A value of a tag that comes after the one that was used.
struct PassedOver {
    id: FactId,
    concept: &'static str,
    value: Decimal,
    filed: Day,
}

type Report<'a> = (&'a Row, &'a FactsFiling);

impl<'a> Picker<'a> {
    fn pick(&mut self, metric: &'static Metric, concept: &'static str, unit: &str) {
        for (period, mut reports) in self.by_period(metric, concept, unit) {
            reports.sort_by_key(|(row, filing)| {
                (filing.filed, &filing.accession, row.end, row.start, row.value)
            });
            if SHOW_SPLITS.contains(&metric.name) {
                self.votes.extend(split_votes(metric.unit, &reports));
            }
            let (Some(first), Some(last)) = (reports.first(), reports.last()) else { continue };
            let id = FactId::new(metric.name, period);
            match self.picked.entry(id) {
                Entry::Vacant(free) => {
                    free.insert(filed_fact(metric.unit, concept, first, last));
                }
                Entry::Occupied(taken) => self.passed_over.push(PassedOver {
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
        metric: &Metric,
        concept: &str,
        unit: &str,
    ) -> BTreeMap<Period, Vec<Report<'a>>> {
        let mut by_period: BTreeMap<Period, Vec<Report<'a>>> = BTreeMap::new();
        let Some(rows) = self.facts.concepts.get(concept).and_then(|units| units.get(unit)) else {
            return by_period;
        };
        for (row, filing) in self.facts.rows_until(rows, self.as_of) {
            if (metric.kind == Kind::Balance) != row.start.is_none() {
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

/// Ratios between one filing of a period and the next.
fn split_votes(unit: Unit, reports: &[Report<'_>]) -> Vec<SplitVote> {
    let vote = |(old, new): (&Report<'_>, &Report<'_>)| {
        let factor = factor_between(unit, old.0.value, new.0.value)?;
        Some(SplitVote { after: new.1.filed, before: old.1.filed, factor })
    };
    reports.iter().zip(reports.iter().skip(1)).filter_map(vote).collect()
}

fn filed_fact(unit: Unit, concept: &str, first: &Report<'_>, last: &Report<'_>) -> Fact {
    let ((first_row, first_filing), (row, filing)) = (first, last);
    let changed = differ_by(row.value, first_row.value, Decimal::new(1, 3));
    let filed = Filed {
        concept: concept.to_owned(),
        accession: filing.accession.clone(),
        form: filing.form.as_str().to_owned(),
        filed: filing.filed,
        start: row.start,
        end: row.end,
        restated_from: changed
            .then_some(Restated { value: first_row.value, filed: first_filing.filed }),
        split: None,
    };
    Fact { value: row.value, unit, source: Source::Filed(Box::new(filed)) }
}

/// Whether two values differ by more than a part of the first. Filed values are small enough for
/// this arithmetic; what cannot be compared differs.
pub(super) fn differ_by(value: Decimal, other: Decimal, part: Decimal) -> bool {
    let difference = value.checked_sub(other).map(|difference| difference.abs());
    let allowed = value.abs().checked_mul(part);
    difference.zip(allowed).is_none_or(|(difference, allowed)| difference > allowed)
}

/// Tags that were passed over and differ by more than half a per cent, splits aside.
fn disagreeing(
    picked: &BTreeMap<FactId, Fact>,
    passed_over: Vec<PassedOver>,
    splits: &[Split],
) -> Vec<DataCheck> {
    let basis = |unit, value, filed| {
        splits::on_new_basis(unit, value, splits::factor_since(splits, filed)).unwrap_or(value)
    };
    let check = |other: PassedOver| {
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
