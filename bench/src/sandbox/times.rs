//! Times that were measured, and what is said about them.

use std::time::Duration;

/// Times of the same thing, measured again and again.
#[derive(Debug, Clone, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Milliseconds that so many of a hundred stay within; of few times, the nearest one above.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    pub(super) fn p50(&self) -> f64 {
        self.percentile(50)
    }
}

/// The same work done by two, one directly after the other: other load on the machine hits both of
/// a pair about alike.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    pub(super) bare: Times,
    pub(super) ours: Times,
}

impl Pairs {
    pub(super) fn add(&mut self, bare: Duration, ours: Duration) {
        self.bare.add(bare);
        self.ours.add(ours);
    }

    /// The middle one of the pairs' ratios.
    pub(super) fn ratio(&self) -> f64 {
        let pairs = self.ours.0.iter().zip(&self.bare.0);
        let mut ratios: Vec<f64> =
            pairs.map(|(ours, bare)| ours.as_secs_f64() / bare.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
