//! Which tag provided which metric, and for how many periods. Useful when a new filer looks wrong.

use std::collections::BTreeMap;
use std::fmt;

use super::fact::{FactId, FactSource};
use super::metric_order::metric_position;
use super::metrics::metric;
use super::period::FiscalPeriod;
use super::sheet::FactSheet;

/// The coverage of one metric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricCoverage {
    /// The name of the metric.
    pub metric: String,
    /// Number of values in the five newest years.
    pub years: usize,
    /// Number of quarterly values in the newest closed year, the year before it and the current
    /// year.
    pub quarters: usize,
    /// How many of those years each tag provided; `derived` means computed here.
    pub served_by: BTreeMap<String, usize>,
}

impl FactSheet {
    /// The coverage of every metric with a value in those periods.
    pub fn coverage(&self) -> Vec<MetricCoverage> {
        let newest = self.newest_year().unwrap_or_default();
        let mut metrics: BTreeMap<&str, MetricCoverage> = BTreeMap::new();
        for (FactId { metric, period }, fact) in &self.facts {
            let is_year = matches!(period, FiscalPeriod::Year(year) if *year > newest - 5);
            let is_quarter =
                matches!(period, FiscalPeriod::Quarter(year, _) if *year >= newest - 1);
            if !is_year && !is_quarter {
                continue;
            }
            let coverage = metrics.entry(metric).or_default();
            coverage.quarters += usize::from(is_quarter);
            if is_year {
                coverage.years += 1;
                let server = match &fact.source {
                    FactSource::Filed(filed) => filed.concept.clone(),
                    FactSource::Derived { .. } => "derived".to_owned(),
                };
                *coverage.served_by.entry(server).or_default() += 1;
            }
        }
        let mut covered: Vec<MetricCoverage> = metrics
            .into_iter()
            .map(|(name, coverage)| MetricCoverage { metric: name.to_owned(), ..coverage })
            .collect();
        covered.sort_by_cached_key(|coverage| metric_position(&coverage.metric));
        covered
    }
}

impl fmt::Display for MetricCoverage {
    /// Formats as `Revenue 5y 9q us-gaap:Revenues[1]x3`, with the tag's position in the list in
    /// brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}y {}q", self.metric, self.years, self.quarters)?;
        for (server, years) in &self.served_by {
            let tags = metric(&self.metric).map_or(&[][..], |metric| metric.concepts);
            match tags.iter().position(|tag| tag == server) {
                Some(place) => write!(f, " {server}[{}]x{years}", place + 1)?,
                None => write!(f, " {server}x{years}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "coverage_tests.rs"]
mod tests;
