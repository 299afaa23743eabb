//! Checking a whole journal: its chain, its signed checkpoints, its anchors and its torn files.
//!
//! Nothing is changed, and nothing that is derived from the journal is trusted.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use moothall_core::drafts::{Drafts, Event};

use super::anchor::Anchor;
use super::checkpoints::{Checkpoint, Signer};
use super::error::DraftError;
use super::head::Head;
use super::journal::{
    CHECKPOINT_EVERY, Line, Locked, damaged, file, is_altered, read_from, read_line,
};
use super::snapshot::Snapshot;
use super::{DraftStore, LOCK_WAIT, take_in};

const CHECKPOINTS: &str = "checkpoints";
const MISSING: &str = "a signed checkpoint is missing";
/// Records without a checkpoint that only a missing one explains. A process that is killed before it
/// signs leaves a few more than `CHECKPOINT_EVERY`, never twice as many.
const MAX_UNSIGNED: u64 = 2 * CHECKPOINT_EVERY;

/// What a check of a whole journal comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The last record.
    pub head: Head,
    /// Files that were read.
    pub files: u64,
    /// Signed checkpoints that agree with it.
    pub checkpoints: usize,
    /// The public key that signed them.
    pub key: String,
}

/// The unfinished end of a journal file, moved aside when the journal was opened after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornFile {
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// It holds a complete record that was changed: no crash leaves that.
    pub has_altered_record: bool,
}

impl DraftStore {
    /// Checks the journal of this store, with the anchor that is kept for it.
    pub fn verify(&self, each: impl FnMut(&Line)) -> Result<Verified, DraftError> {
        let anchor = self.options.anchor.as_deref().map(Anchor::read).transpose()?.flatten();
        verify(&self.options.state, anchor, each)
    }
}

/// Reads a whole journal and compares it with its checkpoints, its torn files and anchors. An anchor
/// is read before the journal: records that are appended meanwhile come after it.
pub fn verify(
    state: &Path,
    anchors: impl IntoIterator<Item = Anchor>,
    mut each: impl FnMut(&Line),
) -> Result<Verified, DraftError> {
    let signer = Signer::open_existing(state)?;
    let mut anchors: Vec<Anchor> = anchors.into_iter().collect();
    let anchored_checkpoint = anchors.iter().map(|anchor| anchor.checkpoint).max().unwrap_or(0);
    let snapshot = Snapshot::read(state);
    let (mut drafts, mut pending) = (Drafts::default(), BTreeMap::new());
    let mut confirmed = 0;
    let (notes, head, files, last) = locked(state, || {
        let notes = signer.notes()?;
        let (head, files, last) = walk(state, |line, path| {
            let Head { seq, hash } = line.head;
            if let Some(signed) = notes.get(&seq) {
                if signed.hash != hash {
                    return Err(damaged(path, seq, "a signed checkpoint says otherwise"));
                }
                confirmed += 1;
            }
            if anchors.iter().any(|anchor| anchor.head.seq == seq && anchor.head.hash != hash) {
                return Err(damaged(path, seq, "the anchor says otherwise"));
            }
            anchors.retain(|anchor| anchor.head.seq != seq);
            if let Some(snapshot) = &snapshot
                && seq <= snapshot.position.seq
            {
                take_in(&mut drafts, &mut pending, &line.record);
                let is_used = seq == snapshot.position.seq && hash == snapshot.position.hash;
                if is_used && (drafts != snapshot.drafts || pending != snapshot.pending) {
                    return Err(damaged(path, seq, "the snapshot of the store says otherwise"));
                }
            }
            each(line);
            Ok(())
        })?;
        Ok((notes, head, files, last))
    })?;
    if !anchors.iter().all(|anchor| anchor.head.seq == 0) {
        return Err(damaged(&last, head.seq, "it ends before the anchor"));
    }
    if confirmed < notes.len() {
        return Err(damaged(&last, head.seq, "it ends before a signed checkpoint"));
    }
    if let Some(seq) = missing_checkpoint(&notes, head.seq, anchored_checkpoint) {
        return Err(damaged(Path::new(CHECKPOINTS), seq, MISSING));
    }
    if let Some(torn) = torn_files(state)?.into_iter().find(|torn| torn.has_altered_record) {
        let why = "a complete record that was changed was moved aside";
        return Err(damaged(Path::new(&torn.file), head.seq, why));
    }
    Ok(Verified { head, files, checkpoints: confirmed, key: signer.public() })
}

/// Reads a whole journal and checks its chain alone.
pub fn read_journal(state: &Path, mut each: impl FnMut(&Line)) -> Result<Head, DraftError> {
    locked(state, || {
        let (head, ..) = walk(state, |line, _| {
            each(line);
            Ok(())
        })?;
        Ok(head)
    })
}

/// The torn files of a journal, in order.
pub fn torn_files(state: &Path) -> Result<Vec<TornFile>, DraftError> {
    let read = || -> io::Result<Vec<TornFile>> {
        let mut found = Vec::new();
        for entry in fs_err::read_dir(state.join("audit"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "torn") {
                let bytes = fs_err::read(&path)?;
                let name = path.file_name().unwrap_or_default();
                found.push(TornFile {
                    file: name.to_string_lossy().into_owned(),
                    bytes: bytes.len() as u64,
                    has_altered_record: bytes.split(|byte| *byte == b'\n').any(is_altered),
                });
            }
        }
        found.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(found)
    };
    read().map_err(DraftError::io("the journal cannot be read"))
}

/// The record at which a checkpoint must have been and is not: one that a later note or the anchor
/// names, or one among too many records without any.
fn missing_checkpoint(
    notes: &BTreeMap<u64, Checkpoint>,
    records: u64,
    anchored: u64,
) -> Option<u64> {
    let named = notes.values().filter_map(|note| note.previous).chain([anchored]);
    if let Some(seq) = named.filter(|seq| *seq > 0).find(|seq| !notes.contains_key(seq)) {
        return Some(seq);
    }
    let mut before = 0;
    for seq in notes.keys().copied().chain([records]) {
        if seq.saturating_sub(before) >= MAX_UNSIGNED {
            return Some(before + CHECKPOINT_EVERY);
        }
        before = seq;
    }
    None
}

/// Runs something while nobody is in the middle of a line.
fn locked<T>(state: &Path, read: impl FnOnce() -> Result<T, DraftError>) -> Result<T, DraftError> {
    let what = "the journal cannot be read";
    let lock = fs_err::File::open(state.join("audit.lock")).map_err(DraftError::io(what))?;
    let lock = lock.into_parts().0;
    let _held = Locked::take(&lock, LOCK_WAIT).map_err(DraftError::io(what))?;
    read()
}

/// Every line with its file: the last record, how many files there are, and the last of them.
fn walk(
    state: &Path,
    mut each: impl FnMut(&Line, &Path) -> Result<(), DraftError>,
) -> Result<(Head, u64, PathBuf), DraftError> {
    let folder = state.join("audit");
    let mut head = Head::start();
    let mut number = 1;
    loop {
        let path = file(&folder, number);
        let bytes = read_from(&path, 0)?;
        let mut rest = bytes.as_slice();
        let mut rotated = None;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| damaged(&path, head.seq + 1, "it has no end"))?;
            let line =
                read_line(&rest[..end], head).map_err(|why| damaged(&path, head.seq + 1, why))?;
            head = line.head;
            rest = &rest[end + 1..];
            if let Event::Rotated { next } = line.record.event {
                rotated = Some(next);
            }
            each(&line, &path)?;
        }
        match rotated {
            Some(next) => number = next,
            None => return Ok((head, number, path)),
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
