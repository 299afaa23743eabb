//! Reads what the words around a number say about it: how exact it is, its direction, and whether
//! it is a loss.

/// How exact the text says a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberComparator {
    /// As printed, without a qualifier.
    Exact,
    /// "about", "roughly", "some".
    About,
    /// "more than", "at least".
    Over,
    /// "less than", "at most".
    Under,
    /// "nearly", "almost": slightly less.
    Nearly,
}

/// The direction given by the words around a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeDirection {
    /// An increase, or a positive difference.
    Up,
    /// A decrease, or a negative difference.
    Down,
    /// No direction word.
    Unsaid,
}

/// Whether the words call the number a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossMention {
    /// A loss word directly beside the number: "a net loss of $1.3 billion".
    Beside,
    /// A loss word elsewhere in the same clause.
    Nearby,
    /// No loss word.
    Unsaid,
}

/// Words farther from a number than this, in bytes, do not apply to it.
const MAX_WORD_DISTANCE: usize = 70;

const COMPARATORS: &[(&str, NumberComparator)] = &[
    ("just under", NumberComparator::Nearly),
    ("just below", NumberComparator::Nearly),
    ("shy of", NumberComparator::Nearly),
    ("nearly", NumberComparator::Nearly),
    ("almost", NumberComparator::Nearly),
    ("no more than", NumberComparator::Under),
    ("no less than", NumberComparator::Over),
    ("more than", NumberComparator::Over),
    ("greater than", NumberComparator::Over),
    ("in excess of", NumberComparator::Over),
    ("upwards of", NumberComparator::Over),
    ("north of", NumberComparator::Over),
    ("over", NumberComparator::Over),
    ("above", NumberComparator::Over),
    ("at least", NumberComparator::Over),
    ("exceeding", NumberComparator::Over),
    ("exceeded", NumberComparator::Over),
    ("exceeds", NumberComparator::Over),
    ("surpassing", NumberComparator::Over),
    ("surpassed", NumberComparator::Over),
    ("topped", NumberComparator::Over),
    (">", NumberComparator::Over),
    ("less than", NumberComparator::Under),
    ("fewer than", NumberComparator::Under),
    ("under", NumberComparator::Under),
    ("below", NumberComparator::Under),
    ("at most", NumberComparator::Under),
    ("up to", NumberComparator::Under),
    ("<", NumberComparator::Under),
    ("close to", NumberComparator::About),
    ("about", NumberComparator::About),
    ("around", NumberComparator::About),
    ("roughly", NumberComparator::About),
    ("approximately", NumberComparator::About),
    ("approx.", NumberComparator::About),
    ("approx", NumberComparator::About),
    ("some", NumberComparator::About),
    ("circa", NumberComparator::About),
    ("c.", NumberComparator::About),
    ("ca.", NumberComparator::About),
    ("~", NumberComparator::About),
    ("≈", NumberComparator::About),
];

const UP: &[&str] = &[
    "accelerated",
    "accelerates",
    "added",
    "adds",
    "climbed",
    "climbs",
    "expand",
    "expanded",
    "expanding",
    "expands",
    "expansion",
    "gained",
    "gains",
    "grew",
    "grow",
    "growing",
    "grown",
    "grows",
    "growth",
    "higher",
    "improved",
    "improvement",
    "improves",
    "increase",
    "increased",
    "increases",
    "increasing",
    "jumped",
    "jumps",
    "lifted",
    "lifts",
    "outgrew",
    "outgrows",
    "raised",
    "raises",
    "rebounded",
    "rebounding",
    "rebounds",
    "recovered",
    "recovering",
    "recovers",
    "rise",
    "risen",
    "rises",
    "rising",
    "rose",
    "soared",
    "soars",
    "surged",
    "surges",
    "up",
    "widened",
    "widens",
];

const DOWN: &[&str] = &[
    "compressed",
    "compression",
    "contracted",
    "contraction",
    "cut",
    "cuts",
    "decline",
    "declined",
    "declines",
    "declining",
    "decrease",
    "decreased",
    "decreases",
    "decreasing",
    "down",
    "drop",
    "dropped",
    "drops",
    "eroded",
    "erodes",
    "fall",
    "fallen",
    "falling",
    "falls",
    "fell",
    "loses",
    "lost",
    "lower",
    "narrowed",
    "narrows",
    "plunged",
    "plunges",
    "reduced",
    "reduces",
    "shed",
    "sheds",
    "shrank",
    "shrinking",
    "shrinks",
    "shrunk",
    "slid",
    "slides",
    "slipped",
    "slips",
    "tumbled",
    "tumbles",
    "worsened",
    "worsens",
];

/// A direction word does not apply past these: "declined 2.8% before recovering 2.0%".
const DIRECTION_BOUNDARIES: &[&str] = &[
    "before", "while", "then", "whereas", "but", "after", "although", "and", "despite", "against",
];

/// A loss word does not apply past these. The list is shorter than `DIRECTION_BOUNDARIES`: "a net
/// loss of $430 million against $317 million a year before".
const LOSS_BOUNDARIES: &[&str] =
    &["while", "then", "whereas", "but", "although", "and", "despite", "into"];

const UP_AFTER: &[&str] = &[
    "increase",
    "growth",
    "rise",
    "gain",
    "jump",
    "expansion",
    "improvement",
    "higher",
    "more",
    "uplift",
];

const DOWN_AFTER: &[&str] = &[
    "decrease",
    "decline",
    "drop",
    "fall",
    "reduction",
    "contraction",
    "lower",
    "fewer",
    "less",
    "cut",
];

/// Words between a number and its noun: "a 5.7% year-over-year decline".
const FILLERS: &[&str] =
    &["year", "over", "on", "annual", "yearly", "yoy", "sequential", "quarterly", "organic", "net"];

/// These reverse direction for a loss: an improved loss is smaller.
const REVERSED_BY_LOSS: &[&str] = &["improved", "improvement", "improves", "worsened", "worsens"];

const LOSSES: &[&str] = &[
    "loss", "losses", "lost", "deficit", "negative", "burn", "burned", "burnt", "outflow",
    "outflows",
];

/// Weaker words: they explain a negative fact but do not contradict a positive one.
const MINUSES: &[&str] = &["used", "consumed", "minus", "debt"];

/// Words before "loss" that do not mean the company's own loss: a provision for credit losses is a
/// cost with a positive sign.
const NOT_OWN_LOSSES: &[&str] = &["credit", "loan", "lease", "expected", "impairment", "for"];

/// The part of the clause to the left of a number, in lower case. A bracket that holds only the
/// number continues the clause before it: "cut inventories by $1.6bn (21.5%)".
pub(crate) fn clause_before(left: &str) -> &str {
    let near = last_bytes(left, MAX_WORD_DISTANCE);
    let near = near
        .trim_end_matches(|c: char| c.is_whitespace() || "$€£¥+-−–~".contains(c))
        .strip_suffix('(')
        .unwrap_or(near);
    near.rfind([';', '(']).map_or(near, |at| &near[at + 1..])
}

/// At most `most` bytes from the end. Bounded because every number scans to its left and sentences
/// may be long.
pub(crate) fn last_bytes(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// At most `most` bytes from the start.
pub(crate) fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The text directly after a number.
pub(crate) fn next_words(right: &str) -> &str {
    first_bytes(right, MAX_WORD_DISTANCE)
}

pub(crate) fn comparator(reach: &str) -> NumberComparator {
    let bare = without_currency(reach);
    COMPARATORS
        .iter()
        .find(|(words, _)| ends_with_words(bare, words))
        .map_or(NumberComparator::Exact, |(_, comparator)| *comparator)
}

/// Strips the currency between a word and its number: "over US$ 5 billion".
fn without_currency(reach: &str) -> &str {
    let is_sign = |c: char| c.is_whitespace() || "$€£¥+-−–(".contains(c);
    let bare = reach.trim_end_matches(is_sign);
    ["us", "usd", "eur", "gbp", "a", "an"]
        .iter()
        .find_map(|word| bare.strip_suffix(word))
        .filter(|rest| rest.ends_with(char::is_whitespace))
        .map_or(bare, |rest| rest.trim_end())
}

fn ends_with_words(text: &str, words: &str) -> bool {
    text.strip_suffix(words).is_some_and(|before| {
        let is_sign = words.starts_with(|c: char| !c.is_alphabetic());
        is_sign || before.chars().next_back().is_none_or(|c| !c.is_alphanumeric())
    })
}

pub(crate) fn direction(reach: &str, right: &str, loss: LossMention) -> ChangeDirection {
    let phrase = right.split([',', '.', ';', ':', '(', ')']).next().unwrap_or_default();
    if let Some(word) = words(phrase).find(|word| !FILLERS.contains(word)) {
        if UP_AFTER.contains(&word) {
            return ChangeDirection::Up;
        }
        if DOWN_AFTER.contains(&word) {
            return ChangeDirection::Down;
        }
    }
    // "growth slowed to 6.4%": the verb describes how the rate moved, not its sign.
    if is_change_endpoint(reach, "to") || is_change_endpoint(reach, "from") {
        return ChangeDirection::Unsaid;
    }
    for word in words_backwards(over_a_list(reach)) {
        if DIRECTION_BOUNDARIES.contains(&word) {
            return ChangeDirection::Unsaid;
        }
        let is_turned = loss != LossMention::Unsaid && REVERSED_BY_LOSS.contains(&word);
        if UP.contains(&word) {
            return if is_turned { ChangeDirection::Down } else { ChangeDirection::Up };
        }
        if DOWN.contains(&word) {
            return if is_turned { ChangeDirection::Up } else { ChangeDirection::Down };
        }
    }
    ChangeDirection::Unsaid
}

/// Whether the number is the start (`from`) or end (`to`) of a move.
pub(crate) fn is_change_endpoint(reach: &str, word: &str) -> bool {
    let bare = without_currency(reach);
    let bare = COMPARATORS
        .iter()
        .find(|(words, _)| ends_with_words(bare, words))
        .map_or(bare, |(words, _)| bare[..bare.len() - words.len()].trim_end());
    ends_with_words(bare, word)
}

/// "fell 5% and 7%": the conjunction joins two numbers, so the verb applies to both.
fn over_a_list(reach: &str) -> &str {
    let bare = without_currency(reach);
    match bare.strip_suffix("and").map(str::trim_end) {
        Some(before) if ends_with_a_number(before) => before,
        _ => reach,
    }
}

fn ends_with_a_number(text: &str) -> bool {
    let scales = ["billion", "million", "trillion", "thousand", "percent", "bn", "points", "bps"];
    let bare = scales.iter().find_map(|scale| text.strip_suffix(scale)).unwrap_or(text);
    bare.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == '%')
}

pub(crate) fn loss(reach: &str, right: &str) -> LossMention {
    let after: Vec<&str> = words(right).take(2).collect();
    if after.iter().any(|word| matches!(*word, "loss" | "deficit" | "outflow" | "burn")) {
        return LossMention::Beside;
    }
    let turned: Vec<&str> = words_backwards(over_a_list(reach))
        .take_while(|word| !LOSS_BOUNDARIES.contains(word))
        .collect();
    let Some(at) = turned.iter().position(|word| LOSSES.contains(word)) else {
        let is_minus = turned.iter().any(|word| MINUSES.contains(word));
        return if is_minus { LossMention::Nearby } else { LossMention::Unsaid };
    };
    if turned.get(at + 1).is_some_and(|before| NOT_OWN_LOSSES.contains(before)) {
        return LossMention::Unsaid;
    }
    // A comma starts a new thought: "despite a net loss of $1.3 billion, free cash flow was ..."
    let since_comma = reach.rfind(',').map_or(reach, |comma| &reach[comma..]);
    let beside = at < 6 && words(since_comma).any(|word| LOSSES.contains(&word));
    if beside { LossMention::Beside } else { LossMention::Nearby }
}

pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

fn words_backwards(text: &str) -> impl Iterator<Item = &str> {
    text.rsplit(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

#[cfg(test)]
#[path = "clause_tests.rs"]
mod tests;
