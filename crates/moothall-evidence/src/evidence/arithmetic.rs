//! Arithmetic that says so when a result cannot be held, instead of panicking.

use rust_decimal::Decimal;

/// Digits behind the point of a ratio. More would only be noise, and would leave less room before
/// the point.
const RATIO_DECIMALS: u32 = 12;
const LARGEST_RATIO: u64 = 1_000_000_000_000;
/// Growth by more than this is an error in the data.
const LARGEST_GROWTH: u32 = 1_000_000;
/// Newton's method doubles the right digits with each step once it is near.
const MOST_STEPS: u32 = 400;

/// `above / below`, rounded to twelve decimals. A ratio beyond a trillion is an error in the data,
/// and none.
pub fn quotient(above: Decimal, below: Decimal) -> Option<Decimal> {
    let ratio = above.checked_div(below)?.round_dp(RATIO_DECIMALS).normalize();
    (ratio.abs() <= Decimal::from(LARGEST_RATIO)).then_some(ratio)
}

/// The middle of two values.
pub fn average(one: Decimal, other: Decimal) -> Option<Decimal> {
    one.checked_add(other)?.checked_div(Decimal::TWO)
}

/// Growth a year from `old` to `new` in so many years, as a ratio: 0.1 is 10 % a year. Only between
/// positive values; years from 1 to 20.
pub fn growth_rate(old: Decimal, new: Decimal, years: u32) -> Option<Decimal> {
    if old <= Decimal::ZERO || new <= Decimal::ZERO || !(1..=20).contains(&years) {
        return None;
    }
    let growth = new.checked_div(old)?;
    let largest = Decimal::from(LARGEST_GROWTH);
    if growth > largest || growth < Decimal::ONE.checked_div(largest)? {
        return None;
    }
    let rate = root(growth, years)?.checked_sub(Decimal::ONE)?;
    Some(rate.round_dp(RATIO_DECIMALS).normalize())
}

/// The root of a value between a millionth and a million, by Newton's method. A power that the
/// crate offers goes through logarithms and is right to seven digits only.
fn root(value: Decimal, degree: u32) -> Option<Decimal> {
    let degree_value = Decimal::from(degree);
    let all_but_one = Decimal::from(degree - 1);
    // Above the root, from where the steps only fall.
    let mut guess = value.max(Decimal::ONE).checked_sub(Decimal::ONE)?.checked_div(degree_value)?;
    guess = guess.checked_add(Decimal::ONE)?;
    for _ in 0..MOST_STEPS {
        // value / guess^(degree - 1), divided step by step: the power itself might not fit.
        let mut rest = value;
        for _ in 1..degree {
            rest = rest.checked_div(guess)?;
        }
        let next = guess.checked_mul(all_but_one)?.checked_add(rest)?.checked_div(degree_value)?;
        if next >= guess || guess.checked_sub(next)? < Decimal::new(1, 16) {
            return Some(next);
        }
        guess = next;
    }
    None
}

#[cfg(test)]
#[path = "arithmetic_tests.rs"]
mod tests;
