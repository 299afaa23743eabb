//! What was found out lately, so that nobody finds it out twice, and how often something had to be
//! found out: whoever speaks to a gate can neither keep a machine busy nor spend a user's money
//! without end.

use std::collections::VecDeque;

use moothall_core::Sha256Hex;
use moothall_core::gate::CheckOutcome;
use moothall_core::gate::reviewer::Doubt;

/// Answers that are kept of each kind.
const MOST_KEPT: usize = 64;
const HOUR_MS: u64 = 60 * 60 * 1000;

/// Of one process; it ends with it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// How checks ended and what is told about it, by the hash of what they ran on.
    pub(super) checks: Recent<(CheckOutcome, String)>,
    /// What a model doubts, by the hash of what it was asked.
    pub(super) reviews: Recent<Vec<Doubt>>,
    /// When something was begun, within the last hour.
    begun: VecDeque<u64>,
}

impl Memory {
    /// Counts a beginning; `false`: there were as many as there may be.
    pub(super) fn begin(&mut self, now_ms: u64, most_per_hour: usize) -> bool {
        self.begun.retain(|at| now_ms.saturating_sub(*at) < HOUR_MS);
        if self.begun.len() >= most_per_hour {
            return false;
        }
        self.begun.push_back(now_ms);
        true
    }
}

/// The last answers by their question.
#[derive(Debug)]
pub(super) struct Recent<T>(VecDeque<(Sha256Hex, T)>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Clone> Recent<T> {
    pub(super) fn get(&self, asked: Sha256Hex) -> Option<T> {
        self.0.iter().find(|(one, _)| *one == asked).map(|(_, answer)| answer.clone())
    }

    pub(super) fn keep(&mut self, asked: Sha256Hex, answer: T) {
        if self.0.len() >= MOST_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((asked, answer));
    }
}
