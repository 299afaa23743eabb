//! Splits a draft into hunks that a reviewer decides on one by one, and builds the file that has
//! only the approved ones.
//!
//! The hunks depend on the two versions of the file only, so a decision on a hunk ID applies to what
//! the reviewer was shown or to nothing.

use std::collections::BTreeSet;
use std::ops::Range;

use similar::{Algorithm, DiffTag, TextDiff};

use super::path::RelPath;
use crate::Sha256Hex;
use crate::gate::is_too_much;

/// Unchanged lines around a hunk. Changes that are closer to each other are one hunk.
pub const HUNK_CONTEXT: usize = 3;
/// A file with more hunks is decided on as a whole.
const MAX_HUNKS: usize = 200;

/// One version of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// The content.
    pub text: String,
    /// Whether the owner's executable bit is set.
    pub executable: bool,
}

/// A draft with its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftProposal {
    /// The file.
    pub path: RelPath,
    /// The new path, if the file is renamed.
    pub rename_to: Option<RelPath>,
    /// The file that the draft is based on, or `None` if it did not exist.
    pub base: Option<FileVersion>,
    /// The proposed file, or `None` if it is deleted.
    pub after: Option<FileVersion>,
}

/// What a hunk changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewHunkKind {
    /// Creates the file.
    Create,
    /// Deletes the file.
    Delete,
    /// Renames the file.
    Rename,
    /// Sets or clears the executable bit.
    Mode,
    /// Replaces these lines of the file by these lines of the draft. Lines count from 0.
    Lines(Vec<(Range<usize>, Range<usize>)>),
}

/// A part of a draft that can be approved alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewHunk {
    /// Hash of both versions of the file and of the hunk's place in them.
    pub id: Sha256Hex,
    /// What it changes.
    pub kind: ReviewHunkKind,
}

/// Why hunks cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown hunk: the draft does not contain it")]
pub struct UnknownHunk;

/// A file with the approved hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkResult {
    /// The new path, if the rename was approved.
    pub rename_to: Option<RelPath>,
    /// The file, or `None` if it does not exist.
    pub file: Option<FileVersion>,
}

impl DraftProposal {
    /// The hunks, in the order in which they are shown: changes of the file itself, then its lines.
    pub fn hunks(&self) -> Vec<ReviewHunk> {
        let mut kinds = Vec::new();
        match (&self.base, &self.after) {
            (None, Some(after)) => {
                kinds.push(ReviewHunkKind::Create);
                if after.executable {
                    kinds.push(ReviewHunkKind::Mode);
                }
            }
            (Some(_), None) => kinds.push(ReviewHunkKind::Delete),
            (Some(base), Some(after)) => {
                if self.rename_to.is_some() {
                    kinds.push(ReviewHunkKind::Rename);
                }
                if base.executable != after.executable {
                    kinds.push(ReviewHunkKind::Mode);
                }
                kinds.extend(changed_lines(&base.text, &after.text));
            }
            (None, None) => {}
        }
        kinds.into_iter().map(|kind| ReviewHunk { id: self.hunk_id(&kind), kind }).collect()
    }

    /// The file with the approved hunks and nothing else of the draft.
    pub fn with_hunks(&self, approved: &BTreeSet<Sha256Hex>) -> Result<HunkResult, UnknownHunk> {
        let hunks = self.hunks();
        let known: BTreeSet<Sha256Hex> = hunks.iter().map(|hunk| hunk.id).collect();
        if !approved.is_subset(&known) {
            return Err(UnknownHunk);
        }
        let has = |wanted: &ReviewHunkKind| {
            hunks.iter().any(|hunk| hunk.kind == *wanted && approved.contains(&hunk.id))
        };
        let file = match (&self.base, &self.after) {
            (None, Some(after)) => has(&ReviewHunkKind::Create).then(|| FileVersion {
                text: after.text.clone(),
                executable: after.executable && has(&ReviewHunkKind::Mode),
            }),
            (Some(base), None) => (!has(&ReviewHunkKind::Delete)).then(|| base.clone()),
            (Some(base), Some(after)) => {
                let changes = hunks.iter().filter(|hunk| approved.contains(&hunk.id));
                let changes = changes.filter_map(|hunk| match &hunk.kind {
                    ReviewHunkKind::Lines(changes) => Some(changes),
                    _ => None,
                });
                let executable = match has(&ReviewHunkKind::Mode) {
                    true => after.executable,
                    false => base.executable,
                };
                let text = replace_lines(&base.text, &after.text, changes.flatten());
                Some(FileVersion { text, executable })
            }
            (None, None) => None,
        };
        let rename_to = self.rename_to.clone().filter(|_| has(&ReviewHunkKind::Rename));
        Ok(HunkResult { rename_to, file })
    }

    fn hunk_id(&self, kind: &ReviewHunkKind) -> Sha256Hex {
        let version = |version: &Option<FileVersion>| match version {
            Some(one) => format!("{} {}", Sha256Hex::of(one.text.as_bytes()), one.executable),
            None => "absent".to_owned(),
        };
        let what = match kind {
            ReviewHunkKind::Create => "create".to_owned(),
            ReviewHunkKind::Delete => "delete".to_owned(),
            ReviewHunkKind::Rename => "rename".to_owned(),
            ReviewHunkKind::Mode => "mode".to_owned(),
            ReviewHunkKind::Lines(changes) => format!("lines {changes:?}"),
        };
        // Paths contain no line breaks, so each line is one field.
        let to = self.rename_to.as_ref().unwrap_or(&self.path);
        let whole = format!(
            "moothall review hunk 1\n{}\n{to}\n{}\n{}\n{what}\n",
            self.path,
            version(&self.base),
            version(&self.after)
        );
        Sha256Hex::of(whole.as_bytes())
    }
}

/// Lines with their line endings: only `\n` ends a line, as in the gate.
pub fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn changed_lines(base: &str, after: &str) -> Vec<ReviewHunkKind> {
    let (old, new) = (lines_of(base), lines_of(after));
    let whole = || vec![ReviewHunkKind::Lines(vec![(0..old.len(), 0..new.len())])];
    if base == after {
        return Vec::new();
    }
    if is_too_much(&old, &new) {
        return whole();
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Histogram).diff_slices(&old, &new);
    let groups = diff.grouped_ops(HUNK_CONTEXT);
    if groups.len() > MAX_HUNKS {
        return whole();
    }
    let changes = |group: &Vec<similar::DiffOp>| {
        let changed = group.iter().filter(|op| op.tag() != DiffTag::Equal);
        ReviewHunkKind::Lines(changed.map(|op| (op.old_range(), op.new_range())).collect())
    };
    groups.iter().map(changes).collect()
}

/// `changes` are in the order of the file and do not overlap.
fn replace_lines<'a>(
    base: &str,
    after: &str,
    changes: impl Iterator<Item = &'a (Range<usize>, Range<usize>)>,
) -> String {
    let (old, new) = (lines_of(base), lines_of(after));
    let mut text = String::new();
    let mut at = 0;
    for (from, to) in changes {
        text.extend(old[at..from.start].iter().copied());
        text.extend(new[to.clone()].iter().copied());
        at = from.end;
    }
    text.extend(old[at..].iter().copied());
    text
}

#[cfg(test)]
#[path = "hunks_tests.rs"]
mod tests;
