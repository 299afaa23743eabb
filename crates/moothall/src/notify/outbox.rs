//! Notices on their way: one file for each receiver and notice, until it is delivered or too old.
//!
//! A file has the body of a message, but neither the URL of the receiver nor a secret. Review links
//! are part of the body, so only the user can read the files. Next to the messages there is the last
//! result of each receiver.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::targets::WEBHOOK;
use crate::app_dirs::AppDirs;
use crate::files::{self, NewFileMode};

/// Messages that are older are dropped.
const MAX_AGE_MS: u64 = 24 * 60 * 60 * 1000;
/// The newest messages that are kept for a receiver.
const MAX_MESSAGES: usize = 200;
/// Delay before the first and the last kind of retry.
const FIRST_DELAY_MS: u64 = 5_000;
const MAX_DELAY_MS: u64 = 15 * 60 * 1000;

/// A message that waits for its receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptMessage {
    /// The same for every attempt.
    pub(crate) id: String,
    pub(crate) body: String,
    pub(crate) created_at_ms: u64,
    pub(crate) next_at_ms: u64,
    pub(crate) retries: u32,
    /// Name of the receiver. Earlier versions had one.
    #[serde(default = "webhook")]
    pub(crate) target: String,
}

fn webhook() -> String {
    WEBHOOK.to_owned()
}

impl KeptMessage {
    /// A message that other processes may send from `next_at_ms` on.
    pub(crate) fn new(
        target: &str,
        id: &str,
        body: String,
        created_at_ms: u64,
        next_at_ms: u64,
    ) -> Self {
        let (target, id) = (target.to_owned(), id.to_owned());
        Self { id, body, created_at_ms, next_at_ms, retries: 0, target }
    }

    /// Doubles the delay after each failure.
    pub(crate) fn postpone(&mut self, now_ms: u64) {
        let delay = FIRST_DELAY_MS.saturating_mul(1 << self.retries.min(16));
        self.retries = self.retries.saturating_add(1);
        self.next_at_ms = now_ms.saturating_add(delay.min(MAX_DELAY_MS));
    }
}

/// The result of the last attempt to reach a receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TargetResult {
    pub(crate) at_ms: u64,
    /// `None` if it succeeded.
    pub(crate) error: Option<String>,
}

/// The directory of messages.
#[derive(Debug, Clone)]
pub(crate) struct NotificationOutbox {
    folder: PathBuf,
}

/// Held by the process that sends messages, so that two do not send the same one.
#[derive(Debug)]
pub(crate) struct OutboxLock {
    _file: File,
}

impl NotificationOutbox {
    pub(crate) fn of(folders: &AppDirs) -> Self {
        Self { folder: folders.state.join("outbox") }
    }

    /// Returns `None` if another process sends messages.
    pub(crate) fn try_lock(&self) -> io::Result<Option<OutboxLock>> {
        fs_err::create_dir_all(&self.folder)?;
        let mut options = fs_err::OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(self.folder.join("lock"));
        let file = file?.into_parts().0;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(OutboxLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn write(&self, kept: &KeptMessage) -> io::Result<()> {
        write_json(&self.path(kept), kept)
    }

    /// A message that another process has removed is gone, too.
    pub(crate) fn remove(&self, kept: &KeptMessage) -> io::Result<()> {
        match fs_err::remove_file(self.path(kept)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The messages in the order in which they were kept. Old, surplus and unreadable ones are
    /// deleted.
    pub(crate) fn messages(&self, now_ms: u64) -> io::Result<Vec<KeptMessage>> {
        let entries = match fs_err::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|kind| kind != "json") {
                continue;
            }
            let text = files::read_or_empty(&path)?;
            match serde_json::from_str::<KeptMessage>(&text) {
                Ok(kept) if now_ms.saturating_sub(kept.created_at_ms) <= MAX_AGE_MS => {
                    all.push(kept);
                }
                // Another process may have delivered and removed it.
                Err(_) if text.is_empty() && !path.try_exists()? => {}
                _ => remove_if_there(&path)?,
            }
        }
        // Newest first, to find the surplus of each receiver.
        all.sort_by(|one, other| {
            (other.created_at_ms, &other.id).cmp(&(one.created_at_ms, &one.id))
        });
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        let mut surplus = Vec::new();
        all.retain(|kept| {
            let count = counts.entry(kept.target.clone()).or_default();
            *count += 1;
            let is_kept = *count <= MAX_MESSAGES;
            if !is_kept {
                surplus.push(kept.clone());
            }
            is_kept
        });
        for kept in &surplus {
            self.remove(kept)?;
        }
        all.reverse();
        Ok(all)
    }

    /// Records the result of an attempt. Nothing depends on it, so a failure is only logged.
    pub(crate) fn set_result(&self, target: &str, result: &TargetResult) {
        if let Err(error) = write_json(&self.result_path(target), result) {
            tracing::warn!(target: "moothall::notify", %error, "result of a notice not stored");
        }
    }

    pub(crate) fn result(&self, target: &str) -> Option<TargetResult> {
        let text = files::read_or_empty(&self.result_path(target)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn result_path(&self, target: &str) -> PathBuf {
        self.folder.join("results").join(format!("{}.json", plain_name(target)))
    }

    /// Ids and names consist of plain characters, but a file could have been changed.
    fn path(&self, kept: &KeptMessage) -> PathBuf {
        let id = plain_name(&kept.id);
        self.folder.join(match kept.target.as_str() {
            // As in earlier versions.
            WEBHOOK => format!("{id}.json"),
            target => format!("{id}.{}.json", plain_name(target)),
        })
    }
}

fn plain_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    text.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let before = files::read_or_empty(path)?;
    files::replace_text(path, &before, &serde_json::to_string(value)?, NewFileMode::Private)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
