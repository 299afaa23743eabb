//! Passes the review of a guarded run to the agent that continues it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use fs_err as fs;
use moothall_core::drafts::{CommentSide, Draft, LineComment, ReviewDecision};
use moothall_core::text::sanitize;

use super::WORKER;
use super::record::{GuardRun, remove_tree};
use crate::commands::draft::store::OpenDraftStore;
use crate::error::CliError;

/// The review, as the agent sees it.
pub(crate) const REVIEW_FILE: &str = "/tmp/moothall-review.txt";
/// Tells the agent where the review is.
pub(crate) const REVIEW_VARIABLE: &str = "MOOTHALL_REVIEW";

/// The reasons and the comments of reviewers on the drafts of a run, or an empty text.
pub(crate) fn review_notes(opened: &OpenDraftStore, run: &GuardRun) -> Result<String, CliError> {
    let worker = opened.worker(WORKER)?;
    let files = run.record.result.iter().flat_map(|result| &result.files);
    let mut text = String::new();
    let mut seals = BTreeSet::new();
    for id in files.filter_map(|file| file.draft) {
        // A draft that expired long ago has no review.
        let Ok(draft) = opened.store.status(&worker, id) else { continue };
        let Some(submission) = &draft.submission else { continue };
        // Drafts that were submitted together have one review.
        if seals.insert(submission.seal.to_string()) {
            text.push_str(&notes_of(&draft));
        }
    }
    Ok(text)
}

fn notes_of(draft: &Draft) -> String {
    let mut text = String::new();
    let Some(submission) = &draft.submission else { return text };
    if let Some((decision, by, reason)) = &submission.reviewed {
        let word = match decision {
            ReviewDecision::Approve if submission.amended.is_empty() => "approved",
            ReviewDecision::Approve => "approved with changes",
            ReviewDecision::Reject => "rejected",
            ReviewDecision::SendBack => "sent back",
        };
        let more = match submission.drafts.len() {
            0 | 1 => String::new(),
            files => format!(" and {} more", files - 1),
        };
        let _ = writeln!(text, "{}{more}: {word} by {}", draft.path, sanitize(&by.id));
        for line in sanitize(reason).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    for one in &submission.comments {
        let LineComment { path, side, line, text: comment } = &one.comment;
        let version = match side {
            CommentSide::Old => "before the change",
            CommentSide::New => "of the change",
        };
        let _ = writeln!(text, "{path}, line {line} {version}:");
        for line in sanitize(comment).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// Writes the review where the agent finds it, and removes an older one. The directory belongs to
/// the agent, so links in it are not followed.
pub(crate) fn write_review_notes(run: &GuardRun, notes: &str) -> Result<(), CliError> {
    let write = || -> io::Result<()> {
        let path = host_path(run);
        remove_tree(&path)?;
        if notes.is_empty() {
            return Ok(());
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(notes.as_bytes())
    };
    write().map_err(|error| CliError::failed("cannot write the review").with_source(error))
}

pub(crate) fn has_review_notes(run: &GuardRun) -> bool {
    host_path(run).is_file()
}

fn host_path(run: &GuardRun) -> PathBuf {
    let name = REVIEW_FILE.rsplit('/').next().unwrap_or_default();
    run.folder("tmp").join(name)
}
