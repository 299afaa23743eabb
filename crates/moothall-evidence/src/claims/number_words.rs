//! Reads numbers in words: "five percent", "two hundred basis points", "doubled", "a third of".

use rust_decimal::Decimal;

use super::claim_regex::ClaimRegex;
use super::clause::{self, ChangeDirection};
use super::digits::PrintedSign;
use super::period_cues::period_cue;
use super::printed_number::PrintedNumber;
use super::units::{self, PrintedUnit};

pub(crate) static NUMBER_WORDS: ClaimRegex = ClaimRegex::new(concat!(
    r"\b(?P<first>half an?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve",
    r"|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen",
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)",
    r"(?:[- ](?P<ones>one|two|three|four|five|six|seven|eight|nine))?",
    r"(?P<hundred>[- ]hundred)?",
    r"(?:[- ]point(?P<decimals>(?:[- ](?:zero|oh|one|two|three|four|five|six|seven|eight|nine)){1,4}))?",
    r"[- ]",
    r"(?P<unit>percentage[- ]points?|percent|per cent|basis[- ]points?|billion|million|trillion",
    r"|times|fold)\b",
));

pub(crate) static MULTIPLE_VERBS: ClaimRegex = ClaimRegex::new(concat!(
    r"\b(?:doubled|doubling|tripled|tripling|quadrupled|halved|halving|twice",
    r"|two[- ]thirds of|2/3 of|three[- ]quarters of|3/4 of|one[- ]third of|1/3 of|a third of",
    r"|half of|half the|half its|a quarter of|one[- ]quarter of|1/4 of",
    r"|a fifth of|one[- ]fifth of|a tenth of|one[- ]tenth of)\b",
));

/// Fractions without a whole: "rose by a third", "a quarter more than". Only the fraction is the
/// number.
pub(crate) static FRACTION_PHRASES: ClaimRegex = ClaimRegex::new(concat!(
    r"\b(?:by (?P<by>(?:almost |nearly |about |over |more than )?",
    r"(?:an?|one|two|three)[- ](?:half|thirds?|quarters?|fifths?|tenths?))",
    r"|(?P<than>(?:an?|one|two|three)[- ](?:half|thirds?|quarters?|fifths?|tenths?))",
    r" (?:more|less|fewer|higher|lower|larger|smaller|above|below))\b",
));

/// Adds the spelled-out numbers of `lower`, the masked sentence in lower case.
pub(crate) fn push_spelled_numbers(sentence: &str, lower: &str, found: &mut Vec<PrintedNumber>) {
    for words in NUMBER_WORDS.captures_iter(lower) {
        let Some(whole) = words.get(0) else { continue };
        let word = |name: &str| words.name(name).map_or("", |found| found.as_str());
        let Some((hundredths, is_article)) = value_of(word("first")) else { continue };
        let unit_word = word("unit");
        let power = units::power_of(unit_word);
        let is_hundred = !word("hundred").is_empty();
        // An article counts as a number only before a scale, a hundred or a percentage point, not
        // in "a times".
        let is_point = unit_word.starts_with("percentage") || hundredths < 100;
        if is_article && power.is_none() && !is_hundred && !is_point {
            continue;
        }
        let ones = value_of(word("ones")).map_or(0, |(value, _)| value);
        let hundred = if is_hundred { 100 } else { 1 };
        let scale = units::power_of_ten(power.unwrap_or(0));
        let decimals = Decimals::of(word("decimals"));
        let value = (Decimal::new((hundredths + ones) * hundred, 2) + decimals.value) * scale;
        let rest = clause::next_words(&lower[whole.end()..]);
        let currency = units::currency_after(rest).filter(|_| power.is_some());
        let unit = match unit_word {
            "percent" | "per cent" => PrintedUnit::Percent,
            "times" | "fold" => PrintedUnit::Multiple,
            word if word.starts_with("percentage") => PrintedUnit::Points,
            word if word.starts_with("basis") => PrintedUnit::BasisPoints,
            _ if currency.is_some() => PrintedUnit::Money,
            _ => PrintedUnit::Count,
        };
        let end = whole.end() + currency.map_or(0, |(_, length)| length);
        let step = match decimals.step {
            Some(step) => scale * step,
            None if hundredths < 100 => scale / Decimal::TEN,
            None => scale,
        };
        let number = PrintedNumber {
            currency: currency.map(|(currency, _)| currency),
            scaled: power.is_some(),
            ..of_words(sentence, lower, whole.start(), end, unit, value, step)
        };
        found.push(number);
    }
    for verb in MULTIPLE_VERBS.find_iter(lower) {
        if is_an_idiom(verb.as_str(), &lower[..verb.start()], &lower[verb.end()..]) {
            continue;
        }
        let (unit, value, step) = verb_value(&verb.as_str().replace(' ', "-"));
        found.push(of_words(sentence, lower, verb.start(), verb.end(), unit, value, step));
    }
    for part in FRACTION_PHRASES.captures_iter(lower) {
        let Some(words) = part.name("by").or_else(|| part.name("than")) else { continue };
        let said = words.as_str();
        // Skip the comparator, which is not part of the number.
        let at = ["an-", "a-", "one-", "two-", "three-", "an ", "a ", "one ", "two ", "three "]
            .iter()
            .find_map(|count| said.rfind(count))
            .unwrap_or(0);
        let Some((value, step)) = fraction_percent(&said[at..]) else { continue };
        let (start, unit) = (words.start() + at, PrintedUnit::Percent);
        let number = of_words(sentence, lower, start, words.end(), unit, value, step);
        // "slow the build by one quarter" is a duration.
        if part.name("than").is_some() || number.direction != ChangeDirection::Unsaid {
            found.push(number);
        }
    }
}

/// The digits after "point" in "one point two five".
struct Decimals {
    value: Decimal,
    /// The value of the last digit; `None` without digits.
    step: Option<Decimal>,
}

impl Decimals {
    fn of(words: &str) -> Self {
        let (mut value, mut step) = (Decimal::ZERO, None);
        for word in words.split(['-', ' ']).filter(|word| !word.is_empty()) {
            // "zero" and "oh" have no value.
            let digit = value_of(word).map_or(0, |(hundredths, _)| hundredths / 100);
            let place = step.unwrap_or(Decimal::ONE) / Decimal::TEN;
            value += Decimal::from(digit) * place;
            step = Some(place);
        }
        Self { value, step }
    }
}

fn of_words(
    sentence: &str,
    lower: &str,
    start: usize,
    end: usize,
    unit: PrintedUnit,
    value: Decimal,
    step: Decimal,
) -> PrintedNumber {
    let reach = clause::clause_before(&lower[..start]);
    let right = clause::next_words(&lower[end..]);
    let loss = clause::loss(reach, right);
    PrintedNumber {
        start,
        end,
        text: sentence.get(start..end).unwrap_or_default().to_owned(),
        value,
        step,
        significant_step: step,
        unit,
        currency: None,
        scaled: false,
        sign: PrintedSign::Plain,
        comparator: clause::comparator(reach),
        direction: clause::direction(reach, right, loss),
        loss,
        period_cue: period_cue(reach, right),
    }
}

/// The value of a number word in hundredths, and whether it is an article.
fn value_of(word: &str) -> Option<(i64, bool)> {
    const SMALL_NUMBER_WORDS: &[&str] = &[
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: &[&str] =
        &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    let place = |list: &[&str]| {
        list.iter().position(|known| *known == word).and_then(|at| i64::try_from(at).ok())
    };
    match word {
        "a" | "an" => Some((100, true)),
        "half a" | "half an" => Some((50, true)),
        _ => place(SMALL_NUMBER_WORDS)
            .map(|at| at + 1)
            .or_else(|| place(TENS).map(|at| (at + 2) * 10))
            .map(|value| (value * 100, false)),
    }
}

fn is_an_idiom(verb: &str, before: &str, after: &str) -> bool {
    let next = after.trim_start();
    match verb {
        // "the first half of 2023"
        "half of" => ["first", "second", "back", "front", "latter", "other", "better"]
            .iter()
            .any(|word| before.trim_end().ends_with(word)),
        "doubled" | "doubling" => next.starts_with("down"),
        // "twice a year", "think twice"
        "twice" => {
            ["a year", "a month", "a week", "a day", "per ", "yearly"]
                .iter()
                .any(|often| next.starts_with(often))
                || before.trim_end().ends_with("think")
        }
        // "half the battle"
        "half the" => next.starts_with("battle"),
        _ => false,
    }
}

/// The value of "a third" in percent, and its step.
fn fraction_percent(words: &str) -> Option<(Decimal, Decimal)> {
    let (count, part) = words.split_once([' ', '-'])?;
    let count = match count {
        "a" | "an" | "one" => 1,
        "two" => 2,
        "three" => 3,
        _ => return None,
    };
    let (tenths, step) = match part.trim_end_matches('s') {
        "half" => (500, 4),
        "third" => (333, 4),
        "quarter" => (250, 3),
        "fifth" => (200, 3),
        "tenth" => (100, 2),
        _ => return None,
    };
    Some((Decimal::new(tenths * count, 1), Decimal::from(step)))
}

/// Words are less exact than digits, so their step is wide. Spaces are already replaced by dashes.
fn verb_value(verb: &str) -> (PrintedUnit, Decimal, Decimal) {
    let times =
        |tenths, step| (PrintedUnit::Multiple, Decimal::new(tenths, 1), Decimal::new(step, 2));
    match verb {
        "doubled" | "doubling" | "twice" => times(20, 20),
        "tripled" | "tripling" => times(30, 30),
        "quadrupled" => times(40, 40),
        "halved" | "halving" => times(5, 5),
        _ => {
            let part = match verb.trim_end_matches("-of") {
                "2/3" => "two-thirds",
                "1/3" => "one-third",
                "3/4" => "three-quarters",
                "1/4" => "one-quarter",
                "half" | "half-the" | "half-its" => "one-half",
                words => words,
            };
            let (value, step) = fraction_percent(part).unwrap_or((Decimal::ZERO, Decimal::ONE));
            (PrintedUnit::Percent, value, step)
        }
    }
}
