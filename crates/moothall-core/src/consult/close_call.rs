//! Finds neighbours in a ranking whose order is not reliable, for every place that shows a ranking.

use serde::{Deserialize, Serialize};

use super::result::{ConsultResult, RankedMove};

/// Two neighbours in the ranking that are too close to call: their totals differ by less than the
/// totals that decision makers gave one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CloseCall {
    /// The higher-ranked move.
    pub upper: String,
    /// The lower-ranked move.
    pub lower: String,
    /// The difference of their totals.
    pub apart: u32,
    /// The larger of their score ranges.
    pub spread: u32,
}

impl CloseCall {
    fn of(upper: &RankedMove, lower: &RankedMove) -> Option<Self> {
        let (above, below) = (upper.debated.as_ref()?, lower.debated.as_ref()?);
        let (apart, spread) =
            (above.score()?.abs_diff(below.score()?), above.spread.max(below.spread));
        (apart < spread).then(|| Self {
            upper: upper.move_id.clone(),
            lower: lower.move_id.clone(),
            apart,
            spread,
        })
    }
}

impl ConsultResult {
    /// Neighbours among the recommended moves and the next one that are too close to call, best
    /// first.
    pub fn close_calls(&self) -> Vec<CloseCall> {
        if self.verdict.is_some() {
            // Intervals say how far apart moves are.
            return Vec::new();
        }
        let is_next = |one: &&RankedMove| one.rank.is_some() && !one.has_neutral_scores();
        let next = self.other.iter().find(is_next);
        let moves: Vec<&RankedMove> = self.recommended.iter().chain(next).collect();
        let pairs = moves.iter().zip(moves.iter().skip(1));
        pairs.filter_map(|(upper, lower)| CloseCall::of(upper, lower)).collect()
    }
}
