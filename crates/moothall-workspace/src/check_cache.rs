//! Caches check and review results, and limits how many run per hour, so a client of the gate
//! cannot keep the machine busy or spend the user's money without bound.

use std::collections::VecDeque;

use moothall_core::Sha256Hex;
use moothall_core::gate::CheckOutcome;
use moothall_core::gate::reviewer::ReviewDoubt;

/// Results kept per kind.
const MAX_ENTRIES: usize = 64;
const HOUR_MS: u64 = 60 * 60 * 1000;

/// Lives as long as the process.
#[derive(Debug, Default)]
pub(crate) struct CheckCache {
    /// Outcome and output of checks, by the hash of their request.
    pub(crate) checks: ResultCache<(CheckOutcome, String)>,
    /// Doubts of the reviewing model, by the hash of the request.
    pub(crate) reviews: ResultCache<Vec<ReviewDoubt>>,
    /// Start times within the last hour.
    starts: VecDeque<u64>,
}

impl CheckCache {
    /// Counts a start. Returns false if the hourly limit is reached.
    pub(crate) fn begin(&mut self, now_ms: u64, most_per_hour: usize) -> bool {
        self.starts.retain(|at| now_ms.saturating_sub(*at) < HOUR_MS);
        if self.starts.len() >= most_per_hour {
            return false;
        }
        self.starts.push_back(now_ms);
        true
    }
}

/// The most recent results by request hash.
#[derive(Debug)]
pub(crate) struct ResultCache<T>(VecDeque<(Sha256Hex, T)>);

impl<T> Default for ResultCache<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Clone> ResultCache<T> {
    pub(crate) fn get(&self, request: Sha256Hex) -> Option<T> {
        self.0.iter().find(|(one, _)| *one == request).map(|(_, answer)| answer.clone())
    }

    pub(crate) fn keep(&mut self, request: Sha256Hex, answer: T) {
        if self.0.len() >= MAX_ENTRIES {
            self.0.pop_front();
        }
        self.0.push_back((request, answer));
    }
}
