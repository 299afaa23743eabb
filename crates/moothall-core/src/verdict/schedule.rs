//! Which moves are debated again, and when to stop.

use serde::{Deserialize, Serialize};

use super::tiers::{TierList, VerdictTier};

/// How many of the best moves are debated again in each stage, and when that ends early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebateSchedule {
    /// The number of moves in each stage after the first; empty for no repeats.
    pub again: Vec<u32>,
    /// The stages end when the lead has at most this many moves.
    pub stop_at: u32,
}

impl Default for DebateSchedule {
    fn default() -> Self {
        Self { again: vec![8, 4, 4], stop_at: 3 }
    }
}

impl DebateSchedule {
    /// The moves to debate again after `repeated` of the stages, by estimate; none if the verdict
    /// is final. The first stage always takes place: before it, no noise of debates was measured.
    pub fn next_moves(&self, repeated: usize, verdict: &TierList) -> Vec<String> {
        let Some(count) = self.again.get(repeated) else { return Vec::new() };
        let lead = verdict.tier(VerdictTier::Lead).len();
        let is_decided = lead > 0 && u32::try_from(lead).is_ok_and(|lead| lead <= self.stop_at);
        if repeated > 0 && is_decided {
            return Vec::new();
        }
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        let best = verdict.moves_by_estimate().into_iter().take(count);
        best.map(|one| one.move_id.clone()).collect()
    }

    /// The most debates after the first ones: an upper bound for estimates of the cost.
    pub fn most_repeats(&self, moves: u32) -> u32 {
        self.again.iter().map(|count| (*count).min(moves)).fold(0, u32::saturating_add)
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
