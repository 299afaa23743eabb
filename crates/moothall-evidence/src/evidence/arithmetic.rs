//! Decimal arithmetic that returns `None` on overflow instead of panicking.

use rust_decimal::Decimal;

/// Decimal places of a ratio. More would be noise and would leave fewer digits before the point.
const RATIO_DECIMALS: u32 = 12;
const LARGEST_RATIO: u64 = 1_000_000_000_000;
/// Growth beyond this is an error in the data.
const LARGEST_GROWTH: u32 = 1_000_000;
/// Newton's method doubles the number of correct digits per step once it is close.
const MAX_NEWTON_STEPS: u32 = 400;

/// `above / below`, rounded to twelve decimals. Returns `None` for a ratio beyond a trillion, which
/// is an error in the data.
pub fn quotient(above: Decimal, below: Decimal) -> Option<Decimal> {
    let ratio = above.checked_div(below)?.round_dp(RATIO_DECIMALS).normalize();
    (ratio.abs() <= Decimal::from(LARGEST_RATIO)).then_some(ratio)
}

/// The mean of two values.
pub fn average(one: Decimal, other: Decimal) -> Option<Decimal> {
    one.checked_add(other)?.checked_div(Decimal::TWO)
}

/// Annual growth from `old` to `new` over `years` years, as a ratio: 0.1 is 10 % a year. Both
/// values must be positive; `years` must be 1 to 20.
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

/// The root of a value between a millionth and a million, by Newton's method. The power function of
/// `rust_decimal` uses logarithms and is correct to seven digits only.
fn root(value: Decimal, degree: u32) -> Option<Decimal> {
    let degree_value = Decimal::from(degree);
    let all_but_one = Decimal::from(degree - 1);
    // Start above the root, from where every step decreases.
    let mut guess = value.max(Decimal::ONE).checked_sub(Decimal::ONE)?.checked_div(degree_value)?;
    guess = guess.checked_add(Decimal::ONE)?;
    for _ in 0..MAX_NEWTON_STEPS {
        // value / guess^(degree - 1), divided step by step because the power itself may overflow.
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
