//! Parses scores from prose, for a model that failed to produce valid JSON twice. Each metric must
//! be named exactly once, directly followed by one whole number from 1 to 10. Looser rules would
//! pick up numbers that are not scores: the scale itself is written `(1-10)`.

use std::collections::BTreeMap;

use crate::consult::committee::{ScoreMetric, TOP_LEVEL};

/// Longer texts are not searched.
const MAX_SEARCHED_BYTES: usize = 16 * 1024;

/// The scores of all metrics, or `None` if any is missing.
pub(crate) fn from_text(text: &str, metrics: &[ScoreMetric]) -> Option<BTreeMap<String, u8>> {
    if text.len() > MAX_SEARCHED_BYTES {
        return None;
    }
    // Has the same byte length as `text`, so positions are valid in both.
    let plain: String =
        text.chars().map(|sign| if "_-".contains(sign) { ' ' } else { sign }).collect();
    let plain = plain.to_ascii_lowercase();
    let score = |metric: &ScoreMetric| {
        let end = only_mention(&plain, metric)?;
        Some((metric.id.clone(), score_at(text.get(end..)?)?))
    };
    metrics.iter().map(score).collect()
}

/// Where the metric's name ends, if its id or display name occurs exactly once in the text.
fn only_mention(plain: &str, metric: &ScoreMetric) -> Option<usize> {
    let spelled = |name: &str| name.to_ascii_lowercase().replace(['_', '-'], " ");
    let (id, name) = (spelled(&metric.id), spelled(&metric.name));
    let mut ends: Vec<usize> = [id, name]
        .iter()
        .flat_map(|name| {
            plain.match_indices(name.as_str()).map(|(at, found)| (at, at + found.len()))
        })
        .filter(|(start, end)| {
            let before = plain.get(..*start).and_then(|text| text.chars().next_back());
            let after = plain.get(*end..).and_then(|text| text.chars().next());
            ![before, after].into_iter().flatten().any(char::is_alphanumeric)
        })
        .map(|(_, end)| end)
        .collect();
    // An id and a name with the same spelling are one mention.
    ends.sort_unstable();
    ends.dedup();
    match ends.as_slice() {
        [end] => Some(*end),
        _ => None,
    }
}

/// The number that follows a metric's name: `: 7`, `** = 7/10`, ` (1-10): 7`.
fn score_at(rest: &str) -> Option<u8> {
    let rest = rest.trim_start_matches(is_between);
    let rest = ["(1-10)", "(1–10)", "(out of 10)"]
        .iter()
        .find_map(|scale| rest.strip_prefix(scale))
        .unwrap_or(rest)
        .trim_start_matches(is_between);
    let digits = rest.len() - rest.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let (number, after) = rest.split_at_checked(digits)?;
    let after = after.strip_prefix("/10").unwrap_or(after);
    let score = number.parse().ok()?;
    (is_alone(after) && (1..=TOP_LEVEL).contains(&score)).then_some(score)
}

/// Whether no other number follows in the same clause: `7-8`, `7.5`, `7 or 8` and `7 %` are not
/// scores.
fn is_alone(after: &str) -> bool {
    let mut signs = after.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\n' | ';' => return true,
            '.' | ',' if signs.peek().is_none_or(|next| !next.is_ascii_digit()) => return true,
            '%' => return false,
            sign if sign.is_numeric() => return false,
            _ => {}
        }
    }
    true
}

/// Whether the character may occur between a name and its number.
fn is_between(sign: char) -> bool {
    sign.is_ascii_whitespace() || "*_\"'`:=|".contains(sign)
}

#[cfg(test)]
#[path = "scores_tests.rs"]
mod tests;
