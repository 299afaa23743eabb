//! Runs of digits with what is glued to them: sign, currency, brackets, scale, unit.

use rust_decimal::Decimal;

use super::clause::{last_bytes, next_words};
use super::pattern::Pattern;
use super::units::{self, Before, Currency, PrintedUnit, Suffix};

/// How the sign of a number is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// Not at all.
    Plain,
    /// With a plus.
    Plus,
    /// With a minus, or in the brackets of a statement: `$(4,625) million`.
    Minus,
    /// In a bracket that may also be an aside: `($700 million)`.
    Bracket,
}

/// One run of digits.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Where the digits begin.
    pub(super) start: usize,
    /// Where the digits end, with a closing bracket of a statement.
    pub(super) end: usize,
    /// Where the unit ends.
    pub(super) tail: usize,
    /// The digits without separators.
    pub(super) digits: String,
    /// What they say; `None` if that is more than we can hold.
    pub(super) value: Option<Decimal>,
    pub(super) decimals: u32,
    pub(super) currency: Option<Currency>,
    /// The currency is a word that follows.
    pub(super) currency_follows: bool,
    pub(super) sign: Sign,
    pub(super) unit: Option<PrintedUnit>,
    pub(super) scale: Option<u32>,
    pub(super) at_least: bool,
    /// Thousands are separated by commas.
    pub(super) separated: bool,
}

impl Run {
    /// No currency, no unit, no scale: most likely an enumeration, a year or a name.
    pub(super) fn is_bare(&self) -> bool {
        self.unit.is_none() && self.scale.is_none() && self.currency.is_none()
    }

    pub(super) fn is_year(&self) -> bool {
        let is_century = self.digits.starts_with("19") || self.digits.starts_with("20");
        self.is_bare() && !self.separated && self.digits.len() == 4 && is_century
    }
}

pub(super) static DIGITS: Pattern =
    Pattern::new(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+");

const MINUS: [char; 3] = ['-', '−', '–'];
const CURRENCY_SIGNS: [char; 4] = ['$', '€', '£', '¥'];
const OPERATORS: [char; 5] = ['*', '×', '/', '÷', '+'];
/// Numbers that formulas are full of: "x 100", "/ 365".
const CONSTANTS: &[&str] = &["2", "4", "12", "100", "360", "365", "1000"];

/// How far a formula is looked for, in bytes.
const FORMULA_REACH: usize = 100;

/// Runs of one sentence beyond this are not read; the check stops long before.
const MAX_RUNS: usize = 1000;

/// Every run of digits of a masked sentence that may be a claim.
pub(super) fn runs(masked: &str) -> Vec<Run> {
    DIGITS
        .find_iter(masked)
        .filter_map(|found| run(masked, found.start(), found.end()))
        .take(MAX_RUNS)
        .collect()
}

fn run(masked: &str, start: usize, end: usize) -> Option<Run> {
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
    let mut run = Run {
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
    if run.is_bare() && (is_a_name(&run, before, after) || is_a_constant(&run, before, after)) {
        return None;
    }
    if is_an_aside_or_negative(&run, before, &masked[run.tail..]) {
        run.sign = Sign::Bracket;
    }
    Some(run)
}

impl Run {
    fn before_suffix(&self) -> Before {
        Before {
            has_currency: self.currency.is_some(),
            has_decimals: self.decimals > 0,
            digits: self.digits.len(),
        }
    }

    fn take(&mut self, suffix: Suffix) {
        self.unit = suffix.unit;
        self.scale = suffix.scale;
        self.at_least = suffix.at_least;
        self.tail = self.end + suffix.length;
    }
}

/// Glued to a word on its left: FY2025, Q3, v2.0; or the rest of a number with more separators.
fn is_glued(before: &str) -> bool {
    let Some(previous) = before.chars().next_back() else { return false };
    let in_a_number = matches!(previous, '.' | ',')
        && before
            .trim_end_matches([',', '.'])
            .ends_with(|before: char| before.is_ascii_alphanumeric());
    previous.is_alphanumeric() || matches!(previous, '_' | '#') || in_a_number
}

/// A sign counts only glued to the number or to its currency, and at the beginning of a word: in
/// `10-12` and `COVID-19` it is none, and before a space it is the mark of a list.
fn sign_before(before: &str, before_currency: &str) -> Sign {
    for text in [before, before_currency] {
        let Some(sign) = text.chars().next_back() else { continue };
        let opens = text[..text.len() - sign.len_utf8()].chars().next_back().is_none_or(|c| {
            c.is_whitespace() || CURRENCY_SIGNS.contains(&c) || "([|~*".contains(c)
        });
        if opens && MINUS.contains(&sign) {
            return Sign::Minus;
        }
        if opens && sign == '+' {
            return Sign::Plus;
        }
    }
    Sign::Plain
}

/// Negatives as statements print them: `$(4,625) million`, `(3.2)%`. What follows is after the
/// bracket then.
fn read_statement_bracket<'t>(run: &mut Run, before: &str, after: &'t str) -> &'t str {
    let Some(inside) = before.strip_suffix('(') else { return after };
    let Some(rest) = after.strip_prefix(')') else { return after };
    let currency = units::currency_before(inside).map(|(currency, _)| currency);
    let is_percent = units::suffix(rest, run.before_suffix()).unit == Some(PrintedUnit::Percent);
    if currency.is_none() && !is_percent {
        return after;
    }
    run.currency = run.currency.or(currency);
    run.sign = Sign::Minus;
    run.end += 1;
    run.tail = run.end;
    rest
}

/// Ordinals (10th), technologies (5G), forms (10-K), spans (12-month), names (Flight 610), list
/// markers (1.).
fn is_a_name(run: &Run, before: &str, after: &str) -> bool {
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

/// A capitalised word inside the sentence, or an acronym anywhere.
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

fn is_a_constant(run: &Run, before: &str, after: &str) -> bool {
    let left = last_bytes(before, FORMULA_REACH).trim_end();
    let right = after.trim_start();
    let in_a_formula = left.ends_with(OPERATORS)
        || left.ends_with(" x")
        || right.starts_with(['*', '×', '/', '÷'])
        || left.ends_with(" by") && (left.contains("multipl") || left.contains("divid"));
    in_a_formula && CONSTANTS.contains(&run.digits.as_str())
}

/// `($1.2 billion)` with nothing else in the bracket, outside formulas.
fn is_an_aside_or_negative(run: &Run, before: &str, rest: &str) -> bool {
    if run.sign != Sign::Plain || run.is_bare() || run.currency.is_none() && run.scale.is_none() {
        return false;
    }
    let left = before.trim_end_matches(|c: char| CURRENCY_SIGNS.contains(&c) || c == ' ');
    let Some(outside) = left.strip_suffix('(') else { return false };
    let Some(rest) = rest.strip_prefix(')') else { return false };
    let outside = outside.trim_end_matches(['$', ' ', '(']);
    let after_a_number = outside.ends_with(|c: char| c.is_ascii_digit());
    !after_a_number && !outside.ends_with(OPERATORS) && !rest.trim_start().starts_with(OPERATORS)
}
