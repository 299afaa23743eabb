//! The diff of a file and its draft for display in a terminal and a browser.

use std::borrow::Cow;
use std::time::Duration;

use moothall_core::drafts::{HUNK_CONTEXT, lines_of};
use moothall_core::gate::is_too_much;
use moothall_core::text::escaped;
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

/// Longer lines are truncated.
const MAX_LINE_CHARS: usize = 400;
/// A diff of very long texts is shown as coarse as it is after this time.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);
/// Diffs with more changed lines do not highlight changes within a line.
const MAX_INLINE: usize = 2_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DraftDiff {
    /// Changed lines with their context.
    pub hunks: Vec<Vec<DiffLine>>,
    pub added: usize,
    pub removed: usize,
}

/// Which version contains a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffSide {
    /// Both.
    Kept,
    /// Only the draft.
    Added,
    /// Only the file.
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub side: DiffSide,
    /// Line number in the file, from 1.
    pub old: Option<usize>,
    /// Line number in the draft, from 1.
    pub new: Option<usize>,
    /// The text, with control, invisible and direction-changing characters escaped.
    pub parts: Vec<DiffSpan>,
    /// Whether the line is truncated.
    pub cut: bool,
    /// Whether this is the last line and has no line break.
    pub no_newline: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffSpan {
    pub text: String,
    /// Whether this part differs from the other version.
    pub changed: bool,
}

impl DraftDiff {
    /// Whether an added or removed line is truncated, so that this diff is not enough to approve
    /// the draft.
    pub fn is_truncated(&self) -> bool {
        self.hunks.iter().flatten().any(|line| line.cut && line.side != DiffSide::Kept)
    }
}

/// Compares a file with its draft. Long lines are truncated.
pub fn difference(base: &str, after: &str) -> DraftDiff {
    compared(base, after, MAX_LINE_CHARS)
}

/// Like [`difference`], without truncating lines.
pub fn full_difference(base: &str, after: &str) -> DraftDiff {
    compared(base, after, usize::MAX)
}

fn compared(base: &str, after: &str, line_chars: usize) -> DraftDiff {
    // As in the gate, only `\n` ends a line; a lone carriage return is shown escaped. The `\n` is
    // part of the line, so a last line without it differs from one with it.
    let (old, new) = (lines_of(base), lines_of(after));
    let mut config = TextDiff::configure();
    config.algorithm(Algorithm::Histogram);
    // Without a clock the hunks equal those for approvals by hunk.
    if is_too_much(&old, &new) {
        config.timeout(DIFF_TIMEOUT);
    }
    let diff = config.diff_slices(&old, &new);
    let mut found = DraftDiff::default();
    let changed = |op: &DiffOp| match op.tag() {
        DiffTag::Equal => 0,
        _ => op.old_range().len() + op.new_range().len(),
    };
    // Comparing characters within lines is much slower than comparing lines.
    let fine = diff.ops().iter().map(changed).sum::<usize>() <= MAX_INLINE;
    for group in diff.grouped_ops(HUNK_CONTEXT) {
        let mut hunk = Vec::new();
        let mut push = |tag, old_at: Option<usize>, new_at: Option<usize>, (parts, cut)| {
            let side = match tag {
                ChangeTag::Delete => DiffSide::Removed,
                ChangeTag::Insert => DiffSide::Added,
                ChangeTag::Equal => DiffSide::Kept,
            };
            found.added += usize::from(side == DiffSide::Added);
            found.removed += usize::from(side == DiffSide::Removed);
            let line = new_at.map_or_else(|| old_at.and_then(|at| old.get(at)), |at| new.get(at));
            let no_newline = line.is_some_and(|line| !line.ends_with('\n'));
            let number = |at: Option<usize>| at.map(|at| at + 1);
            let (old, new) = (number(old_at), number(new_at));
            hunk.push(DiffLine { side, old, new, parts, cut, no_newline });
        };
        for op in &group {
            if fine {
                for change in diff.iter_inline_changes(op) {
                    let shown = parts(change.iter_strings_lossy(), line_chars);
                    push(change.tag(), change.old_index(), change.new_index(), shown);
                }
            } else {
                for change in diff.iter_changes(op) {
                    let whole = (false, Cow::Borrowed(change.value()));
                    let shown = parts(std::iter::once(whole), line_chars);
                    push(change.tag(), change.old_index(), change.new_index(), shown);
                }
            }
        }
        found.hunks.push(hunk);
    }
    found
}

/// Truncates a line. Returns whether something was cut.
fn parts<'a>(
    strings: impl Iterator<Item = (bool, Cow<'a, str>)>,
    line_chars: usize,
) -> (Vec<DiffSpan>, bool) {
    let mut parts = Vec::new();
    let mut left = line_chars;
    for (changed, text) in strings {
        let text = text.trim_end_matches('\n');
        let shown: String = text.chars().take(left).collect();
        left -= shown.chars().count();
        let cut = shown.len() < text.len();
        if !shown.is_empty() {
            parts.push(DiffSpan { text: escaped(&shown), changed });
        }
        if cut {
            return (parts, true);
        }
    }
    (parts, false)
}
