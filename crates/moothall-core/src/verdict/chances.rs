//! The chances of each move to be the best or one of the best three, from estimates with normal errors.
//!
//! The integrals are sums over a grid of 201 points that all moves share, without random
//! draws. Within a grid cell two moves are equally likely to be ahead, so the chances of a pair
//! add up to one exactly. Moves much closer than a two-hundredth of the whole range are therefore
//! not told apart by these chances, which errs on the safe side.

use super::normal::normal_probability;
use crate::consult::RECOMMENDED;

const POINTS: usize = 201;

/// The grid ends this many standard deviations outside the estimates.
const TAIL: f64 = 5.0;

/// The smallest standard deviation in points: half of the stored precision of a score.
const MIN_DEVIATION: f64 = 0.05;

/// An estimate with a normal error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NormalEstimate {
    mean: f64,
    variance: f64,
    /// Doing nothing can be the best, but takes no place among the best three moves.
    is_move: bool,
}

/// The chances of one contestant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MoveChances {
    /// That no contestant is better.
    pub(crate) best: f64,
    /// That fewer than three moves are better.
    pub(crate) top: f64,
}

impl NormalEstimate {
    pub(crate) fn new(mean: f64, variance: f64, is_move: bool) -> Self {
        let variance = variance.max(MIN_DEVIATION * MIN_DEVIATION);
        Self { mean, variance, is_move }
    }

    /// The chance that this one is better than `other`.
    pub(crate) fn chance_above(&self, other: &Self) -> f64 {
        normal_probability((self.mean - other.mean) / (self.variance + other.variance).sqrt())
    }
}

/// The chances of all contestants, in order.
pub(crate) fn chances(contestants: &[NormalEstimate]) -> Vec<MoveChances> {
    let deviations: Vec<f64> = contestants.iter().map(|one| one.variance.sqrt()).collect();
    let ends = || contestants.iter().zip(&deviations);
    let low = ends().map(|(one, sd)| one.mean - TAIL * sd).fold(f64::INFINITY, f64::min);
    let high = ends().map(|(one, sd)| one.mean + TAIL * sd).fold(f64::NEG_INFINITY, f64::max);
    let step = (high - low) / (POINTS - 1) as f64;
    let below_at = |point: usize| -> Vec<f64> {
        let value = low + step * point as f64;
        ends().map(|(one, sd)| normal_probability((value - one.mean) / sd)).collect()
    };
    let mut found = vec![MoveChances::default(); contestants.len()];
    let mut from = below_at(0);
    for point in 1..POINTS {
        let to = below_at(point);
        add_cell(contestants, &from, &to, &mut found);
        from = to;
    }
    found
}

/// Adds the chances within one cell: the probability of being in it, times the probability of the
/// others being below.
fn add_cell(contestants: &[NormalEstimate], from: &[f64], to: &[f64], found: &mut [MoveChances]) {
    let below: Vec<f64> = from.iter().zip(to).map(|(from, to)| (from + to) / 2.0).collect();
    // What the contestants after each one contribute; the loop below adds those before it.
    let mut after = vec![OthersAbove::NONE; contestants.len()];
    let mut all = OthersAbove::NONE;
    for ((one, below), slot) in contestants.iter().zip(&below).zip(&mut after).rev() {
        *slot = all;
        all = all.with(one, *below);
    }
    let mut before = OthersAbove::NONE;
    let cells = contestants.iter().zip(&below).zip(from.iter().zip(to)).zip(&after);
    for ((((one, below), (from, to)), after), found) in cells.zip(found) {
        let within = to - from;
        found.best += within * before.no_contestant * after.no_contestant;
        found.top += within * before.fewer_than_three(after);
        before = before.with(one, *below);
    }
}

/// Probabilities of how many others are above a value.
#[derive(Clone, Copy)]
struct OthersAbove {
    /// No contestant.
    no_contestant: f64,
    /// Exactly 0, 1 and 2 moves.
    moves: [f64; RECOMMENDED],
}

impl OthersAbove {
    const NONE: Self = Self { no_contestant: 1.0, moves: [1.0, 0.0, 0.0] };

    fn with(self, one: &NormalEstimate, below: f64) -> Self {
        let no_contestant = self.no_contestant * below;
        if !one.is_move {
            return Self { no_contestant, ..self };
        }
        let (above, [zero, single, double]) = (1.0 - below, self.moves);
        let moves = [zero * below, single * below + zero * above, double * below + single * above];
        Self { no_contestant, moves }
    }

    fn fewer_than_three(&self, other: &Self) -> f64 {
        let ([zero, single, double], more) = (self.moves, other.moves);
        zero * (more[0] + more[1] + more[2]) + single * (more[0] + more[1]) + double * more[0]
    }
}

#[cfg(test)]
#[path = "chances_tests.rs"]
mod tests;
