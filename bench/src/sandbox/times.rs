//! Measured times and their statistics.

use std::time::Duration;

/// Samples of one measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// A percentile in milliseconds; with few samples, the nearest one above.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    pub(crate) fn p50(&self) -> f64 {
        self.percentile(50)
    }
}

/// The same work done by both sides, one directly after the other: other load on the machine
/// affects both of a pair about equally.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pairs {
    pub(crate) bare: Times,
    pub(crate) ours: Times,
}

impl Pairs {
    pub(crate) fn add(&mut self, bare: Duration, ours: Duration) {
        self.bare.add(bare);
        self.ours.add(ours);
    }

    /// The median of the pairs' ratios.
    pub(crate) fn ratio(&self) -> f64 {
        let pairs = self.ours.0.iter().zip(&self.bare.0);
        let mut ratios: Vec<f64> =
            pairs.map(|(ours, bare)| ours.as_secs_f64() / bare.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
