//! Detects nearly identical moves. They are marked, never merged: it is useful to know that two
//! analysts had the same idea.

use std::collections::{BTreeMap, BTreeSet};

use super::moves::Move;

/// Minimum Jaccard index, in percent, of the words in title, thesis and actions for two moves to
/// count as similar.
pub const MIN_SIMILAR_PERCENT: usize = 50;

/// Words too common to compare moves by.
const COMMON: &[&str] = &[
    "and", "are", "but", "can", "company", "each", "for", "from", "has", "have", "into", "its",
    "more", "must", "not", "now", "over", "should", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "was", "were", "where", "which", "while", "who", "will",
    "with", "would", "year",
];

/// Similar moves by move id. Moves without a similar one are left out.
pub fn similar<'a>(
    moves: impl IntoIterator<Item = &'a Move>,
) -> BTreeMap<String, BTreeSet<String>> {
    let known: Vec<(&str, BTreeSet<String>)> =
        moves.into_iter().map(|one| (one.move_id.as_str(), words(one))).collect();
    let mut alike: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (at, (one, words)) in known.iter().enumerate() {
        for (other, others) in &known[at + 1..] {
            if is_similar(words, others) {
                alike.entry((*one).to_owned()).or_default().insert((*other).to_owned());
                alike.entry((*other).to_owned()).or_default().insert((*one).to_owned());
            }
        }
    }
    alike
}

/// Jaccard index of the words of two moves, in percent. From [`MIN_SIMILAR_PERCENT`] on they are
/// similar.
pub fn similarity_percent(one: &Move, other: &Move) -> usize {
    share(&words(one), &words(other))
}

fn is_similar(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    share(one, other) >= MIN_SIMILAR_PERCENT
}

fn share(one: &BTreeSet<String>, other: &BTreeSet<String>) -> usize {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    (common * 100).checked_div(all).unwrap_or_default()
}

/// The significant words of a move. Evidence ids are excluded: two moves may cite the same facts
/// and propose the opposite.
fn words(of: &Move) -> BTreeSet<String> {
    let proposal = &of.proposal;
    let texts = [&proposal.title, &proposal.thesis].into_iter().chain(&proposal.actions);
    let mut found = BTreeSet::new();
    for text in texts {
        let mut depth = 0_usize;
        let outside: String = text
            .chars()
            .map(|c| {
                match c {
                    '[' => depth += 1,
                    ']' => depth = depth.saturating_sub(1),
                    _ if depth == 0 && c.is_alphabetic() => return c.to_ascii_lowercase(),
                    _ => {}
                }
                ' '
            })
            .collect();
        let telling = |word: &&str| word.len() >= 3 && !COMMON.contains(word);
        found.extend(outside.split_whitespace().filter(telling).map(stem));
    }
    found
}

/// Rough stemming: the same form for `store`, `stores`, `stored` and `storing`.
fn stem(word: &str) -> String {
    let endings = ["ing", "ed", "es", "s", "e"];
    let stripped = endings.iter().find_map(|ending| word.strip_suffix(ending));
    stripped.filter(|stem| stem.len() >= 4).unwrap_or(word).to_owned()
}

#[cfg(test)]
#[path = "similarity_tests.rs"]
mod tests;
