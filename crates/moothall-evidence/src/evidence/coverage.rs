//! Which tag served which metric, and how far back: what to look at when a new filer looks odd.

use std::collections::BTreeMap;
use std::fmt;

use super::fact::{FactId, Source};
use super::metrics::metric;
use super::order::place;
use super::period::Period;
use super::sheet::Sheet;

/// How well a metric is covered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Its name.
    pub metric: String,
    /// Values of the five newest years.
    pub years: usize,
    /// Values of quarters of the newest closed year, the one before, and the one under way.
    pub quarters: usize,
    /// How often each tag served one of those years; `derived` is us.
    pub served_by: BTreeMap<String, usize>,
}

impl Sheet {
    /// The coverage of every metric that has a value in those periods.
    pub fn coverage(&self) -> Vec<Coverage> {
        let newest = self.newest_year().unwrap_or_default();
        let mut metrics: BTreeMap<&str, Coverage> = BTreeMap::new();
        for (FactId { metric, period }, fact) in &self.facts {
            let is_year = matches!(period, Period::Year(year) if *year > newest - 5);
            let is_quarter = matches!(period, Period::Quarter(year, _) if *year >= newest - 1);
            if !is_year && !is_quarter {
                continue;
            }
            let coverage = metrics.entry(metric).or_default();
            coverage.quarters += usize::from(is_quarter);
            if is_year {
                coverage.years += 1;
                let server = match &fact.source {
                    Source::Filed(filed) => filed.concept.clone(),
                    Source::Derived { .. } => "derived".to_owned(),
                };
                *coverage.served_by.entry(server).or_default() += 1;
            }
        }
        let mut covered: Vec<Coverage> = metrics
            .into_iter()
            .map(|(name, coverage)| Coverage { metric: name.to_owned(), ..coverage })
            .collect();
        covered.sort_by_cached_key(|coverage| place(&coverage.metric));
        covered
    }
}

impl fmt::Display for Coverage {
    /// Such as `Revenue 5y 9q us-gaap:Revenues[1]x3`, the place of a tag in the list in brackets.
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
