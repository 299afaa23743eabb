//! Detects share splits and adjusts older values.
//!
//! A split shows as a period that two filings report with a whole-number ratio. Filers restate
//! about three years; older values stay on the old basis and would turn a growth of 22 % into a
//! decline, so they are converted to the current basis here and marked as adjusted. Reverse splits
//! are not detected.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::day::CalendarDay;
use super::fact::{Fact, FactId, FactSource, FactUnit, SplitAdjustment};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShareSplit {
    /// The first filing on the new basis.
    pub(crate) first_filed: CalendarDay,
    /// New shares per old share.
    pub(crate) factor: u32,
}

/// Two filings of one period whose values have a whole-number ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SplitVote {
    /// Filing date of the later filing.
    pub(crate) after: CalendarDay,
    /// Filing date of the earlier filing.
    pub(crate) before: CalendarDay,
    /// New shares per old share.
    pub(crate) factor: u32,
}

/// Recognized split ratios.
const FACTORS: &[u32] = &[2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 50];
/// Limit on the product of all splits of a sheet; a larger one is an error in the data.
const LARGEST_PRODUCT: u32 = 1_000_000;

/// The split that explains two reports of one period, if their ratio is a whole number within the
/// rounding of earnings to the cent.
pub(crate) fn factor_between(unit: FactUnit, old: Decimal, new: Decimal) -> Option<u32> {
    if old.is_zero() || new.is_zero() {
        return None;
    }
    let (ratio, slack) = if unit == FactUnit::Shares {
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

/// The splits that explain all votes. A ratio across several splits counts only for the part that
/// known splits leave unexplained, so that two 2:1 splits are not read as 2:1 and 4:1.
pub(crate) fn splits(mut votes: Vec<SplitVote>) -> Vec<ShareSplit> {
    votes.sort();
    votes.dedup();
    let mut splits: Vec<ShareSplit> = Vec::new();
    for vote in votes {
        let known = splits
            .iter()
            .filter(|split| split.first_filed > vote.before)
            .fold(1, |product: u32, split| product.saturating_mul(split.factor));
        let unexplained = vote.factor / known;
        let is_whole = vote.factor % known == 0 && FACTORS.contains(&unexplained);
        let product = factor_since(&splits, CalendarDay::MIN).saturating_mul(unexplained);
        if is_whole && product <= LARGEST_PRODUCT {
            splits.push(ShareSplit { first_filed: vote.after, factor: unexplained });
        }
    }
    splits
}

/// Whether this module could have produced the list.
pub(crate) fn are_sound(splits: &[ShareSplit]) -> bool {
    splits.iter().all(|split| FACTORS.contains(&split.factor))
        && factor_since(splits, CalendarDay::MIN) <= LARGEST_PRODUCT
}

/// New shares per share of a filing from that day.
pub(crate) fn factor_since(splits: &[ShareSplit], filed: CalendarDay) -> u32 {
    let later = splits.iter().filter(|split| filed < split.first_filed);
    later.fold(1, |product: u32, split| product.saturating_mul(split.factor))
}

/// Converts a share count or per-share value to the new basis.
pub(crate) fn split_adjusted(unit: FactUnit, as_filed: Decimal, factor: u32) -> Option<Decimal> {
    let factor = Decimal::from(factor);
    match unit {
        FactUnit::Shares => as_filed.checked_mul(factor),
        FactUnit::PerShare => Some(as_filed.checked_div(factor)?.round_dp(4).normalize()),
        FactUnit::Money | FactUnit::Ratio | FactUnit::Multiple | FactUnit::Days => Some(as_filed),
    }
}

/// Converts every filed share count and per-share value to the current basis.
pub(crate) fn adjust(facts: &mut BTreeMap<FactId, Fact>, splits: &[ShareSplit]) {
    for fact in facts.values_mut() {
        let FactSource::Filed(filed) = &mut fact.source else { continue };
        if !matches!(fact.unit, FactUnit::Shares | FactUnit::PerShare) {
            continue;
        }
        let factor = factor_since(splits, filed.filed);
        let as_filed = fact.value;
        if factor > 1
            && let Some(value) = split_adjusted(fact.unit, as_filed, factor)
        {
            fact.value = value;
            filed.split = Some(SplitAdjustment { as_filed, factor });
        }
    }
}

#[cfg(test)]
#[path = "splits_tests.rs"]
mod tests;
