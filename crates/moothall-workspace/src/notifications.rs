//! What became of drafts lately, for those who follow.

use std::collections::VecDeque;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    DraftId, Drafts, FileState, News, NewsKind, Record, TaskId, news, transition,
};
use moothall_core::gate::Comparison;

use super::DraftStore;
use super::error::DraftError;

/// News that are kept at hand. Who was away for longer reads where drafts stand instead.
const MOST: usize = 2_000;

/// News of one draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The number of the record in the journal.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub kind: NewsKind,
    /// Of which draft.
    pub draft: DraftId,
    /// The task.
    pub task: TaskId,
    /// The file.
    pub path: String,
    /// Why.
    pub reasons: Vec<String>,
    /// Lines that come and go; none where a content is not kept any more.
    pub lines: Option<(usize, usize)>,
}

/// What somebody who follows has not heard yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// In order.
    pub news: Vec<Told>,
    /// The last record of the journal, news or not.
    pub head: u64,
    /// Older news than these were wanted and are not at hand.
    pub missed: bool,
}

/// The last news.
#[derive(Debug, Default)]
pub(super) struct Ring {
    all: VecDeque<(u64, u64, News)>,
    head: u64,
    /// News up to this record are not here.
    gone: u64,
}

impl Ring {
    pub(super) fn hear(&mut self, drafts: &Drafts, seq: u64, record: &Record) {
        self.head = seq;
        self.all.extend(news(drafts, record).into_iter().map(|one| (seq, record.ts, one)));
        while self.all.len() > MOST
            && let Some((seq, ..)) = self.all.pop_front()
        {
            self.gone = seq;
        }
    }

    /// Begins after a record: news up to it are not at hand.
    pub(super) fn skip_to(&mut self, seq: u64) {
        *self = Self { all: VecDeque::new(), head: seq, gone: seq };
    }

    /// News after a record as lines; nothing where some of them are not at hand.
    pub(super) fn transitions(&self, after: u64) -> Option<String> {
        let fresh = self.all.iter().filter(|(seq, ..)| *seq > after);
        (after >= self.gone)
            .then(|| fresh.map(|(seq, at, one)| transition(*seq, *at, one)).collect())
    }
}

impl DraftStore {
    /// Reads what other processes wrote, and says where the journal stands.
    pub fn catch_up(&self) -> Result<u64, DraftError> {
        self.with(|_, inner| Ok(inner.news.head))
    }

    /// News after a record, as far as this process has read the journal.
    pub fn heard(&self, after: u64) -> Heard {
        let (fresh, head, missed) = {
            let inner = self.inner.lock();
            let fresh = inner.news.all.iter().filter(|(seq, ..)| *seq > after).cloned();
            (fresh.collect::<Vec<_>>(), inner.news.head, after < inner.news.gone)
        };
        let told = |(seq, at_ms, news): (u64, u64, News)| Told {
            seq,
            at_ms,
            kind: news.kind,
            draft: news.draft,
            task: news.task,
            path: news.path.to_string(),
            reasons: news.reasons,
            lines: self.lines(news.base, news.after),
        };
        Heard { news: fresh.into_iter().map(told).collect(), head, missed }
    }

    fn lines(&self, base: Option<FileState>, after: Option<FileState>) -> Option<(usize, usize)> {
        let text = |sha: Sha256Hex| self.blobs.get(sha).ok();
        let side = |file: Option<FileState>| match file {
            Some(file) => Some(String::from_utf8_lossy(&text(file.sha256)?).into_owned()),
            None => Some(String::new()),
        };
        let compared = Comparison::of_texts(&side(base)?, &side(after)?);
        Some((compared.stats.added, compared.stats.removed))
    }
}
