//! The facts of a sheet under construction.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::fact::{Fact, FactId, FactSource, FactUnit};
use super::period::FiscalPeriod;

/// Facts by metric and period, so that lookups need no id. A computed value never replaces a filed
/// one.
#[derive(Debug)]
pub(crate) struct FactTable {
    metrics: BTreeMap<String, BTreeMap<FiscalPeriod, Fact>>,
}

impl FactTable {
    pub(crate) fn new(facts: BTreeMap<FactId, Fact>) -> Self {
        let mut metrics: BTreeMap<String, BTreeMap<FiscalPeriod, Fact>> = BTreeMap::new();
        for (id, fact) in facts {
            metrics.entry(id.metric).or_default().insert(id.period, fact);
        }
        Self { metrics }
    }

    pub(crate) fn into_facts(self) -> BTreeMap<FactId, Fact> {
        let metrics = self.metrics.into_iter();
        let facts = metrics.flat_map(|(metric, periods)| {
            let named = move |(period, fact)| (FactId::new(metric.as_str(), period), fact);
            periods.into_iter().map(named)
        });
        facts.collect()
    }

    pub(crate) fn value(&self, metric: &str, period: FiscalPeriod) -> Option<Decimal> {
        self.metrics.get(metric)?.get(&period).map(|fact| fact.value)
    }

    /// Adds a computed value unless the fact already exists or the computation overflowed (`None`).
    pub(crate) fn derive(
        &mut self,
        id: FactId,
        value: Option<Decimal>,
        unit: FactUnit,
        formula: impl Into<String>,
        inputs: Vec<FactId>,
    ) {
        let Some(value) = value else { return };
        let source = FactSource::Derived { formula: formula.into(), inputs };
        let fact = Fact { value: value.normalize(), unit, source };
        self.metrics.entry(id.metric).or_default().entry(id.period).or_insert(fact);
    }

    /// All facts with metric and period, in order.
    pub(crate) fn facts(&self) -> impl Iterator<Item = (&str, FiscalPeriod, &Fact)> {
        self.metrics.iter().flat_map(|(metric, periods)| {
            periods.iter().map(move |(period, fact)| (metric.as_str(), *period, fact))
        })
    }

    /// All periods that have a fact, in order.
    pub(crate) fn periods(&self) -> BTreeSet<FiscalPeriod> {
        self.metrics.values().flat_map(|periods| periods.keys().copied()).collect()
    }

    /// Whether the metric has a value in any period.
    pub(crate) fn has(&self, metric: &str) -> bool {
        self.metrics.contains_key(metric)
    }
}

/// Builds fact ids from metrics and periods.
pub(crate) fn ids<const N: usize>(inputs: [(&str, FiscalPeriod); N]) -> Vec<FactId> {
    inputs.into_iter().map(|(metric, period)| FactId::new(metric, period)).collect()
}
