//! What the words around a number say about it: how exact it is, which way it points, whether it is
//! a loss.

/// How exact a number is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparator {
    /// As printed.
    Exact,
    /// About, roughly, some.
    About,
    /// More than, at least.
    Over,
    /// Less than, at most.
    Under,
    /// Nearly, almost: a little less.
    Nearly,
}

/// Which way the words around a number point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// It grew, or by so much more.
    Up,
    /// It fell, or by so much less.
    Down,
    /// The words do not say.
    Unsaid,
}

/// Whether the words call the number a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// They do, right beside it: "a net loss of $1.3 billion".
    Beside,
    /// A word of loss stands in the same clause.
    Nearby,
    /// They do not.
    Unsaid,
}

/// The words that reach a number are at most this many bytes away.
const REACH: usize = 70;

const COMPARATORS: &[(&str, Comparator)] = &[
    ("just under", Comparator::Nearly),
    ("just below", Comparator::Nearly),
    ("shy of", Comparator::Nearly),
    ("nearly", Comparator::Nearly),
    ("almost", Comparator::Nearly),
    ("no more than", Comparator::Under),
    ("no less than", Comparator::Over),
    ("more than", Comparator::Over),
    ("greater than", Comparator::Over),
    ("in excess of", Comparator::Over),
    ("upwards of", Comparator::Over),
    ("north of", Comparator::Over),
    ("over", Comparator::Over),
    ("above", Comparator::Over),
    ("at least", Comparator::Over),
    ("exceeding", Comparator::Over),
    ("exceeded", Comparator::Over),
    ("exceeds", Comparator::Over),
    ("surpassing", Comparator::Over),
    ("surpassed", Comparator::Over),
    ("topped", Comparator::Over),
    (">", Comparator::Over),
    ("less than", Comparator::Under),
    ("fewer than", Comparator::Under),
    ("under", Comparator::Under),
    ("below", Comparator::Under),
    ("at most", Comparator::Under),
    ("up to", Comparator::Under),
    ("<", Comparator::Under),
    ("close to", Comparator::About),
    ("about", Comparator::About),
    ("around", Comparator::About),
    ("roughly", Comparator::About),
    ("approximately", Comparator::About),
    ("approx.", Comparator::About),
    ("approx", Comparator::About),
    ("some", Comparator::About),
    ("circa", Comparator::About),
    ("c.", Comparator::About),
    ("ca.", Comparator::About),
    ("~", Comparator::About),
    ("≈", Comparator::About),
];

const UP: &[&str] = &[
    "accelerated",
    "added",
    "climbed",
    "expand",
    "expanded",
    "expanding",
    "expansion",
    "gained",
    "grew",
    "grow",
    "growing",
    "grown",
    "growth",
    "higher",
    "improved",
    "improvement",
    "increase",
    "increased",
    "increasing",
    "jumped",
    "lifted",
    "outgrew",
    "raised",
    "rebounded",
    "rebounding",
    "recovered",
    "recovering",
    "rise",
    "risen",
    "rising",
    "rose",
    "soared",
    "surged",
    "up",
    "widened",
];

const DOWN: &[&str] = &[
    "compressed",
    "compression",
    "contracted",
    "contraction",
    "cut",
    "decline",
    "declined",
    "declining",
    "decrease",
    "decreased",
    "decreasing",
    "down",
    "drop",
    "dropped",
    "eroded",
    "fall",
    "fallen",
    "falling",
    "fell",
    "lost",
    "lower",
    "narrowed",
    "plunged",
    "reduced",
    "shed",
    "shrank",
    "shrinking",
    "shrunk",
    "slid",
    "slipped",
    "tumbled",
    "worsened",
];

/// A direction does not reach over these: "declined 2.8% before recovering 2.0%".
const TURNS: &[&str] = &[
    "before", "while", "then", "whereas", "but", "after", "although", "and", "despite", "against",
];

/// A loss reaches further: "a net loss of $430 million against $317 million a year before".
const OTHER_THINGS: &[&str] =
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

/// Words between a number and the noun it belongs to: "a 5.7% year-over-year decline".
const FILLERS: &[&str] =
    &["year", "over", "on", "annual", "yearly", "yoy", "sequential", "quarterly", "organic", "net"];

/// A better loss is a smaller one.
const TURNED_BY_A_LOSS: &[&str] = &["improved", "improvement", "worsened"];

const LOSSES: &[&str] = &[
    "loss", "losses", "lost", "deficit", "negative", "burn", "burned", "burnt", "outflow",
    "outflows",
];

/// Weaker words: they explain a negative fact and contradict no positive one.
const MINUSES: &[&str] = &["used", "consumed", "minus", "debt"];

/// Losses of others: a provision for credit losses is a cost with a plus sign.
const NOT_OWN_LOSSES: &[&str] = &["credit", "loan", "lease", "expected", "impairment", "for"];

/// The part of the clause to the left of a number, in lower case. A bracket with nothing else in it
/// goes on with the clause before: "cut inventories by $1.6bn (21.5%)".
pub(super) fn reach_of(left: &str) -> &str {
    let near = last_bytes(left, REACH);
    let near = near
        .trim_end_matches(|c: char| c.is_whitespace() || "$€£¥+-−–~".contains(c))
        .strip_suffix('(')
        .unwrap_or(near);
    near.rfind([';', '(']).map_or(near, |at| &near[at + 1..])
}

/// At most so many bytes from the end: a sentence may be long, and every number looks to its left.
pub(super) fn last_bytes(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// At most so many bytes from the beginning.
pub(super) fn first_bytes(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What stands right after a number.
pub(super) fn next_words(right: &str) -> &str {
    first_bytes(right, REACH)
}

pub(super) fn comparator(reach: &str) -> Comparator {
    let bare = without_currency(reach);
    COMPARATORS
        .iter()
        .find(|(words, _)| ends_with_words(bare, words))
        .map_or(Comparator::Exact, |(_, comparator)| *comparator)
}

/// "over US$ 5 billion": the currency stands between the word and the number.
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

pub(super) fn direction(reach: &str, right: &str, loss: Loss) -> Direction {
    let phrase = right.split([',', '.', ';', ':', '(', ')']).next().unwrap_or_default();
    if let Some(word) = words(phrase).find(|word| !FILLERS.contains(word)) {
        if UP_AFTER.contains(&word) {
            return Direction::Up;
        }
        if DOWN_AFTER.contains(&word) {
            return Direction::Down;
        }
    }
    // "growth slowed to 6.4%": the word speaks of how the rate moved, not of its sign.
    if ends_a_move(reach, "to") || ends_a_move(reach, "from") {
        return Direction::Unsaid;
    }
    for word in words_from_the_right(over_a_list(reach)) {
        if TURNS.contains(&word) {
            return Direction::Unsaid;
        }
        let is_turned = loss != Loss::Unsaid && TURNED_BY_A_LOSS.contains(&word);
        if UP.contains(&word) {
            return if is_turned { Direction::Down } else { Direction::Up };
        }
        if DOWN.contains(&word) {
            return if is_turned { Direction::Up } else { Direction::Down };
        }
    }
    Direction::Unsaid
}

/// Whether the number is where something came `from` or went `to`.
pub(super) fn ends_a_move(reach: &str, word: &str) -> bool {
    let bare = without_currency(reach);
    let bare = COMPARATORS
        .iter()
        .find(|(words, _)| ends_with_words(bare, words))
        .map_or(bare, |(words, _)| bare[..bare.len() - words.len()].trim_end());
    ends_with_words(bare, word)
}

/// "fell 5% and 7%": the conjunction joins two numbers, so that the word before reaches both.
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

pub(super) fn loss(reach: &str, right: &str) -> Loss {
    let after: Vec<&str> = words(right).take(2).collect();
    if after.iter().any(|word| matches!(*word, "loss" | "deficit" | "outflow" | "burn")) {
        return Loss::Beside;
    }
    let turned: Vec<&str> = words_from_the_right(over_a_list(reach))
        .take_while(|word| !OTHER_THINGS.contains(word))
        .collect();
    let Some(at) = turned.iter().position(|word| LOSSES.contains(word)) else {
        let is_minus = turned.iter().any(|word| MINUSES.contains(word));
        return if is_minus { Loss::Nearby } else { Loss::Unsaid };
    };
    if turned.get(at + 1).is_some_and(|before| NOT_OWN_LOSSES.contains(before)) {
        return Loss::Unsaid;
    }
    // A comma begins another thought: "despite a net loss of $1.3 billion, free cash flow was ..."
    let since_comma = reach.rfind(',').map_or(reach, |comma| &reach[comma..]);
    let beside = at < 6 && words(since_comma).any(|word| LOSSES.contains(&word));
    if beside { Loss::Beside } else { Loss::Nearby }
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

fn words_from_the_right(text: &str) -> impl Iterator<Item = &str> {
    text.rsplit(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

#[cfg(test)]
#[path = "clause_tests.rs"]
mod tests;
