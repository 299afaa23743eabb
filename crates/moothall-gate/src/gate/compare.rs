//! What is different between a file and its draft, line by line.

use std::collections::BTreeMap;

use serde::Serialize;
use similar::{Algorithm, ChangeTag, TextDiff, TextMerge};

use super::FileChange;

/// Lines on either side beyond which nobody compares: the time of a diff is bounded by its size,
/// because there is no clock here.
const MAX_LINES: usize = 60_000;

/// All lines times those that only one side has, beyond which nobody compares: a diff takes about so
/// many steps.
const MAX_WORK: usize = 100_000_000;

/// Whether comparing these would take too long.
fn is_too_much(old: &[&str], new: &[&str]) -> bool {
    if old.len() > MAX_LINES || new.len() > MAX_LINES {
        return true;
    }
    let mut balance: BTreeMap<&str, isize> = BTreeMap::new();
    for line in old {
        *balance.entry(line).or_default() += 1;
    }
    for line in new {
        *balance.entry(line).or_default() -= 1;
    }
    // A file that is new or goes as a whole is no work.
    let different: usize = balance.values().map(|count| count.unsigned_abs()).sum();
    let shared = (old.len() + new.len() - different) / 2;
    shared > 0 && (old.len() + new.len()) * different > MAX_WORK
}

/// Lines that came, went and stayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LineStats {
    /// Lines of the draft that the file does not have there.
    pub added: usize,
    /// Lines of the file that the draft does not have there.
    pub removed: usize,
    /// Those of the removed that stand elsewhere in the draft.
    pub moved: usize,
    /// Lines of the file.
    pub base_lines: usize,
}

impl LineStats {
    /// Counts the lines of another file, too.
    pub fn add(&mut self, other: &Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.moved += other.moved;
        self.base_lines += other.base_lines;
    }
}

/// A comparison that the rules share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// In numbers.
    pub stats: LineStats,
    /// Added lines that were not merely moved, with their number in the draft, from 1.
    pub added: Vec<(usize, String)>,
    /// Removed lines that were not merely moved.
    pub removed: Vec<String>,
    /// Too many lines: all of the draft counts as added, and nothing as kept.
    pub gave_up: bool,
}

impl Comparison {
    /// Compares. Bytes that are not UTF-8 are compared as the marks that stand for them.
    pub fn of(change: &FileChange<'_>) -> Self {
        let text = |content: Option<super::Content<'_>>| {
            content.map_or_else(String::new, |content| {
                String::from_utf8_lossy(content.bytes).into_owned()
            })
        };
        Self::of_texts(&text(change.base), &text(change.draft))
    }

    /// Compares two texts.
    pub fn of_texts(base: &str, draft: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (base.lines().collect(), draft.lines().collect());
        let mut compared = Self {
            stats: LineStats { base_lines: old.len(), ..LineStats::default() },
            ..Self::default()
        };
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        if is_too_much(&old, &new) {
            compared.gave_up = true;
            added.extend(new.iter().copied().enumerate());
            removed.extend(old.iter().copied());
        } else {
            let diff =
                TextDiff::configure().algorithm(Algorithm::Histogram).diff_slices(&old, &new);
            for change in diff.iter_all_changes() {
                match (change.tag(), change.old_index(), change.new_index()) {
                    (ChangeTag::Insert, _, Some(at)) => added.push((at, new[at])),
                    (ChangeTag::Delete, Some(at), _) => removed.push(old[at]),
                    _ => {}
                }
            }
        }
        compared.stats.added = added.len();
        compared.stats.removed = removed.len();
        // A line that goes here and comes there was moved, whatever its indentation is now.
        let mut pool: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &removed {
            *pool.entry(line.trim()).or_default() += 1;
        }
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, line) in added {
            let key = line.trim();
            match pool.get_mut(key) {
                Some(left) if *left > 0 && !key.is_empty() => {
                    *left -= 1;
                    *taken.entry(key).or_default() += 1;
                    compared.stats.moved += 1;
                }
                _ => compared.added.push((at + 1, line.to_owned())),
            }
        }
        for line in removed {
            match taken.get_mut(line.trim()) {
                Some(many) if *many > 0 => *many -= 1,
                _ => compared.removed.push(line.to_owned()),
            }
        }
        compared
    }
}

/// The difference as people read it.
pub fn unified(path: &str, base: &str, draft: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (base.lines().collect(), draft.lines().collect());
    if is_too_much(&old, &new) {
        return format!("--- a/{path}\n+++ b/{path}\n(too many lines to compare)\n");
    }
    TextDiff::configure()
        .algorithm(Algorithm::Histogram)
        .diff_lines(base, draft)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

/// Both changes of a text, with the usual markers where they touch the same lines, and whether
/// there are none. Only a proposal: what comes of it is judged like any other draft.
pub fn merge(base: &str, mine: &str, theirs: &str) -> (String, bool) {
    let mut merged =
        TextMerge::configure().algorithm(Algorithm::Histogram).merge_lines(base, mine, theirs);
    merged.labels("base", "draft", "workspace");
    (merged.to_string(), !merged.is_conflicted())
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
