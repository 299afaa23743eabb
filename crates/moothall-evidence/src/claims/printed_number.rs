//! A number as a text prints it.

use rust_decimal::Decimal;

use super::clause::{Comparator, Direction, Loss};
use super::digits::Sign;
use super::moment::Moment;
use super::units::{Currency, PrintedUnit};

/// One number of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedNumber {
    /// Where it begins in the sentence, with its currency.
    pub start: usize,
    /// Where it ends, with its unit.
    pub end: usize,
    /// As it is printed.
    pub text: String,
    /// Its magnitude in units: `$4.2 billion` is 4,200,000,000, `46.9%` is 46.9.
    pub value: Decimal,
    /// One unit of the last printed digit.
    pub step: Decimal,
    /// One unit of the last digit that is not a trailing zero.
    pub significant_step: Decimal,
    /// What it counts.
    pub unit: PrintedUnit,
    /// In which currency.
    pub currency: Option<Currency>,
    /// Whether a scale such as `billion` is printed.
    pub scaled: bool,
    /// How its sign is printed.
    pub sign: Sign,
    /// How exact it is said to be.
    pub comparator: Comparator,
    /// Which way the words around it point.
    pub direction: Direction,
    /// Whether the words around it call it a loss.
    pub loss: Loss,
    /// Which period the words beside it mean.
    pub moment: Moment,
}

impl PrintedNumber {
    /// Three or more significant digits: few enough facts share them by chance.
    pub fn is_precise(&self) -> bool {
        let digits: String = self.text.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').len() >= 3
    }
}
