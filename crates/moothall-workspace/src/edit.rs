//! Worker operations on drafts: open, read, write and rebase.

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    Draft, DraftId, DraftOperation, DraftRefusal, DraftState, FileState, ProposedChange, RelPath,
    TaskId,
};
use moothall_core::gate::merge;

use super::error::{DraftError, FileFault, OldTextFault};
use super::{DraftCaller, DraftStore, DraftStoreState, random};

/// Whether the file of a requested draft must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRequirement {
    /// The file must exist.
    Must,
    /// The file may be new.
    MayNot,
}

/// One edit of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftEdit {
    /// Replace the whole content.
    Content(String),
    /// Replace a text that occurs exactly once.
    Replace { old: String, new: String },
    /// Delete the file.
    Delete,
    /// Move the file to this path.
    Rename(String),
    /// Set or clear the executable bit.
    Executable(bool),
}

impl DraftStore {
    /// Opens a draft of a file, or returns the one that is already open.
    pub fn request(
        &self,
        caller: &DraftCaller,
        task: &str,
        path: &str,
        existing: FileRequirement,
    ) -> Result<(Draft, String), DraftError> {
        let task = TaskId::parse(task).ok_or_else(|| {
            let message = "invalid task: expected 1 to 128 letters, digits, `-`, `_` or `.`";
            DraftError::Input(message.to_owned())
        })?;
        self.may_be_recorded(path)?;
        self.may_be_recorded(task.as_str())?;
        let path = RelPath::parse(path)?;
        self.may_be_read(&path)?;
        self.with(|store, inner| {
            if let Some(open) = inner.drafts.open_for(&caller.principal, &task, &path) {
                let draft = open.clone();
                let text = match draft.content_removed {
                    // The content was removed, so return the base file.
                    true => store.text_of(draft.base.map(|file| file.sha256))?,
                    false => store.text(&draft)?,
                };
                return Ok((draft, text));
            }
            let file = store.workspace.read(&path)?;
            let (base, bytes) = match file {
                Some(file) => {
                    store.make_room(inner, file.bytes.len())?;
                    let executable = file.executable();
                    let sha256 = store.put(&file.bytes)?;
                    (Some(FileState { sha256, executable }), file.bytes)
                }
                None if existing == FileRequirement::Must => {
                    return Err(DraftError::file(&path, FileFault::Missing));
                }
                None => {
                    RelPath::parse_new(path.as_str())?;
                    (None, Vec::new())
                }
            };
            let text = String::from_utf8(bytes)
                .map_err(|_| DraftError::file(&path, FileFault::NotText))?;
            let id = random().map_err(DraftError::io("cannot generate a draft ID"))?;
            let id = DraftId::new(id);
            store.execute_command(
                inner,
                caller,
                DraftOperation::Request { id, task, path, base },
            )?;
            Ok((store.draft_by_id(inner, id)?, text))
        })
    }

    /// The text of a draft; empty if it deletes its file.
    pub fn read(&self, caller: &DraftCaller, id: DraftId) -> Result<(Draft, String), DraftError> {
        self.with(|store, inner| {
            let draft = store.readable(inner, caller, id)?;
            let text = store.text(&draft)?;
            Ok((draft, text))
        })
    }

    /// Adds a revision to a draft.
    pub fn write(
        &self,
        caller: &DraftCaller,
        id: DraftId,
        edit: DraftEdit,
        if_match: Option<Sha256Hex>,
    ) -> Result<Draft, DraftError> {
        self.with(|store, inner| {
            let draft = store.readable(inner, caller, id)?;
            store.writable(&draft)?;
            let (change, bytes) = store.changed(inner, &draft, edit)?;
            let command = DraftOperation::Write { draft: id, change, bytes, if_match };
            store.execute_command(inner, caller, command)?;
            store.draft_by_id(inner, id)
        })
    }

    /// Rebases a draft onto the current file by a three-way merge. It must be submitted again, even
    /// if the merge was clean.
    pub fn rebase(&self, caller: &DraftCaller, id: DraftId) -> Result<(Draft, bool), DraftError> {
        self.with(|store, inner| {
            let draft = store.readable(inner, caller, id)?;
            store.writable(&draft)?;
            let Some(file) = store.workspace.read(&draft.path)? else {
                return Err(DraftError::file(&draft.path, FileFault::Deleted));
            };
            let executable = file.executable();
            let text = |bytes: Vec<u8>| {
                String::from_utf8(bytes)
                    .map_err(|_| DraftError::file(&draft.path, FileFault::NotText))
            };
            let theirs = text(file.bytes)?;
            let merged = match draft.change.file {
                None => None,
                Some(mine) => {
                    let before = match draft.base {
                        Some(before) => text(store.blobs.get(before.sha256)?)?,
                        None => String::new(),
                    };
                    let mine_text = text(store.blobs.get(mine.sha256)?)?;
                    let (merged, clean) = merge(&before, &mine_text, &theirs);
                    store.fits(merged.len())?;
                    Some((mine, merged, clean))
                }
            };
            let more = merged.as_ref().map_or(0, |(_, merged, _)| merged.len());
            store.make_room(inner, theirs.len() + more)?;
            let base = FileState { sha256: store.put(theirs.as_bytes())?, executable };
            let (change, clean) = match merged {
                None => (draft.change.clone(), true),
                Some((mine, merged, clean)) => {
                    let sha256 = store.put(merged.as_bytes())?;
                    let file = Some(FileState { sha256, executable: mine.executable });
                    (ProposedChange { file, rename_to: draft.change.rename_to.clone() }, clean)
                }
            };
            let command = DraftOperation::Rebase { draft: id, base: Some(base), change, clean };
            store.execute_command(inner, caller, command)?;
            Ok((store.draft_by_id(inner, id)?, clean))
        })
    }

    /// Paths and task names stay in the journal forever, so one with a credential is refused before
    /// anything is recorded.
    fn may_be_recorded(&self, text: &str) -> Result<(), DraftError> {
        if self.may_be_shown(text) {
            return Ok(());
        }
        let message = "the path or the task may contain a credential; nothing was recorded";
        Err(DraftError::Input(message.to_owned()))
    }

    fn writable(&self, draft: &Draft) -> Result<(), DraftError> {
        match draft.state {
            DraftState::Editing | DraftState::Escalated | DraftState::Conflict => Ok(()),
            state => Err(DraftRefusal::State { state, what: "written" }.into()),
        }
    }

    pub(crate) fn fits(&self, bytes: usize) -> Result<(), DraftError> {
        let most = self.policy.limits.max_file_bytes;
        if bytes <= most {
            return Ok(());
        }
        Err(DraftError::Input(format!("file is too large: {bytes} bytes (limit: {most})")))
    }

    fn text(&self, draft: &Draft) -> Result<String, DraftError> {
        if draft.content_removed {
            return Err(DraftRefusal::ContentRemoved.into());
        }
        self.text_of(draft.head())
    }

    /// The text of a stored content; empty for a new file without content.
    fn text_of(&self, sha: Option<Sha256Hex>) -> Result<String, DraftError> {
        let Some(sha) = sha else { return Ok(String::new()) };
        let bytes = self.blobs.get(sha)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn changed(
        &self,
        inner: &DraftStoreState,
        draft: &Draft,
        edit: DraftEdit,
    ) -> Result<(ProposedChange, u64), DraftError> {
        let mut change = draft.change.clone();
        let executable = change.file.or(draft.base).is_some_and(|file| file.executable);
        let content = match edit {
            DraftEdit::Content(text) => Some(text),
            DraftEdit::Replace { old, new } => Some(replaced(&self.text(draft)?, &old, &new)?),
            DraftEdit::Delete => {
                if draft.base.is_none() {
                    let message = "file does not exist: discard the draft instead";
                    return Err(DraftError::Input(message.to_owned()));
                }
                return Ok((ProposedChange { file: None, rename_to: None }, 0));
            }
            DraftEdit::Rename(to) => {
                self.may_be_recorded(&to)?;
                let to = RelPath::parse_new(&to)?;
                self.may_be_read(&to)?;
                let taken =
                    |one: &Draft| one.state.is_open() && one.id != draft.id && one.path == to;
                if self.workspace.read(&to)?.is_some() || inner.drafts.all().any(taken) {
                    return Err(DraftError::file(&to, FileFault::Exists));
                }
                change.rename_to = (to != draft.path).then_some(to);
                None
            }
            DraftEdit::Executable(executable) => {
                let Some(file) = change.file else {
                    return Err(DraftError::Input(
                        "draft has no content: write it first".to_owned(),
                    ));
                };
                change.file = Some(FileState { executable, ..file });
                None
            }
        };
        let mut bytes = 0;
        if let Some(text) = content {
            self.fits(text.len())?;
            self.make_room(inner, text.len())?;
            bytes = text.len() as u64;
            let sha256 = self.put(text.as_bytes())?;
            change.file = Some(FileState { sha256, executable });
        }
        Ok((change, bytes))
    }
}

fn replaced(text: &str, old: &str, new: &str) -> Result<String, OldTextFault> {
    if old.is_empty() {
        return Err(OldTextFault::Empty);
    }
    // Overlapping matches count: `aa` occurs twice in `aaa`.
    let first = text.find(old);
    let last = text.rfind(old);
    match (first, last) {
        (Some(at), Some(same)) if at == same => {
            Ok(format!("{}{new}{}", &text[..at], &text[at + old.len()..]))
        }
        (Some(_), _) => Err(OldTextFault::Repeated),
        (None, _) => Err(OldTextFault::Missing),
    }
}
