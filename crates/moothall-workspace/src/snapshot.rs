//! What a journal came to at one of its records, so that opening a store reads only what follows.
//!
//! A snapshot is a cache. It counts while the journal holds the record that it was made at; with
//! anything unexpected the whole journal is read. Verification compares it with the journal.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Draft, DraftId, Drafts};
use serde::{Deserialize, Serialize};

use super::error::DraftError;
use super::journal::JournalPosition;
use super::{DraftStore, Inner, Intent};

/// Changes with what is derived from records, and with how it is written.
const VERSION: u32 = 1;
/// Records that are read faster than a snapshot is worth.
const MIN_RECORDS: u64 = 64;
/// A snapshot is written anew after this part of all records, so that its cost for each record stays
/// the same however many there are.
const PART: u64 = 64;

/// The derived state, and the record that it was derived up to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) position: JournalPosition,
    pub(super) drafts: Drafts,
    pub(super) pending: BTreeMap<DraftId, Intent>,
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotHeader {
    version: u32,
    program: String,
    position: JournalPosition,
    /// The hash of the rest.
    body: Sha256Hex,
}

#[derive(Debug, Serialize)]
struct SnapshotBody<'a> {
    drafts: Vec<&'a Draft>,
    pending: &'a BTreeMap<DraftId, Intent>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedSnapshotBody {
    drafts: Vec<Draft>,
    pending: BTreeMap<DraftId, Intent>,
}

impl Snapshot {
    /// The snapshot of a store; none if there is none that this version wrote to its end.
    pub(super) fn read(state: &Path) -> Option<Self> {
        let bytes = fs_err::read(path(state)).ok()?;
        let split = bytes.iter().position(|byte| *byte == b'\n')?;
        let (header, body) = (&bytes[..split], &bytes[split + 1..]);
        let header: SnapshotHeader = serde_json::from_slice(header).ok()?;
        let is_ours = header.version == VERSION && header.program == env!("CARGO_PKG_VERSION");
        if !is_ours || Sha256Hex::of(body) != header.body {
            return None;
        }
        let body: OwnedSnapshotBody = serde_json::from_slice(body).ok()?;
        let drafts = body.drafts.into_iter().collect();
        Some(Self { position: header.position, drafts, pending: body.pending })
    }
}

impl Inner {
    /// Starts from the snapshot of a store, if the journal holds its record.
    pub(super) fn restore(&mut self, state: &Path) -> Result<(), DraftError> {
        if let Some(snapshot) = Snapshot::read(state)
            && self.journal.resume_after(&snapshot.position)?
        {
            let Snapshot { position, drafts, pending } = snapshot;
            (self.drafts, self.pending) = (drafts, pending);
            self.news.skip_to(position.seq);
            self.snapshot_at = position.seq;
        }
        Ok(())
    }
}

impl DraftStore {
    /// Writes a snapshot if a checkpoint was signed and enough records came since the last one. Not
    /// flushed: one that is not whole is not read. A failure costs time and nothing else.
    pub(super) fn save_snapshot(&self, inner: &mut Inner) {
        let position = inner.journal.position();
        let fresh = position.seq.saturating_sub(inner.snapshot_at);
        let is_due = fresh >= MIN_RECORDS.max(position.seq / PART);
        if !is_due || inner.journal.signed_at() <= inner.snapshot_at {
            return;
        }
        match write(&self.options.state, position, &inner.drafts, &inner.pending) {
            Ok(()) => inner.snapshot_at = position.seq,
            Err(error) => tracing::warn!(%error, "the snapshot of drafts cannot be written"),
        }
    }
}

fn write(
    state: &Path,
    position: JournalPosition,
    drafts: &Drafts,
    pending: &BTreeMap<DraftId, Intent>,
) -> io::Result<()> {
    let body = serde_json::to_vec(&SnapshotBody { drafts: drafts.all().collect(), pending })?;
    let header = SnapshotHeader {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        position,
        body: Sha256Hex::of(&body),
    };
    let mut bytes = serde_json::to_vec(&header)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&body);
    let path = path(state);
    let staged = path.with_extension("new");
    fs_err::write(&staged, bytes)?;
    fs_err::rename(staged, path)
}

fn path(state: &Path) -> PathBuf {
    state.join("snapshot.json")
}
