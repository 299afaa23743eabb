//! Facts while a sheet is being made.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

use super::fact::{Fact, FactId, Source, Unit};
use super::period::Period;

/// The facts so far, by metric and period, so that a value is found without making an id. What was
/// filed is never replaced by what we compute.
#[derive(Debug)]
pub(super) struct Book {
    metrics: BTreeMap<String, BTreeMap<Period, Fact>>,
}

impl Book {
    pub(super) fn new(facts: BTreeMap<FactId, Fact>) -> Self {
        let mut metrics: BTreeMap<String, BTreeMap<Period, Fact>> = BTreeMap::new();
        for (id, fact) in facts {
            metrics.entry(id.metric).or_default().insert(id.period, fact);
        }
        Self { metrics }
    }

    pub(super) fn into_facts(self) -> BTreeMap<FactId, Fact> {
        let metrics = self.metrics.into_iter();
        let facts = metrics.flat_map(|(metric, periods)| {
            let named = move |(period, fact)| (FactId::new(metric.as_str(), period), fact);
            periods.into_iter().map(named)
        });
        facts.collect()
    }

    pub(super) fn value(&self, metric: &str, period: Period) -> Option<Decimal> {
        self.metrics.get(metric)?.get(&period).map(|fact| fact.value)
    }

    /// Adds a computed value unless there is one already, or the computation left the numbers that
    /// can be held (`None`).
    pub(super) fn derive(
        &mut self,
        id: FactId,
        value: Option<Decimal>,
        unit: Unit,
        formula: impl Into<String>,
        inputs: Vec<FactId>,
    ) {
        let Some(value) = value else { return };
        let source = Source::Derived { formula: formula.into(), inputs };
        let fact = Fact { value: value.normalize(), unit, source };
        self.metrics.entry(id.metric).or_default().entry(id.period).or_insert(fact);
    }

    /// Every fact with its metric and period, in order.
    pub(super) fn facts(&self) -> impl Iterator<Item = (&str, Period, &Fact)> {
        self.metrics.iter().flat_map(|(metric, periods)| {
            periods.iter().map(move |(period, fact)| (metric.as_str(), *period, fact))
        })
    }

    /// Every period that has a fact, in order.
    pub(super) fn periods(&self) -> BTreeSet<Period> {
        self.metrics.values().flat_map(|periods| periods.keys().copied()).collect()
    }

    /// Whether any period has this metric.
    pub(super) fn has(&self, metric: &str) -> bool {
        self.metrics.contains_key(metric)
    }
}

/// Ids of a list of metrics in periods.
pub(super) fn ids<const N: usize>(inputs: [(&str, Period); N]) -> Vec<FactId> {
    inputs.into_iter().map(|(metric, period)| FactId::new(metric, period)).collect()
}
