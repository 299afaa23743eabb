//! Finds runs of digits with the sign, currency, brackets, scale and unit attached to them.

use rust_decimal::Decimal;

use super::claim_regex::ClaimRegex;
use super::clause::{last_bytes, next_words};
use super::units::{self, NumberSuffix, PrintedCurrency, PrintedUnit, SuffixContext};

/// How the sign of a number is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrintedSign {
    /// No sign.
    Plain,
    /// A plus sign.
    Plus,
    /// A minus sign, or accounting brackets: `$(4,625) million`.
    Minus,
    /// A bracket that may also be an aside: `($700 million)`.
    Bracket,
}

#[derive(Debug, Clone)]
pub(crate) struct DigitRun {
    /// Start of the digits.
    pub(crate) start: usize,
    /// End of the digits, including a closing accounting bracket.
    pub(crate) end: usize,
    /// End of the unit.
    pub(crate) tail: usize,
    /// The digits without separators.
    pub(crate) digits: String,
    /// `None` if the value does not fit a `Decimal`.
    pub(crate) value: Option<Decimal>,
    pub(crate) decimals: u32,
    pub(crate) currency: Option<PrintedCurrency>,
    /// The currency is a word after the number.
    pub(crate) currency_follows: bool,
    pub(crate) sign: PrintedSign,
    pub(crate) unit: Option<PrintedUnit>,
    pub(crate) scale: Option<u32>,
    pub(crate) at_least: bool,
    /// Thousands are separated by commas.
    pub(crate) separated: bool,
}

impl DigitRun {
    /// No currency, unit or scale: most likely an enumeration, a year or part of a name.
    pub(crate) fn is_bare(&self) -> bool {
        self.unit.is_none() && self.scale.is_none() && self.currency.is_none()
    }

    pub(crate) fn is_year(&self) -> bool {
        let is_century = self.digits.starts_with("19") || self.digits.starts_with("20");
        self.is_bare() && !self.separated && self.digits.len() == 4 && is_century
    }
}

pub(crate) static DIGITS: ClaimRegex =
    ClaimRegex::new(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+");

const MINUS: [char; 3] = ['-', '−', '–'];
const CURRENCY_SIGNS: [char; 4] = ['$', '€', '£', '¥'];
const OPERATORS: [char; 5] = ['*', '×', '/', '÷', '+'];
/// Constants common in formulas: "x 100", "/ 365".
const CONSTANTS: &[&str] = &["2", "4", "12", "100", "360", "365", "1000"];

/// How far to the left to look for a formula, in bytes.
const MAX_FORMULA_DISTANCE: usize = 100;

/// Limit on digit runs read per sentence; `MAX_NUMBERS` stops the check long before.
const MAX_RUNS: usize = 1000;

/// Returns every run of digits in a masked sentence that may be a claim.
pub(crate) fn runs(masked: &str) -> Vec<DigitRun> {
    DIGITS
        .find_iter(masked)
        .filter_map(|found| run(masked, found.start(), found.end()))
        .take(MAX_RUNS)
        .collect()
}

fn run(masked: &str, start: usize, end: usize) -> Option<DigitRun> {
    let (before, after) = (&masked[..start], next_words(&masked[end..]));
    let printed = &masked[start..end];
    let (currency, before_currency) = match units::currency_before(before) {
        Some((currency, at)) => (Some(currency), &before[..at]),
        None => (None, before),
    };
    if currency.is_none() && is_glued(before) {
        return None;
    }
    let digits = printed.replace(',', "");
    let decimals = digits.split_once('.').map_or(0, |(_, part)| part.len());
    let mut run = DigitRun {
        start,
        end,
        tail: end,
        value: Decimal::from_str_exact(&digits).ok(),
        decimals: u32::try_from(decimals).unwrap_or(u32::MAX),
        currency,
        currency_follows: false,
        sign: sign_before(before, before_currency),
        unit: None,
        scale: None,
        at_least: false,
        separated: printed.contains(','),
        digits,
    };
    let after = read_statement_bracket(&mut run, before, after);
    let suffix = units::suffix(after, run.before_suffix());
    run.take(suffix);
    if run.unit.is_none()
        && let Some((currency, length)) = units::currency_after(next_words(&masked[run.tail..]))
    {
        run.currency_follows = run.currency.is_none();
        run.currency = run.currency.or(Some(currency));
        run.tail += length;
    }
    if run.is_bare() && (is_name(&run, before, after) || is_constant(&run, before, after)) {
        return None;
    }
    if is_an_aside_or_negative(&run, before, &masked[run.tail..]) {
        run.sign = PrintedSign::Bracket;
    }
    Some(run)
}

impl DigitRun {
    fn before_suffix(&self) -> SuffixContext {
        SuffixContext {
            has_currency: self.currency.is_some(),
            has_decimals: self.decimals > 0,
            digits: self.digits.len(),
        }
    }

    fn take(&mut self, suffix: NumberSuffix) {
        self.unit = suffix.unit;
        self.scale = suffix.scale;
        self.at_least = suffix.at_least;
        self.tail = self.end + suffix.length;
    }
}

/// Whether the digits are attached to a word on their left (FY2025, Q3, v2.0) or continue a number
/// with more separators.
fn is_glued(before: &str) -> bool {
    let Some(previous) = before.chars().next_back() else { return false };
    let in_a_number = matches!(previous, '.' | ',')
        && before
            .trim_end_matches([',', '.'])
            .ends_with(|before: char| before.is_ascii_alphanumeric());
    previous.is_alphanumeric() || matches!(previous, '_' | '#') || in_a_number
}

/// A sign counts only when attached to the number or its currency and at the start of a word: in
/// `10-12` and `COVID-19` it is not a sign, and before a space it is a list marker.
fn sign_before(before: &str, before_currency: &str) -> PrintedSign {
    for text in [before, before_currency] {
        let Some(sign) = text.chars().next_back() else { continue };
        let opens = text[..text.len() - sign.len_utf8()].chars().next_back().is_none_or(|c| {
            c.is_whitespace() || CURRENCY_SIGNS.contains(&c) || "([|~*".contains(c)
        });
        if opens && MINUS.contains(&sign) {
            return PrintedSign::Minus;
        }
        if opens && sign == '+' {
            return PrintedSign::Plus;
        }
    }
    PrintedSign::Plain
}

/// Reads accounting negatives: `$(4,625) million`, `(3.2)%`. Returns the text after the closing
/// bracket if there is one.
fn read_statement_bracket<'t>(run: &mut DigitRun, before: &str, after: &'t str) -> &'t str {
    let Some(inside) = before.strip_suffix('(') else { return after };
    let Some(rest) = after.strip_prefix(')') else { return after };
    let currency = units::currency_before(inside).map(|(currency, _)| currency);
    let is_percent = units::suffix(rest, run.before_suffix()).unit == Some(PrintedUnit::Percent);
    if currency.is_none() && !is_percent {
        return after;
    }
    run.currency = run.currency.or(currency);
    run.sign = PrintedSign::Minus;
    run.end += 1;
    run.tail = run.end;
    rest
}

/// Whether the digits are an ordinal (10th), technology (5G), form (10-K), span (12-month), name
/// (Flight 610) or list marker (1.).
fn is_name(run: &DigitRun, before: &str, after: &str) -> bool {
    let mut next = after.chars();
    let (first, second) = (next.next(), next.next());
    if first.is_some_and(char::is_alphabetic) {
        return true;
    }
    if first == Some('-') && second.is_some_and(char::is_alphabetic) {
        return true;
    }
    let is_plain_integer = run.decimals == 0 && !run.separated;
    if is_plain_integer && follows_a_name(before) {
        return true;
    }
    let opens_the_line =
        before.trim_start_matches(['-', '*', ' ', '\n', '\t', '#', '>']).is_empty();
    opens_the_line && first.is_some_and(|c| ".):".contains(c))
}

/// Whether the digits follow a capitalized word inside the sentence, or an acronym anywhere.
fn follows_a_name(before: &str) -> bool {
    let spaced = before.trim_end();
    if spaced.len() == before.len() {
        return false;
    }
    let word = spaced.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let is_word = word.len() > 1 && word.chars().all(char::is_alphanumeric);
    let is_capitalised = word.starts_with(char::is_uppercase);
    let is_acronym = word.chars().all(|c| c.is_uppercase() || c.is_ascii_digit());
    let is_inside = spaced[..spaced.len() - word.len()].contains(char::is_alphanumeric);
    is_word && is_capitalised && (is_inside || is_acronym)
}

fn is_constant(run: &DigitRun, before: &str, after: &str) -> bool {
    let left = last_bytes(before, MAX_FORMULA_DISTANCE).trim_end();
    let right = after.trim_start();
    let in_a_formula = left.ends_with(OPERATORS)
        || left.ends_with(" x")
        || right.starts_with(['*', '×', '/', '÷'])
        || left.ends_with(" by") && (left.contains("multipl") || left.contains("divid"));
    in_a_formula && CONSTANTS.contains(&run.digits.as_str())
}

/// `($1.2 billion)` alone in the bracket, outside formulas.
fn is_an_aside_or_negative(run: &DigitRun, before: &str, rest: &str) -> bool {
    if run.sign != PrintedSign::Plain
        || run.is_bare()
        || run.currency.is_none() && run.scale.is_none()
    {
        return false;
    }
    let left = before.trim_end_matches(|c: char| CURRENCY_SIGNS.contains(&c) || c == ' ');
    let Some(outside) = left.strip_suffix('(') else { return false };
    let Some(rest) = rest.strip_prefix(')') else { return false };
    let outside = outside.trim_end_matches(['$', ' ', '(']);
    let after_a_number = outside.ends_with(|c: char| c.is_ascii_digit());
    !after_a_number && !outside.ends_with(OPERATORS) && !rest.trim_start().starts_with(OPERATORS)
}
