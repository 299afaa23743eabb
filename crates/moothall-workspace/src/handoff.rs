//! Maintains the export of drafts for other tools, below `_handoff` in the workspace.
//!
//! The export is derived from the journal after every change and never read back. The store
//! remembers that it is enabled and which files it created, so that every process updates it and no
//! other file is overwritten.

mod folder;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    DraftSet, HandoffFile, VIEW, handoff_files, notifications_for, transition,
};
use moothall_core::gate::scan_secrets;
use serde::{Deserialize, Serialize};

use self::folder::{HandoffDirectory, HandoffEntry};
use super::error::{DraftError, DraftStateFile};
use super::verify::read_journal;
use super::{DraftStore, DraftStoreState};

const WITHHELD: &str = "(withheld: may contain a credential)\n";

/// What to do with the export when a store is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HandoffMode {
    /// Update it if it is already enabled.
    #[default]
    AsBefore,
    /// Enable it and write it again.
    Keep,
    /// Remove it and disable it.
    End,
}

/// Stored state of the export. If it exists, the export is enabled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandoffState {
    /// The last exported record.
    seq: u64,
    /// Size of the transition log.
    logged: u64,
    /// Draft files we created, with the hash of their content. A name is stored before its file is
    /// created.
    files: BTreeMap<String, Option<Sha256Hex>>,
}

/// Whether existing files are assumed to be as we left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandoffTrust {
    Ours,
    Nothing,
}

impl DraftStore {
    /// Applies the export option when the store is opened.
    pub(crate) fn begin_view(&self) -> Result<(), DraftError> {
        match self.options.handoff {
            HandoffMode::AsBefore => Ok(()),
            HandoffMode::Keep => self.with(|store, inner| {
                let view = match store.load_view()? {
                    Some(view) => view,
                    None => {
                        let folder = HandoffDirectory::open(&store.workspace)?;
                        folder.claim(HandoffEntry::Log)?;
                        folder.hide_from_git()?;
                        HandoffState::default()
                    }
                };
                store.show(inner, view, HandoffTrust::Nothing)
            }),
            HandoffMode::End => self.with(|store, _| store.end_view()),
        }
    }

    /// Updates the export. A failure is logged and does not stop the caller, because the journal is
    /// the source of truth.
    pub(crate) fn refresh_view(&self, inner: &mut DraftStoreState) {
        let head = inner.journal.head().seq;
        if inner.viewed == head {
            return;
        }
        inner.viewed = head;
        let shown = self.load_view().and_then(|view| match view {
            Some(view) if view.seq != head => self.show(inner, view, HandoffTrust::Ours),
            _ => Ok(()),
        });
        if let Err(error) = shown {
            tracing::warn!(%error, "cannot update the draft export");
        }
    }

    fn show(
        &self,
        inner: &DraftStoreState,
        mut view: HandoffState,
        trust: HandoffTrust,
    ) -> Result<(), DraftError> {
        let folder = HandoffDirectory::open(&self.workspace)?;
        let again = trust == HandoffTrust::Nothing || folder.is_new;
        let expected = handoff_files(&inner.drafts);
        let fresh: Vec<&String> =
            expected.keys().filter(|name| !view.files.contains_key(*name)).collect();
        for name in &fresh {
            folder.claim(HandoffEntry::Draft(name))?;
        }
        if !fresh.is_empty() {
            view.files.extend(fresh.into_iter().map(|name| (name.clone(), None)));
            self.save_view(&view)?;
        }
        for (name, file) in &expected {
            let sha256 = match file {
                HandoffFile::Draft(sha256) => *sha256,
                HandoffFile::Submissions(text) => Sha256Hex::of(text.as_bytes()),
            };
            if again || view.files.get(name) != Some(&Some(sha256)) {
                folder.put(HandoffEntry::Draft(name), &self.view_bytes(file)?)?;
                view.files.insert(name.clone(), Some(sha256));
            }
        }
        let is_stale = |name: &String| !expected.contains_key(name);
        for name in view.files.keys().filter(|name| is_stale(name)) {
            folder.remove(HandoffEntry::Draft(name))?;
        }
        view.files.retain(|name, _| !is_stale(name));
        view.logged = self.log(inner, &folder, &view, again)?;
        view.seq = inner.journal.head().seq;
        self.save_view(&view)
    }

    /// Appends new entries to the transition log, or rewrites it if it is not as we left it.
    fn log(
        &self,
        inner: &DraftStoreState,
        folder: &HandoffDirectory<'_>,
        view: &HandoffState,
        again: bool,
    ) -> Result<u64, DraftError> {
        if !again && let Some(lines) = inner.notifications.transitions(view.seq) {
            let appended = folder.append(view.logged, lines.as_bytes())?;
            if let Some(bytes) = appended {
                return Ok(bytes);
            }
        }
        let (mut drafts, mut lines) = (DraftSet::default(), String::new());
        read_journal(&self.options.state, |line| {
            drafts.evolve(&line.record);
            for one in notifications_for(&drafts, &line.record) {
                lines.push_str(&transition(line.head.seq, line.record.ts, &one));
            }
        })?;
        folder.put(HandoffEntry::Log, lines.as_bytes())?;
        Ok(lines.len() as u64)
    }

    /// The bytes of an exported file. Content that may contain a credential is not exported.
    fn view_bytes(&self, file: &HandoffFile) -> Result<Vec<u8>, DraftError> {
        match file {
            HandoffFile::Submissions(text) => Ok(text.clone().into_bytes()),
            HandoffFile::Draft(sha256) => {
                let bytes = self.blobs.get(*sha256)?;
                let plain = scan_secrets(&bytes, &self.key).is_clean();
                Ok(if plain { bytes } else { WITHHELD.as_bytes().to_vec() })
            }
        }
    }

    fn end_view(&self) -> Result<(), DraftError> {
        let Some(view) = self.load_view()? else { return Ok(()) };
        let folder = HandoffDirectory::open(&self.workspace)?;
        for name in view.files.keys() {
            folder.remove(HandoffEntry::Draft(name))?;
        }
        folder.remove(HandoffEntry::Log)?;
        folder.remove_if_empty();
        fs_err::remove_file(self.view_memory())
            .map_err(DraftError::io("cannot remove the draft export"))
    }

    fn view_memory(&self) -> PathBuf {
        self.options.state.join("handoff.json")
    }

    fn load_view(&self) -> Result<Option<HandoffState>, DraftError> {
        let (path, file) = (self.view_memory(), DraftStateFile::Handoff);
        match fs_err::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                let why = format!("{} is not valid: {error}", path.display());
                DraftError::InvalidFile { file, source: io::Error::other(why) }
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DraftError::io(file.cannot_read())(error)),
        }
    }

    /// Atomic, so that readers see the old or the new text. Not flushed: after a power failure it
    /// is derived from the journal again.
    fn save_view(&self, view: &HandoffState) -> Result<(), DraftError> {
        let path = self.view_memory();
        let beside = path.with_extension("new");
        let write = || -> io::Result<()> {
            fs_err::write(&beside, serde_json::to_vec(view)?)?;
            fs_err::rename(&beside, &path)
        };
        write().map_err(DraftError::io("cannot write the state of the `_handoff` directory"))
    }
}

/// The path of an exported file for messages.
fn shown(name: &str) -> String {
    format!("{VIEW}/{name}")
}
