//! Snapshots of the state derived from the journal, so that opening a store reads only later
//! records.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Draft, DraftId, DraftSet};
use serde::{Deserialize, Serialize};

use super::error::DraftError;
use super::journal::JournalPosition;
use super::{ApplyIntent, DraftStore, DraftStoreState};

/// Must change with the derived state and with the file format.
const VERSION: u32 = 2;
/// Reading fewer records is faster than a snapshot.
const MIN_RECORDS: u64 = 64;
/// A new snapshot is due after 1/64 of all records, so the cost per record stays constant as
/// the journal grows.
const SNAPSHOT_FRACTION: u64 = 64;

/// The derived state at a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DraftSnapshot {
    pub(crate) position: JournalPosition,
    pub(crate) drafts: DraftSet,
    pub(crate) pending: BTreeMap<DraftId, ApplyIntent>,
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotHeader {
    version: u32,
    program: String,
    position: JournalPosition,
    /// Hash of the rest of the file.
    body: Sha256Hex,
}

#[derive(Debug, Serialize)]
struct SnapshotBody<'a> {
    drafts: Vec<&'a Draft>,
    pending: &'a BTreeMap<DraftId, ApplyIntent>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedSnapshotBody {
    drafts: Vec<Draft>,
    pending: BTreeMap<DraftId, ApplyIntent>,
}

impl DraftSnapshot {
    /// Reads the snapshot of a store. `None` unless this version wrote it completely.
    pub(crate) fn read(state: &Path) -> Option<Self> {
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

impl DraftStoreState {
    /// Starts from the snapshot, if the journal contains its record.
    pub(crate) fn restore(&mut self, state: &Path) -> Result<(), DraftError> {
        if let Some(snapshot) = DraftSnapshot::read(state)
            && self.journal.resume_after(&snapshot.position)?
        {
            let DraftSnapshot { position, drafts, pending } = snapshot;
            (self.drafts, self.pending) = (drafts, pending);
            self.notifications.skip_to(position.seq);
            self.snapshot_at = position.seq;
        }
        Ok(())
    }
}

impl DraftStore {
    /// Writes a snapshot if a checkpoint was signed and enough records were added since the last
    /// one. Not flushed: an incomplete snapshot is ignored. A failure only costs time.
    pub(crate) fn save_snapshot(&self, inner: &mut DraftStoreState) {
        let position = inner.journal.position();
        let fresh = position.seq.saturating_sub(inner.snapshot_at);
        let is_due = fresh >= MIN_RECORDS.max(position.seq / SNAPSHOT_FRACTION);
        if !is_due || inner.journal.signed_at() <= inner.snapshot_at {
            return;
        }
        match write(&self.options.state, position, &inner.drafts, &inner.pending) {
            Ok(()) => inner.snapshot_at = position.seq,
            Err(error) => tracing::warn!(%error, "cannot write the draft snapshot"),
        }
    }
}

fn write(
    state: &Path,
    position: JournalPosition,
    drafts: &DraftSet,
    pending: &BTreeMap<DraftId, ApplyIntent>,
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
