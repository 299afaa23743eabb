//! Line-by-line comparison of a file and its draft.

use std::collections::BTreeMap;

use serde::Serialize;
use similar::{Algorithm, ChangeTag, TextDiff, TextMerge};

use super::FileChange;

/// Larger files are not compared. The size bounds the time of a diff, because this code has no
/// clock.
const MAX_LINES: usize = 60_000;

/// Limit on all lines times the lines only one side has, which approximates the steps of a diff.
const MAX_DIFF_STEPS: usize = 100_000_000;

/// Whether a diff would take too long. Shorter diffs need no clock, so equal texts always have the
/// same diff.
pub fn is_too_much(old: &[&str], new: &[&str]) -> bool {
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
    // A file that is added or deleted as a whole shares no lines and is cheap to compare.
    let different: usize = balance.values().map(|count| count.unsigned_abs()).sum();
    let shared = (old.len() + new.len() - different) / 2;
    shared > 0 && (old.len() + new.len()) * different > MAX_DIFF_STEPS
}

/// Counts of added, removed and moved lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LineStats {
    /// Lines only in the draft.
    pub added: usize,
    /// Lines only in the base file.
    pub removed: usize,
    /// Removed lines that appear elsewhere in the draft.
    pub moved: usize,
    /// Lines of the base file.
    pub base_lines: usize,
}

impl LineStats {
    /// Adds the counts of another file.
    pub fn add(&mut self, other: &Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.moved += other.moved;
        self.base_lines += other.base_lines;
    }
}

/// A line diff that all rules share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileComparison {
    /// Line counts.
    pub stats: LineStats,
    /// Added lines that were not just moved, with their line number in the draft, from 1.
    pub added: Vec<(usize, String)>,
    /// Removed lines that were not just moved.
    pub removed: Vec<String>,
    /// The files are too large to compare: every line of the draft counts as added and every line
    /// of the base as removed.
    pub gave_up: bool,
}

impl FileComparison {
    /// Compares a file with its draft. Invalid UTF-8 is replaced by U+FFFD first.
    pub fn of(change: &FileChange<'_>) -> Self {
        let text = |content: Option<super::FileContent<'_>>| {
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
        // A line removed in one place and added in another was moved, even if its indentation
        // changed.
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

/// Formats a unified diff.
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

/// Three-way merge. Returns the text, with conflict markers where both sides changed the same
/// lines, and whether it is free of conflicts. The result is judged like any other draft.
pub fn merge(base: &str, mine: &str, theirs: &str) -> (String, bool) {
    let mut merged =
        TextMerge::configure().algorithm(Algorithm::Histogram).merge_lines(base, mine, theirs);
    merged.labels("base", "draft", "workspace");
    (merged.to_string(), !merged.is_conflicted())
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
