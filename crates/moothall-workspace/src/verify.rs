//! Verifies a whole journal: its hash chain, signed checkpoints, anchors and torn files.
//!
//! Changes nothing, and trusts nothing that is derived from the journal.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use moothall_core::drafts::{DraftEvent, DraftSet};

use super::anchor::JournalAnchor;
use super::checkpoints::{CheckpointSigner, JournalCheckpoint};
use super::error::DraftError;
use super::journal::{
    CHECKPOINT_EVERY, FileLock, JournalLine, damaged, file, is_altered, read_from, read_line,
};
use super::journal_head::JournalHead;
use super::snapshot::DraftSnapshot;
use super::{DraftStore, LOCK_WAIT, apply_record};

const CHECKPOINTS: &str = "checkpoints";
const MISSING: &str = "a signed checkpoint is missing";
/// This many records without a checkpoint mean that one is missing. A process that is killed before
/// it signs leaves a few more than `CHECKPOINT_EVERY`, never twice as many.
const MAX_UNSIGNED: u64 = 2 * CHECKPOINT_EVERY;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalVerification {
    pub head: JournalHead,
    /// Number of journal files.
    pub files: u64,
    /// Number of signed checkpoints, all of which match the journal.
    pub checkpoints: usize,
    /// The public key that signed the checkpoints.
    pub key: String,
}

/// The incomplete end of a journal file, moved aside when the journal was opened after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornFile {
    pub file: String,
    pub bytes: u64,
    /// Whether it contains a complete record that was changed, which a crash cannot cause.
    pub has_altered_record: bool,
}

impl DraftStore {
    /// Verifies the journal of this store against its anchor.
    pub fn verify(
        &self,
        each: impl FnMut(&JournalLine),
    ) -> Result<JournalVerification, DraftError> {
        let anchor = self.options.anchor.as_deref().map(JournalAnchor::read).transpose()?.flatten();
        verify(&self.options.state, anchor, each)
    }
}

/// Reads a whole journal and compares it with its checkpoints, torn files and anchors. Read the
/// anchors before calling this, so that records appended in the meantime come after them.
pub fn verify(
    state: &Path,
    anchors: impl IntoIterator<Item = JournalAnchor>,
    mut each: impl FnMut(&JournalLine),
) -> Result<JournalVerification, DraftError> {
    let signer = CheckpointSigner::open_existing(state)?;
    let mut anchors: Vec<JournalAnchor> = anchors.into_iter().collect();
    let anchored_checkpoint = anchors.iter().map(|anchor| anchor.checkpoint).max().unwrap_or(0);
    let snapshot = DraftSnapshot::read(state);
    let (mut drafts, mut pending) = (DraftSet::default(), BTreeMap::new());
    let mut confirmed = 0;
    let (notes, head, files, last) = locked(state, || {
        let notes = signer.notes()?;
        let (head, files, last) = walk(state, |line, path| {
            let JournalHead { seq, hash } = line.head;
            if let Some(signed) = notes.get(&seq) {
                if signed.hash != hash {
                    return Err(damaged(path, seq, "differs from a signed checkpoint"));
                }
                confirmed += 1;
            }
            if anchors.iter().any(|anchor| anchor.head.seq == seq && anchor.head.hash != hash) {
                return Err(damaged(path, seq, "differs from the anchor"));
            }
            anchors.retain(|anchor| anchor.head.seq != seq);
            if let Some(snapshot) = &snapshot
                && seq <= snapshot.position.seq
            {
                apply_record(&mut drafts, &mut pending, &line.record);
                let is_used = seq == snapshot.position.seq && hash == snapshot.position.hash;
                if is_used && (drafts != snapshot.drafts || pending != snapshot.pending) {
                    return Err(damaged(path, seq, "differs from the snapshot"));
                }
            }
            each(line);
            Ok(())
        })?;
        Ok((notes, head, files, last))
    })?;
    if !anchors.iter().all(|anchor| anchor.head.seq == 0) {
        return Err(damaged(&last, head.seq, "the journal ends before the anchor"));
    }
    if confirmed < notes.len() {
        return Err(damaged(&last, head.seq, "the journal ends before a signed checkpoint"));
    }
    if let Some(seq) = missing_checkpoint(&notes, head.seq, anchored_checkpoint) {
        return Err(damaged(Path::new(CHECKPOINTS), seq, MISSING));
    }
    if let Some(torn) = torn_files(state)?.into_iter().find(|torn| torn.has_altered_record) {
        let why = "a complete record was changed before it was moved aside";
        return Err(damaged(Path::new(&torn.file), head.seq, why));
    }
    Ok(JournalVerification { head, files, checkpoints: confirmed, key: signer.public() })
}

/// Reads a whole journal and checks only its hash chain.
pub fn read_journal(
    state: &Path,
    mut each: impl FnMut(&JournalLine),
) -> Result<JournalHead, DraftError> {
    locked(state, || {
        let (head, ..) = walk(state, |line, _| {
            each(line);
            Ok(())
        })?;
        Ok(head)
    })
}

/// The torn files of a journal, sorted by name.
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
    read().map_err(DraftError::io("cannot read the journal"))
}

/// Returns the record whose checkpoint is missing: one that a later note or the anchor names, or
/// one within too many records without a checkpoint.
fn missing_checkpoint(
    notes: &BTreeMap<u64, JournalCheckpoint>,
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

/// Runs a read while no process is writing a line.
fn locked<T>(state: &Path, read: impl FnOnce() -> Result<T, DraftError>) -> Result<T, DraftError> {
    let what = "cannot read the journal";
    let lock = fs_err::File::open(state.join("audit.lock")).map_err(DraftError::io(what))?;
    let lock = lock.into_parts().0;
    let _held = FileLock::take(&lock, LOCK_WAIT).map_err(DraftError::io(what))?;
    read()
}

/// Visits every line with its file. Returns the last record, the number of files and the last file.
fn walk(
    state: &Path,
    mut each: impl FnMut(&JournalLine, &Path) -> Result<(), DraftError>,
) -> Result<(JournalHead, u64, PathBuf), DraftError> {
    let folder = state.join("audit");
    let mut head = JournalHead::start();
    let mut number = 1;
    loop {
        let path = file(&folder, number);
        let bytes = read_from(&path, 0)?;
        let mut rest = bytes.as_slice();
        let mut rotated = None;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| damaged(&path, head.seq + 1, "incomplete line"))?;
            let line =
                read_line(&rest[..end], head).map_err(|why| damaged(&path, head.seq + 1, why))?;
            head = line.head;
            rest = &rest[end + 1..];
            if let DraftEvent::Rotated { next } = line.record.event {
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
