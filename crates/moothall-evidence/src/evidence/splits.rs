//! Share splits, found and undone.
//!
//! A split shows as one period that two filings report with a whole-number ratio. Filers restate
//! about three years; what is older stays on the old basis and would turn a growth of 22 % into a
//! fall, so it is brought to today's shares here and says so. Reverse splits are not recognised.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::day::Day;
use super::fact::{Fact, FactId, Source, SplitAdjustment, Unit};

/// A split of shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Split {
    /// The first filing on the new basis.
    pub(super) first_filed: Day,
    /// New shares for one old share.
    pub(super) factor: u32,
}

/// Two filings of one period whose values have a whole-number ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SplitVote {
    /// When the later one was filed.
    pub(super) after: Day,
    /// When the earlier one was filed.
    pub(super) before: Day,
    /// New shares for one old share.
    pub(super) factor: u32,
}

/// Ratios in which shares are split.
const FACTORS: &[u32] = &[2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 50];
/// All splits of the years of a sheet together; more is no company but an error.
const LARGEST_PRODUCT: u32 = 1_000_000;

/// The split that explains two reports of one period, if a whole number does within what printing
/// earnings to the cent can hide.
pub(super) fn factor_between(unit: Unit, old: Decimal, new: Decimal) -> Option<u32> {
    if old.is_zero() || new.is_zero() {
        return None;
    }
    let (ratio, slack) = if unit == Unit::Shares {
        (new.checked_div(old)?, Decimal::new(5, 3))
    } else {
        let half_a_cent = Decimal::new(6, 3).checked_div(new.abs())?;
        (old.checked_div(new)?, half_a_cent.checked_add(Decimal::new(2, 3))?)
    };
    let whole = ratio.round();
    let factor = whole.to_u32().filter(|factor| FACTORS.contains(factor))?;
    let distance = ratio.checked_sub(whole)?.abs();
    (slack < Decimal::new(3, 2) && distance < whole.checked_mul(slack)?).then_some(factor)
}

/// The splits that explain all votes. A ratio over several splits counts only for what the ones
/// already known leave unexplained, so that two splits of 2:1 are not read as 2:1 and 4:1.
pub(super) fn splits(mut votes: Vec<SplitVote>) -> Vec<Split> {
    votes.sort();
    votes.dedup();
    let mut splits: Vec<Split> = Vec::new();
    for vote in votes {
        let known = splits
            .iter()
            .filter(|split| split.first_filed > vote.before)
            .fold(1, |product: u32, split| product.saturating_mul(split.factor));
        let unexplained = vote.factor / known;
        let is_whole = vote.factor % known == 0 && FACTORS.contains(&unexplained);
        let product = factor_since(&splits, Day::MIN).saturating_mul(unexplained);
        if is_whole && product <= LARGEST_PRODUCT {
            splits.push(Split { first_filed: vote.after, factor: unexplained });
        }
    }
    splits
}

/// Whether a list of splits could have been found by us.
pub(super) fn are_sound(splits: &[Split]) -> bool {
    splits.iter().all(|split| FACTORS.contains(&split.factor))
        && factor_since(splits, Day::MIN) <= LARGEST_PRODUCT
}

/// New shares for one share of a filing of that day.
pub(super) fn factor_since(splits: &[Split], filed: Day) -> u32 {
    let later = splits.iter().filter(|split| filed < split.first_filed);
    later.fold(1, |product: u32, split| product.saturating_mul(split.factor))
}

/// A value of shares, or for each share, on the new basis.
pub(super) fn on_new_basis(unit: Unit, as_filed: Decimal, factor: u32) -> Option<Decimal> {
    let factor = Decimal::from(factor);
    match unit {
        Unit::Shares => as_filed.checked_mul(factor),
        Unit::PerShare => Some(as_filed.checked_div(factor)?.round_dp(4).normalize()),
        Unit::Money | Unit::Ratio | Unit::Multiple | Unit::Days => Some(as_filed),
    }
}

/// Brings every filed count of shares, and every value for each share, to today's basis.
pub(super) fn adjust(facts: &mut BTreeMap<FactId, Fact>, splits: &[Split]) {
    for fact in facts.values_mut() {
        let Source::Filed(filed) = &mut fact.source else { continue };
        if !matches!(fact.unit, Unit::Shares | Unit::PerShare) {
            continue;
        }
        let factor = factor_since(splits, filed.filed);
        let as_filed = fact.value;
        if factor > 1
            && let Some(value) = on_new_basis(fact.unit, as_filed, factor)
        {
            fact.value = value;
            filed.split = Some(SplitAdjustment { as_filed, factor });
        }
    }
}

#[cfg(test)]
#[path = "splits_tests.rs"]
mod tests;
