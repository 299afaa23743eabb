//! What is different between a file and its draft, as people are shown it: on a terminal and in a
//! browser.

use std::borrow::Cow;
use std::time::Duration;

use moothall_core::text::escaped;
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

/// Characters of a line that are shown.
const LINE_CHARS: usize = 400;
/// How long a difference is refined; then it is shown as coarse as it is.
const COMPARING: Duration = Duration::from_secs(2);
/// Changed lines beyond which nobody is shown what differs inside of a line.
const MAX_INLINE: usize = 2_000;
/// Lines of context around a change.
const CONTEXT: usize = 3;

/// A difference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Lines that belong together, with what stays around them.
    pub hunks: Vec<Vec<DiffLine>>,
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In both.
    Kept,
    /// Only in the draft.
    Added,
    /// Only in the file.
    Removed,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Where it is.
    pub side: Side,
    /// Its number in the file, from 1.
    pub old: Option<usize>,
    /// Its number in the draft, from 1.
    pub new: Option<usize>,
    /// Its text. What could drive a terminal, hide or turn text around is spelled out.
    pub parts: Vec<Part>,
    /// The line goes on: only its beginning is shown.
    pub cut: bool,
    /// The text ends here, without a line break.
    pub no_newline: bool,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it says.
    pub text: String,
    /// Whether it is what differs from the line on the other side.
    pub changed: bool,
}

impl Difference {
    /// Whether a line that comes or goes is not shown to its end: nobody can approve it by this.
    pub fn hides_something(&self) -> bool {
        self.hunks.iter().flatten().any(|line| line.cut && line.side != Side::Kept)
    }
}

/// Compares a file with its draft. Long lines are cut.
pub fn difference(base: &str, after: &str) -> Difference {
    compared(base, after, LINE_CHARS)
}

/// The same with every line to its end.
pub fn whole_difference(base: &str, after: &str) -> Difference {
    compared(base, after, usize::MAX)
}

fn compared(base: &str, after: &str, line_chars: usize) -> Difference {
    // Only `\n` ends a line here, as for the gate: a lone carriage return is shown, not obeyed. It
    // is part of the line, so that a last line without one differs from one with it.
    let old: Vec<&str> = base.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Histogram)
        .timeout(COMPARING)
        .diff_slices(&old, &new);
    let mut found = Difference::default();
    let changed = |op: &DiffOp| match op.tag() {
        DiffTag::Equal => 0,
        _ => op.old_range().len() + op.new_range().len(),
    };
    // Comparing lines by their characters takes far longer than comparing lines.
    let fine = diff.ops().iter().map(changed).sum::<usize>() <= MAX_INLINE;
    for group in diff.grouped_ops(CONTEXT) {
        let mut hunk = Vec::new();
        let mut push = |tag, old_at: Option<usize>, new_at: Option<usize>, (parts, cut)| {
            let side = match tag {
                ChangeTag::Delete => Side::Removed,
                ChangeTag::Insert => Side::Added,
                ChangeTag::Equal => Side::Kept,
            };
            found.added += usize::from(side == Side::Added);
            found.removed += usize::from(side == Side::Removed);
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

/// The beginning of a line, and whether there is more of it.
fn parts<'a>(
    strings: impl Iterator<Item = (bool, Cow<'a, str>)>,
    line_chars: usize,
) -> (Vec<Part>, bool) {
    let mut parts = Vec::new();
    let mut left = line_chars;
    for (changed, text) in strings {
        let text = text.trim_end_matches('\n');
        let shown: String = text.chars().take(left).collect();
        left -= shown.chars().count();
        let cut = shown.len() < text.len();
        if !shown.is_empty() {
            parts.push(Part { text: escaped(&shown), changed });
        }
        if cut {
            return (parts, true);
        }
    }
    (parts, false)
}
