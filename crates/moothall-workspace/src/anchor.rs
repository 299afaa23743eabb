//! The journal anchor: the newest record of a journal, stored outside of the store's directory.
//!
//! If the journal is truncated or replaced, it no longer contains the anchored record. The journal
//! alone cannot show that.

use std::io;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;

use super::error::{DraftError, DraftStateFile};
use super::journal_head::JournalHead;

/// A record that the journal must contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalAnchor {
    pub head: JournalHead,
    /// Sequence number of the last signed checkpoint, or 0 if none is known.
    pub checkpoint: u64,
}

impl From<JournalHead> for JournalAnchor {
    fn from(head: JournalHead) -> Self {
        Self { head, checkpoint: 0 }
    }
}

impl JournalAnchor {
    /// Parses `SEQ:HASH`, optionally followed by the other lines of an anchor file.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (seq, hash) = lines.next()?.split_once(':')?;
        let head = JournalHead { seq: seq.parse().ok()?, hash: Sha256Hex::parse(hash)? };
        let checkpoint = lines.find_map(|line| line.strip_prefix("checkpoint ")?.parse().ok());
        Some(Self { head, checkpoint: checkpoint.unwrap_or(0) })
    }

    /// Reads an anchor file, or returns `None` if none exists.
    pub fn read(path: &Path) -> Result<Option<Self>, DraftError> {
        let file = DraftStateFile::Anchor;
        let invalid = || {
            let path = path.display();
            let why = format!("{path} is not a valid anchor file: expected RECORD:HASH");
            DraftError::InvalidFile { file, source: io::Error::other(why) }
        };
        match fs_err::read(path) {
            Ok(bytes) => {
                let anchor = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
                anchor.map(Some).ok_or_else(invalid)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DraftError::io(file.cannot_read())(error)),
        }
    }

    fn text(&self) -> String {
        let Self { head: JournalHead { seq, hash }, checkpoint } = self;
        format!("{seq}:{hash}\ncheckpoint {checkpoint}\n")
    }
}

/// Updates the anchor as the journal grows, as long as the journal contains the anchored record.
#[derive(Debug)]
pub(crate) struct AnchorWriter {
    path: PathBuf,
    state: AnchorState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnchorState {
    /// The journal must contain this record before the anchor may be updated.
    Expected(JournalHead),
    /// The journal contains the anchored record.
    Confirmed,
    /// The journal does not contain the record, or the anchor cannot be read. The anchor stays as
    /// it is; a warning was logged.
    Kept,
}

impl AnchorWriter {
    pub(crate) fn open(path: &Path) -> Self {
        let state = match JournalAnchor::read(path) {
            Ok(Some(anchor)) => AnchorState::Expected(anchor.head),
            Ok(None) => AnchorState::Confirmed,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "journal anchor is not updated");
                AnchorState::Kept
            }
        };
        Self { path: path.to_owned(), state }
    }

    /// Whether the anchored record comes before this one and must still be compared.
    pub(crate) fn expects_before(&self, seq: u64) -> bool {
        matches!(self.state, AnchorState::Expected(head) if head.seq < seq)
    }

    /// Compares a journal record with the anchor.
    pub(crate) fn compare(&mut self, head: JournalHead) {
        if let AnchorState::Expected(wanted) = self.state
            && wanted.seq == head.seq
        {
            match wanted.hash == head.hash {
                true => self.state = AnchorState::Confirmed,
                false => self.keep("the journal does not contain the anchored record"),
            }
        }
    }

    /// Writes the anchor after a record. Not flushed: after a power failure it may name an older
    /// record of the same journal, which is still valid. A failure is logged and does not stop the
    /// caller.
    pub(crate) fn write(&mut self, head: JournalHead, checkpoint: u64) {
        match self.state {
            AnchorState::Confirmed => {}
            AnchorState::Expected(_) => return self.keep("the journal ends before its anchor"),
            AnchorState::Kept => return,
        }
        let staged = self.path.with_extension("new");
        let write = || -> io::Result<()> {
            if let Some(folder) = self.path.parent() {
                fs_err::create_dir_all(folder)?;
            }
            fs_err::write(&staged, JournalAnchor { head, checkpoint }.text())?;
            fs_err::rename(&staged, &self.path)
        };
        if let Err(error) = write() {
            tracing::warn!(path = %self.path.display(), %error, "cannot write the journal anchor");
        }
    }

    fn keep(&mut self, why: &'static str) {
        self.state = AnchorState::Kept;
        tracing::warn!(path = %self.path.display(), why, "journal anchor is not updated");
    }
}
