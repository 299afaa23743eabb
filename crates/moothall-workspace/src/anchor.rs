//! The newest record of a journal, kept in a file outside of the store's directory.
//!
//! A journal that was cut or replaced no longer holds the record that the anchor names, which the
//! journal itself cannot show.

use std::io;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;

use super::error::DraftError;
use super::head::Head;

/// A record that a journal must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The record.
    pub head: Head,
    /// The record of the last signed checkpoint; 0 where none is known.
    pub checkpoint: u64,
}

impl From<Head> for Anchor {
    fn from(head: Head) -> Self {
        Self { head, checkpoint: 0 }
    }
}

impl Anchor {
    /// Reads `SEQ:HASH`, alone or followed by lines that the anchor file has besides.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (seq, hash) = lines.next()?.split_once(':')?;
        let head = Head { seq: seq.parse().ok()?, hash: Sha256Hex::parse(hash)? };
        let checkpoint = lines.find_map(|line| line.strip_prefix("checkpoint ")?.parse().ok());
        Some(Self { head, checkpoint: checkpoint.unwrap_or(0) })
    }

    /// The anchor in a file; none if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>, DraftError> {
        let read = || match fs_err::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).ok_or_else(|| {
                io::Error::other(format!("{} does not hold an anchor", path.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        read().map_err(DraftError::io("the anchor of the journal cannot be read"))
    }

    fn text(&self) -> String {
        let Self { head: Head { seq, hash }, checkpoint } = self;
        format!("{seq}:{hash}\ncheckpoint {checkpoint}\n")
    }
}

/// Moves the anchor along with a journal, as long as the journal continues what the anchor names.
#[derive(Debug)]
pub(super) struct AnchorWriter {
    path: PathBuf,
    state: AnchorState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnchorState {
    /// The journal must hold this record before the anchor may move.
    Expected(Head),
    /// It does.
    Confirmed,
    /// It does not, or the anchor cannot be read or written; the user has been warned.
    Kept,
}

impl AnchorWriter {
    pub(super) fn open(path: &Path) -> Self {
        let state = match Anchor::read(path) {
            Ok(Some(anchor)) => AnchorState::Expected(anchor.head),
            Ok(None) => AnchorState::Confirmed,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the anchor is not updated");
                AnchorState::Kept
            }
        };
        Self { path: path.to_owned(), state }
    }

    /// Whether a record before this one has to be compared.
    pub(super) fn expects_before(&self, seq: u64) -> bool {
        matches!(self.state, AnchorState::Expected(head) if head.seq < seq)
    }

    /// Compares a record of the journal with the anchor.
    pub(super) fn compare(&mut self, head: Head) {
        if let AnchorState::Expected(wanted) = self.state
            && wanted.seq == head.seq
        {
            match wanted.hash == head.hash {
                true => self.state = AnchorState::Confirmed,
                false => self.keep("the journal does not hold the record that the anchor names"),
            }
        }
    }

    /// Writes the anchor after a record. Not flushed: an anchor that a power failure sets back
    /// names an older record of the same journal. A failure is logged and stops nobody.
    pub(super) fn write(&mut self, head: Head, checkpoint: u64) {
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
            fs_err::write(&staged, Anchor { head, checkpoint }.text())?;
            fs_err::rename(&staged, &self.path)
        };
        if let Err(error) = write() {
            tracing::warn!(path = %self.path.display(), %error, "the anchor cannot be written");
        }
    }

    fn keep(&mut self, why: &'static str) {
        self.state = AnchorState::Kept;
        tracing::warn!(path = %self.path.display(), why, "the anchor is not updated");
    }
}
