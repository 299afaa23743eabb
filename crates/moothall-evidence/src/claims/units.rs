//! Units, scales and currencies as people print them.

use rust_decimal::Decimal;

use super::pattern::Pattern;

/// What a printed number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrintedUnit {
    /// An amount of money.
    Money,
    /// Money for each share.
    PerShare,
    /// A percentage.
    Percent,
    /// Percentage points.
    Points,
    /// Hundredths of a percentage point.
    BasisPoints,
    /// How many times.
    Multiple,
    /// Days.
    Days,
    /// Anything else that is counted.
    Count,
    /// Digits that we do not read: too many, or of another script.
    Unreadable,
}

/// A currency as printed: a code of three letters, or `$` alone, which several currencies use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// `$` without a letter before it.
    AnyDollar,
    /// A currency with a name of its own.
    Code(&'static str),
}

/// Sheets in these currencies may be quoted with a plain `$`.
const DOLLARS: &[&str] =
    &["USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "ARS", "CLP", "COP", "BRL", "BMD"];

impl Currency {
    /// Whether a sheet in `code` can be meant.
    pub fn can_mean(self, code: &str) -> bool {
        match self {
            Self::AnyDollar => DOLLARS.contains(&code),
            Self::Code(own) => own == code,
        }
    }
}

/// Codes that people write before or after an amount.
const CODES: &[&str] = &[
    "USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "CNY", "RMB", "INR", "KRW", "SEK", "NOK",
    "DKK", "BRL", "MXN", "COP", "TWD", "HKD", "SGD",
];

/// Letters before `$` that say which dollar it is.
const PREFIXED: &[(&str, &str)] = &[
    ("US", "USD"),
    ("HK", "HKD"),
    ("NT", "TWD"),
    ("NZ", "NZD"),
    ("C", "CAD"),
    ("A", "AUD"),
    ("S", "SGD"),
    ("R", "BRL"),
];

/// A currency that stands right before a number, and where it begins.
pub(super) fn currency_before(before: &str) -> Option<(Currency, usize)> {
    let tight = before.trim_end_matches(' ');
    let sign = tight.chars().next_back()?;
    let without_sign = &tight[..tight.len() - sign.len_utf8()];
    match sign {
        '$' => {
            let dollar = PREFIXED.iter().find(|(letters, _)| ends_with_word(without_sign, letters));
            Some(match dollar {
                Some((letters, code)) => (Currency::Code(code), without_sign.len() - letters.len()),
                None => (Currency::AnyDollar, without_sign.len()),
            })
        }
        '€' => Some((Currency::Code("EUR"), without_sign.len())),
        '£' => Some((Currency::Code("GBP"), without_sign.len())),
        '¥' => Some((Currency::Code("JPY"), without_sign.len())),
        _ => CODES
            .iter()
            .find(|code| ends_with_word(tight, code))
            .map(|code| (Currency::Code(code), tight.len() - code.len())),
    }
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word)
        .is_some_and(|rest| rest.chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
}

static CURRENCY_AFTER: Pattern = Pattern::new(
    r"^[\s-]?(?:(?P<dollar>(?i:dollars?))|(?P<euro>(?i:euros?))|(?P<yen>(?i:yen))|(?P<code>[A-Z]{3}))\b",
);

/// A currency that stands right after a number and its scale, and its length.
pub(super) fn currency_after(rest: &str) -> Option<(Currency, usize)> {
    let found = CURRENCY_AFTER.captures(rest)?;
    let length = found.get(0)?.end();
    let currency = if found.name("dollar").is_some() {
        Currency::AnyDollar
    } else if found.name("euro").is_some() {
        Currency::Code("EUR")
    } else if found.name("yen").is_some() {
        Currency::Code("JPY")
    } else {
        let code = found.name("code")?.as_str();
        Currency::Code(CODES.iter().find(|known| **known == code)?)
    };
    Some((currency, length))
}

/// What follows the digits: `%`, `bps`, `billion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Suffix {
    pub(super) unit: Option<PrintedUnit>,
    /// The power of ten of a scale.
    pub(super) scale: Option<u32>,
    /// `100+ million`.
    pub(super) at_least: bool,
    /// Bytes after the digits.
    pub(super) length: usize,
}

pub(super) static SUFFIX: Pattern = Pattern::new(concat!(
    r"^(?P<plus>\+)?(?:(?P<glued>x\b|×)|(?P<gap>[\s\u{a0}\u{202f}-]?)(?:",
    r"(?P<percent>%|(?i:percent|per\s?cent|pct)\b)",
    r"|(?P<bps>(?i:bps|bp|basis[ -]points?)\b)",
    r"|(?P<points>(?i:percentage[ -]points?|ppts?|pp|pts|points)\b)",
    r"|(?P<times>(?i:times|fold)\b)",
    r"|(?P<days>(?i:days?)\b)",
    r"|(?P<word>(?i:trillion|billion|million|thousand|bn|bln|mn|mln|mm|tn)\b)",
    r"|(?P<letter>[KkMmBbT])\b))",
));

/// How the digits before a suffix look; a lone letter is a scale only after some of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before {
    pub(super) has_currency: bool,
    pub(super) has_decimals: bool,
    pub(super) digits: usize,
}

pub(super) fn suffix(rest: &str, before: Before) -> Suffix {
    let Some(found) = SUFFIX.captures(rest) else { return Suffix::default() };
    let length = found.get(0).map_or(0, |whole| whole.end());
    let has = |name: &str| found.name(name).is_some();
    let at_least = has("plus");
    let of_unit = |unit| Suffix { unit: Some(unit), scale: None, at_least, length };
    if has("percent") {
        return of_unit(PrintedUnit::Percent);
    }
    if has("bps") {
        return of_unit(PrintedUnit::BasisPoints);
    }
    if has("points") {
        return of_unit(PrintedUnit::Points);
    }
    if has("glued") || has("times") {
        // "3×100" is a formula.
        let is_factor = rest[length..].starts_with(|next: char| next.is_ascii_digit());
        return if is_factor { Suffix::default() } else { of_unit(PrintedUnit::Multiple) };
    }
    if has("days") {
        return of_unit(PrintedUnit::Days);
    }
    let gap = found.name("gap").map_or("", |gap| gap.as_str());
    let scale = match (found.name("word"), found.name("letter")) {
        (Some(word), _) => power_of(word.as_str()),
        (_, Some(letter)) if is_scale(letter.as_str(), gap, before) => power_of(letter.as_str()),
        _ => None,
    };
    match scale {
        Some(_) => Suffix { unit: None, scale, at_least, length },
        None => Suffix::default(),
    }
}

/// `3M` and `5K` are names; `$3M`, `45M` and `2.5K` are not. A small m may be metres.
fn is_scale(letter: &str, gap: &str, before: Before) -> bool {
    if before.has_currency {
        return gap != "-";
    }
    gap.is_empty() && (before.has_decimals || before.digits > 1 && letter != "m")
}

/// The power of ten that a word or letter of scale stands for.
pub(super) fn power_of(word: &str) -> Option<u32> {
    match word.to_ascii_lowercase().as_str() {
        "trillion" | "tn" | "t" => Some(12),
        "billion" | "bn" | "bln" | "b" => Some(9),
        "million" | "mn" | "mln" | "mm" | "m" => Some(6),
        "thousand" | "k" => Some(3),
        _ => None,
    }
}

/// Ten to a power that a scale can have.
pub(super) fn ten_to(power: u32) -> Decimal {
    Decimal::from(10_u64.pow(power.min(18)))
}

#[cfg(test)]
pub(super) static ALL: &[&Pattern] = &[&CURRENCY_AFTER, &SUFFIX];

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
