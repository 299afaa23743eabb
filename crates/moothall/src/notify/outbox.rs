//! Webhook messages that could not be delivered, one file each, until they are delivered or too old.
//!
//! A file has the body of a message, but neither the URL nor the secret.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::WebhookMessage;
use crate::app_dirs::AppDirs;
use crate::files::{self, NewFileMode};

/// Messages that are older are dropped.
const MAX_AGE_MS: u64 = 24 * 60 * 60 * 1000;
/// The newest messages that are kept.
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
}

impl KeptMessage {
    /// Doubles the delay after each failure.
    pub(crate) fn postpone(&mut self, now_ms: u64) {
        self.retries = self.retries.saturating_add(1);
        let delay = FIRST_DELAY_MS.saturating_mul(1 << self.retries.min(16));
        self.next_at_ms = now_ms.saturating_add(delay.min(MAX_DELAY_MS));
    }
}

/// The directory of kept messages.
#[derive(Debug)]
pub(crate) struct NotificationOutbox {
    folder: PathBuf,
}

impl NotificationOutbox {
    pub(crate) fn of(folders: &AppDirs) -> Self {
        Self { folder: folders.state.join("outbox") }
    }

    pub(crate) fn keep(&self, message: &WebhookMessage, now_ms: u64) -> io::Result<()> {
        self.write(&KeptMessage {
            id: message.id.clone(),
            body: message.body.clone(),
            created_at_ms: now_ms,
            next_at_ms: now_ms.saturating_add(FIRST_DELAY_MS),
            retries: 0,
        })
    }

    pub(crate) fn write(&self, kept: &KeptMessage) -> io::Result<()> {
        let path = self.path(kept);
        let before = files::read_or_empty(&path)?;
        let text = serde_json::to_string(kept)?;
        files::replace_text(&path, &before, &text, NewFileMode::Private)
    }

    /// A message that another process has removed is gone, too.
    pub(crate) fn remove(&self, kept: &KeptMessage) -> io::Result<()> {
        match fs_err::remove_file(self.path(kept)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The messages in the order in which they were kept. Old, surplus and unreadable ones are deleted.
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
                _ => fs_err::remove_file(&path)?,
            }
        }
        all.sort_by(|one, other| {
            (one.created_at_ms, &one.id).cmp(&(other.created_at_ms, &other.id))
        });
        let surplus = all.len().saturating_sub(MAX_MESSAGES);
        for kept in all.drain(..surplus) {
            self.remove(&kept)?;
        }
        Ok(all)
    }

    /// Ids consist of a run id, a kind and a time, but a file could have been changed.
    fn path(&self, kept: &KeptMessage) -> PathBuf {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let name: String = kept.id.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        self.folder.join(format!("{name}.json"))
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
