//! Recent draft notifications for subscribers.

use std::collections::VecDeque;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    AuditRecord, DraftId, DraftNotification, DraftNotificationKind, DraftSet, FileState, TaskId,
    notifications_for, transition,
};
use moothall_core::gate::FileComparison;

use super::DraftStore;
use super::error::DraftError;

/// Notifications kept in memory. A subscriber that missed more must read the state of drafts
/// instead.
const MAX_NOTIFICATIONS: usize = 2_000;

/// A notification about one draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationEntry {
    /// Sequence number of the journal record.
    pub seq: u64,
    /// Time in milliseconds since 1970.
    pub at_ms: u64,
    pub kind: DraftNotificationKind,
    pub draft: DraftId,
    pub task: TaskId,
    pub path: String,
    pub reasons: Vec<String>,
    /// Added and removed lines, or `None` if a content is no longer stored.
    pub lines: Option<(usize, usize)>,
}

/// Notifications that a subscriber has not seen yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationBatch {
    pub entries: Vec<NotificationEntry>,
    /// Sequence number of the last journal record, whether it caused a notification or not.
    pub head: u64,
    /// Whether older notifications were requested that are no longer in memory.
    pub missed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct NotificationBuffer {
    all: VecDeque<(u64, u64, DraftNotification)>,
    head: u64,
    /// Notifications up to this record are no longer in memory.
    dropped_until: u64,
}

impl NotificationBuffer {
    pub(crate) fn push(&mut self, drafts: &DraftSet, seq: u64, record: &AuditRecord) {
        self.head = seq;
        self.all
            .extend(notifications_for(drafts, record).into_iter().map(|one| (seq, record.ts, one)));
        while self.all.len() > MAX_NOTIFICATIONS
            && let Some((seq, ..)) = self.all.pop_front()
        {
            self.dropped_until = seq;
        }
    }

    /// Starts after a record; earlier notifications are not available.
    pub(crate) fn skip_to(&mut self, seq: u64) {
        *self = Self { all: VecDeque::new(), head: seq, dropped_until: seq };
    }

    /// Formats the notifications after a record, or returns `None` if some are no longer in memory.
    pub(crate) fn transitions(&self, after: u64) -> Option<String> {
        let fresh = self.all.iter().filter(|(seq, ..)| *seq > after);
        (after >= self.dropped_until)
            .then(|| fresh.map(|(seq, at, one)| transition(*seq, *at, one)).collect())
    }
}

impl DraftStore {
    /// Reads what other processes wrote. Returns the sequence number of the last record.
    pub fn catch_up(&self) -> Result<u64, DraftError> {
        self.with(|_, inner| Ok(inner.notifications.head))
    }

    /// Notifications after a record, as far as this process has read the journal.
    pub fn notifications_after(&self, after: u64) -> NotificationBatch {
        let (fresh, head, missed) = {
            let inner = self.inner.lock();
            let fresh = inner.notifications.all.iter().filter(|(seq, ..)| *seq > after).cloned();
            (
                fresh.collect::<Vec<_>>(),
                inner.notifications.head,
                after < inner.notifications.dropped_until,
            )
        };
        let entry = |(seq, at_ms, notification): (u64, u64, DraftNotification)| NotificationEntry {
            seq,
            at_ms,
            kind: notification.kind,
            draft: notification.draft,
            task: notification.task,
            path: notification.path.to_string(),
            reasons: notification.reasons,
            lines: self.lines(notification.base, notification.after),
        };
        NotificationBatch { entries: fresh.into_iter().map(entry).collect(), head, missed }
    }

    fn lines(&self, base: Option<FileState>, after: Option<FileState>) -> Option<(usize, usize)> {
        let text = |sha: Sha256Hex| self.blobs.get(sha).ok();
        let side = |file: Option<FileState>| match file {
            Some(file) => Some(String::from_utf8_lossy(&text(file.sha256)?).into_owned()),
            None => Some(String::new()),
        };
        let compared = FileComparison::of_texts(&side(base)?, &side(after)?);
        Some((compared.stats.added, compared.stats.removed))
    }
}
