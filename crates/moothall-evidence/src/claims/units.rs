//! Reads units, scales and currencies as people print them.

use rust_decimal::Decimal;

use super::claim_regex::ClaimRegex;

/// The unit of a printed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrintedUnit {
    /// An amount of money.
    Money,
    /// Money per share.
    PerShare,
    /// A percentage.
    Percent,
    /// Percentage points.
    Points,
    /// Hundredths of a percentage point.
    BasisPoints,
    /// A multiple: "3x", "three times".
    Multiple,
    /// Days.
    Days,
    /// Any other count.
    Count,
    /// Digits that are not parsed: too many, or of another script.
    Unreadable,
}

/// A currency as printed: a three-letter code, or `$` alone, which several currencies use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintedCurrency {
    /// `$` without a letter before it.
    AnyDollar,
    /// An unambiguous currency code.
    Code(&'static str),
}

/// Currencies whose amounts may be quoted with a plain `$`.
const DOLLARS: &[&str] =
    &["USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "ARS", "CLP", "COP", "BRL", "BMD"];

impl PrintedCurrency {
    /// Whether this can be the currency `code` of a sheet.
    pub fn matches_code(self, code: &str) -> bool {
        match self {
            Self::AnyDollar => DOLLARS.contains(&code),
            Self::Code(own) => own == code,
        }
    }
}

/// Codes written before or after an amount.
const CODES: &[&str] = &[
    "USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "CNY", "RMB", "INR", "KRW", "SEK", "NOK",
    "DKK", "BRL", "MXN", "COP", "TWD", "HKD", "SGD",
];

/// Letters before `$` that identify the dollar.
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

/// The currency directly before a number, and its start.
pub(crate) fn currency_before(before: &str) -> Option<(PrintedCurrency, usize)> {
    let tight = before.trim_end_matches(' ');
    let sign = tight.chars().next_back()?;
    let without_sign = &tight[..tight.len() - sign.len_utf8()];
    match sign {
        '$' => {
            let dollar = PREFIXED.iter().find(|(letters, _)| ends_with_word(without_sign, letters));
            Some(match dollar {
                Some((letters, code)) => {
                    (PrintedCurrency::Code(code), without_sign.len() - letters.len())
                }
                None => (PrintedCurrency::AnyDollar, without_sign.len()),
            })
        }
        '€' => Some((PrintedCurrency::Code("EUR"), without_sign.len())),
        '£' => Some((PrintedCurrency::Code("GBP"), without_sign.len())),
        '¥' => Some((PrintedCurrency::Code("JPY"), without_sign.len())),
        _ => CODES
            .iter()
            .find(|code| ends_with_word(tight, code))
            .map(|code| (PrintedCurrency::Code(code), tight.len() - code.len())),
    }
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word)
        .is_some_and(|rest| rest.chars().next_back().is_none_or(|before| !before.is_alphanumeric()))
}

static CURRENCY_AFTER: ClaimRegex = ClaimRegex::new(
    r"^[\s-]?(?:(?P<dollar>(?i:dollars?))|(?P<euro>(?i:euros?))|(?P<yen>(?i:yen))|(?P<code>[A-Z]{3}))\b",
);

/// The currency directly after a number and its scale, and its length.
pub(crate) fn currency_after(rest: &str) -> Option<(PrintedCurrency, usize)> {
    let found = CURRENCY_AFTER.captures(rest)?;
    let length = found.get(0)?.end();
    let currency = if found.name("dollar").is_some() {
        PrintedCurrency::AnyDollar
    } else if found.name("euro").is_some() {
        PrintedCurrency::Code("EUR")
    } else if found.name("yen").is_some() {
        PrintedCurrency::Code("JPY")
    } else {
        let code = found.name("code")?.as_str();
        PrintedCurrency::Code(CODES.iter().find(|known| **known == code)?)
    };
    Some((currency, length))
}

/// The text after the digits: `%`, `bps`, `billion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NumberSuffix {
    pub(crate) unit: Option<PrintedUnit>,
    /// The scale as a power of ten.
    pub(crate) scale: Option<u32>,
    /// A plus sign after the digits: `100+ million`.
    pub(crate) at_least: bool,
    /// Length in bytes, from the end of the digits.
    pub(crate) length: usize,
}

pub(crate) static SUFFIX: ClaimRegex = ClaimRegex::new(concat!(
    r"^(?P<plus>\+)?(?:(?P<glued>x\b|×)|(?P<gap>[\s\u{a0}\u{202f}-]?)(?:",
    r"(?P<percent>%|(?i:percent|per\s?cent|pct)\b)",
    r"|(?P<bps>(?i:bps|bp|basis[ -]points?)\b)",
    r"|(?P<points>(?i:percentage[ -]points?|ppts?|pp|pts|points)\b)",
    r"|(?P<times>(?i:times|fold)\b)",
    r"|(?P<days>(?i:days?)\b)",
    r"|(?P<word>(?i:trillion|billion|million|thousand|bn|bln|mn|mln|mm|tn)\b)",
    r"|(?P<letter>[KkMmBbT])\b))",
));

/// The form of the digits before a suffix; it decides whether a single letter is a scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuffixContext {
    pub(crate) has_currency: bool,
    pub(crate) has_decimals: bool,
    pub(crate) digits: usize,
}

pub(crate) fn suffix(rest: &str, before: SuffixContext) -> NumberSuffix {
    let Some(found) = SUFFIX.captures(rest) else { return NumberSuffix::default() };
    let length = found.get(0).map_or(0, |whole| whole.end());
    let has = |name: &str| found.name(name).is_some();
    let at_least = has("plus");
    let of_unit = |unit| NumberSuffix { unit: Some(unit), scale: None, at_least, length };
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
        return if is_factor { NumberSuffix::default() } else { of_unit(PrintedUnit::Multiple) };
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
        Some(_) => NumberSuffix { unit: None, scale, at_least, length },
        None => NumberSuffix::default(),
    }
}

/// `3M` and `5K` are names; `$3M`, `45M` and `2.5K` are amounts. A lower-case m may mean metres.
fn is_scale(letter: &str, gap: &str, before: SuffixContext) -> bool {
    if before.has_currency {
        return gap != "-";
    }
    gap.is_empty() && (before.has_decimals || before.digits > 1 && letter != "m")
}

/// The power of ten of a scale word or letter.
pub(crate) fn power_of(word: &str) -> Option<u32> {
    match word.to_ascii_lowercase().as_str() {
        "trillion" | "tn" | "t" => Some(12),
        "billion" | "bn" | "bln" | "b" => Some(9),
        "million" | "mn" | "mln" | "mm" | "m" => Some(6),
        "thousand" | "k" => Some(3),
        _ => None,
    }
}

/// Ten to the given power, capped at 18.
pub(crate) fn power_of_ten(power: u32) -> Decimal {
    Decimal::from(10_u64.pow(power.min(18)))
}

#[cfg(test)]
pub(crate) static ALL: &[&ClaimRegex] = &[&CURRENCY_AFTER, &SUFFIX];

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
