//! A number as a text prints it.

use rust_decimal::Decimal;

use super::clause::{ChangeDirection, LossMention, NumberComparator};
use super::digits::PrintedSign;
use super::period_cues::PeriodCue;
use super::units::{PrintedCurrency, PrintedUnit};

/// A number as printed in a sentence, with what the surrounding words say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedNumber {
    /// Start in the sentence, including the currency.
    pub start: usize,
    /// End in the sentence, including the unit.
    pub end: usize,
    /// The number as printed.
    pub text: String,
    /// Magnitude in units: `$4.2 billion` is 4,200,000,000, `46.9%` is 46.9.
    pub value: Decimal,
    /// One unit of the last printed digit.
    pub step: Decimal,
    /// One unit of the last digit that is not a trailing zero.
    pub significant_step: Decimal,
    /// The printed unit.
    pub unit: PrintedUnit,
    /// The printed currency, if any.
    pub currency: Option<PrintedCurrency>,
    /// Whether a scale such as `billion` is printed.
    pub scaled: bool,
    /// How the sign is printed.
    pub sign: PrintedSign,
    /// How exact the words say it is.
    pub comparator: NumberComparator,
    /// The direction given by the words around it.
    pub direction: ChangeDirection,
    /// Whether the words around it call it a loss.
    pub loss: LossMention,
    /// The period given by the words beside it.
    pub period_cue: PeriodCue,
}

impl PrintedNumber {
    /// Three or more significant digits: few facts share them by chance.
    pub fn is_precise(&self) -> bool {
        let digits: String = self.text.chars().filter(char::is_ascii_digit).collect();
        digits.trim_matches('0').len() >= 3
    }
}
