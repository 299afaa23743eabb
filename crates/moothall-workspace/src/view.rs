//! Keeping the view of drafts that other tools read, below `_handoff` in the workspace.
//!
//! It is made of what the journal comes to, after every operation that changed something, and never
//! read back. The store remembers that a view is kept and which files of it are ours, so that
//! whoever works on the workspace keeps it, and nobody else's file is written over.

mod folder;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Drafts, VIEW, ViewFile, news, transition, view};
use moothall_core::gate::scan_secrets;
use serde::{Deserialize, Serialize};

use self::folder::{Name, ViewFolder};
use super::error::DraftError;
use super::verify::read_journal;
use super::{DraftStore, Inner};

const WITHHELD: &str = "(withheld: it looks like it holds a credential)\n";

/// What becomes of the view when a store is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Handoff {
    /// It is kept if it was kept before.
    #[default]
    AsBefore,
    /// It is kept from now on, and made anew.
    Keep,
    /// It is removed and kept no longer.
    End,
}

/// What the store remembers of the view: its presence means that one is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The last record that is shown.
    seq: u64,
    /// Bytes of the log of transitions.
    logged: u64,
    /// Our files among the drafts, with the hash of what each shows. A name is written down before
    /// its file is made.
    files: BTreeMap<String, Option<Sha256Hex>>,
}

/// How much of what is there is taken for what we wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Ours,
    Nothing,
}

impl DraftStore {
    /// Does what was asked for about the view when the store was opened.
    pub(super) fn begin_view(&self) -> Result<(), DraftError> {
        match self.options.handoff {
            Handoff::AsBefore => Ok(()),
            Handoff::Keep => self.with(|store, inner| {
                let kept = match store.kept_view()? {
                    Some(kept) => kept,
                    None => {
                        let folder = ViewFolder::open(&store.workspace)?;
                        folder.claim(Name::Log)?;
                        folder.hide_from_git()?;
                        Kept::default()
                    }
                };
                store.show(inner, kept, Trust::Nothing)
            }),
            Handoff::End => self.with(|store, _| store.end_view()),
        }
    }

    /// Brings the view up to date. The drafts are what the journal says whether that succeeds or
    /// not, so a failure is told and stops nobody.
    pub(super) fn refresh_view(&self, inner: &mut Inner) {
        let head = inner.journal.head().seq;
        if inner.viewed == head {
            return;
        }
        inner.viewed = head;
        let shown = self.kept_view().and_then(|kept| match kept {
            Some(kept) if kept.seq != head => self.show(inner, kept, Trust::Ours),
            _ => Ok(()),
        });
        if let Err(error) = shown {
            tracing::warn!(%error, "the view of drafts could not be kept up to date");
        }
    }

    fn show(&self, inner: &Inner, mut kept: Kept, trust: Trust) -> Result<(), DraftError> {
        let folder = ViewFolder::open(&self.workspace)?;
        let again = trust == Trust::Nothing || folder.is_new;
        let wanted = view(&inner.drafts);
        let fresh: Vec<&String> =
            wanted.keys().filter(|name| !kept.files.contains_key(*name)).collect();
        for name in &fresh {
            folder.claim(Name::Draft(name))?;
        }
        if !fresh.is_empty() {
            kept.files.extend(fresh.into_iter().map(|name| (name.clone(), None)));
            self.remember_view(&kept)?;
        }
        for (name, file) in &wanted {
            let sha256 = match file {
                ViewFile::Draft(sha256) => *sha256,
                ViewFile::Submissions(text) => Sha256Hex::of(text.as_bytes()),
            };
            if again || kept.files.get(name) != Some(&Some(sha256)) {
                folder.put(Name::Draft(name), &self.view_bytes(file)?)?;
                kept.files.insert(name.clone(), Some(sha256));
            }
        }
        let gone = |name: &String| !wanted.contains_key(name);
        for name in kept.files.keys().filter(|name| gone(name)) {
            folder.remove(Name::Draft(name))?;
        }
        kept.files.retain(|name, _| !gone(name));
        kept.logged = self.log(inner, &folder, &kept, again)?;
        kept.seq = inner.journal.head().seq;
        self.remember_view(&kept)
    }

    /// Appends what is new to the log of transitions, or makes it anew where it is not what we left.
    fn log(
        &self,
        inner: &Inner,
        folder: &ViewFolder<'_>,
        kept: &Kept,
        again: bool,
    ) -> Result<u64, DraftError> {
        if !again && let Some(lines) = inner.news.transitions(kept.seq) {
            let appended = folder.append(kept.logged, lines.as_bytes())?;
            if let Some(bytes) = appended {
                return Ok(bytes);
            }
        }
        let (mut drafts, mut lines) = (Drafts::default(), String::new());
        read_journal(&self.options.state, |line| {
            drafts.evolve(&line.record);
            for one in news(&drafts, &line.record) {
                lines.push_str(&transition(line.head.seq, line.record.ts, &one));
            }
        })?;
        folder.put(Name::Log, lines.as_bytes())?;
        Ok(lines.len() as u64)
    }

    /// The bytes of a file of the view. What may hold a credential stays in the store.
    fn view_bytes(&self, file: &ViewFile) -> Result<Vec<u8>, DraftError> {
        match file {
            ViewFile::Submissions(text) => Ok(text.clone().into_bytes()),
            ViewFile::Draft(sha256) => {
                let bytes = self.blobs.get(*sha256)?;
                let plain = scan_secrets(&bytes, &self.key).is_clean();
                Ok(if plain { bytes } else { WITHHELD.as_bytes().to_vec() })
            }
        }
    }

    fn end_view(&self) -> Result<(), DraftError> {
        let Some(kept) = self.kept_view()? else { return Ok(()) };
        let folder = ViewFolder::open(&self.workspace)?;
        for name in kept.files.keys() {
            folder.remove(Name::Draft(name))?;
        }
        folder.remove(Name::Log)?;
        folder.remove_if_empty();
        fs_err::remove_file(self.view_memory()).map_err(DraftError::io("the view cannot be ended"))
    }

    fn view_memory(&self) -> PathBuf {
        self.options.state.join("handoff.json")
    }

    fn kept_view(&self) -> Result<Option<Kept>, DraftError> {
        let what = "what is known of the view cannot be read";
        match fs_err::read(self.view_memory()) {
            Ok(bytes) => {
                let kept = serde_json::from_slice(&bytes).map_err(io::Error::from);
                kept.map(Some).map_err(DraftError::io(what))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DraftError::io(what)(error)),
        }
    }

    /// Whoever reads it sees the old text or the new one. It need not be on the disk: what a power
    /// failure takes is made again from the journal.
    fn remember_view(&self, kept: &Kept) -> Result<(), DraftError> {
        let path = self.view_memory();
        let beside = path.with_extension("new");
        let write = || -> io::Result<()> {
            fs_err::write(&beside, serde_json::to_vec(kept)?)?;
            fs_err::rename(&beside, &path)
        };
        write().map_err(DraftError::io("what is known of the view cannot be written"))
    }
}

/// Where a file of the view is, for people.
fn shown(name: &str) -> String {
    format!("{VIEW}/{name}")
}
