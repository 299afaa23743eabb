//! Judges the differences between a commit and another commit, the index, or the working tree.
//!
//! Files are read and judged in batches, so memory does not grow with the size of the diff. What
//! is beyond a limit is not read and needs a person.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use moothall_core::gate::{
    ChangeSetDecision, ChangedFile, CheckResults, EntryContent, EntryKind, FileDecision, FileEntry,
    Policy, PolicyDate, TreeNames, decide_change_set,
};

use super::change_set::judge_files;
use super::git_repository::{GitError, GitRepository, ObjectId, RawChange, TrackedEntry};
use super::object_reader::ObjectReader;
use super::worktree_files::{WorktreeChange, WorktreeFiles, worktree_changes};

/// Further changed files are counted, but not judged.
const MAX_FILES: usize = 10_000;
/// Further commits of a range are not searched for credentials.
const MAX_COMMITS: usize = 2_000;
/// A batch is judged when it has this many bytes or files.
const BATCH_BYTES: usize = 32 << 20;
const BATCH_FILES: usize = 512;
/// Length of a commit id in messages.
const SHORT_ID: usize = 12;

/// Which differences to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitDiffSelection {
    /// From one commit to another.
    Commits {
        /// The commit before the change.
        base: ObjectId,
        /// The commit after the change.
        head: ObjectId,
    },
    /// From `HEAD` to the index.
    Staged,
    /// From `HEAD` to the files on disk, with untracked files that git does not ignore, and to the
    /// index where it differs from both.
    Worktree,
}

/// One side of a change, before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SideSource {
    Object {
        kind: EntryKind,
        id: ObjectId,
    },
    Disk(EntryKind),
    /// Known not to be readable.
    Nothing(EntryKind),
}

/// A changed path, before its contents are read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PendingChange {
    path: Vec<u8>,
    renamed_from: Option<Vec<u8>>,
    old: Option<SideSource>,
    new: Option<SideSource>,
    /// A commit of the range whose version later commits replaced.
    commit: Option<ObjectId>,
}

impl From<RawChange> for PendingChange {
    fn from(raw: RawChange) -> Self {
        let side = |mode: u32, id: ObjectId| {
            (mode != 0).then(|| SideSource::Object { kind: EntryKind::of_git_mode(mode), id })
        };
        let conflict = SideSource::Nothing(EntryKind::File);
        let new = match raw.status {
            b'U' => Some(conflict),
            _ => side(raw.new_mode, raw.new_id),
        };
        Self {
            path: raw.path,
            renamed_from: raw.renamed_from,
            old: side(raw.old_mode, raw.old_id),
            new,
            commit: None,
        }
    }
}

/// Collects changes up to the limit.
#[derive(Debug, Default)]
struct PendingChanges {
    list: Vec<PendingChange>,
    unread: usize,
}

impl PendingChanges {
    fn push(&mut self, change: PendingChange) {
        match self.list.len() < MAX_FILES {
            true => self.list.push(change),
            false => self.unread += 1,
        }
    }
}

/// Judges differences by a policy, which must not come from the change: see
/// [`GitRepository::policy_layers`]. `looked` is explained at [`decide_change_set`].
pub fn judge_git_diff(
    repository: &GitRepository,
    selection: &GitDiffSelection,
    policy: &Policy,
    looked: Option<&CheckResults>,
    today: PolicyDate,
) -> Result<ChangeSetDecision, GitError> {
    let base_commit = match selection {
        GitDiffSelection::Commits { base, .. } => Some(base.clone()),
        GitDiffSelection::Staged | GitDiffSelection::Worktree => repository.head()?,
    };
    let base = repository.tree(base_commit.as_ref())?;
    let mut pending = PendingChanges::default();
    match selection {
        GitDiffSelection::Commits { base: from, head } => {
            let tree = repository.tree(Some(head))?;
            repository.diff_trees(&base, &tree, |raw| {
                pending.push(raw.into());
                Ok(())
            })?;
            add_history(repository, from, head, &mut pending)?;
        }
        GitDiffSelection::Staged => add_staged(repository, &base, &mut pending)?,
        GitDiffSelection::Worktree => add_worktree(repository, &base, &mut pending)?,
    }
    let names = names_of(repository, &base, &pending.list)?;
    let (decisions, unread) = read_and_judge(repository, policy, &names, pending, today)?;
    Ok(decide_change_set(policy, decisions, unread, looked, today))
}

fn add_staged(
    repository: &GitRepository,
    base: &ObjectId,
    pending: &mut PendingChanges,
) -> Result<(), GitError> {
    repository.diff_index(base, |raw| {
        pending.push(raw.into());
        Ok(())
    })
}

/// Adds versions that were committed in the range and replaced later: a credential in one of them
/// is published with the range.
fn add_history(
    repository: &GitRepository,
    base: &ObjectId,
    head: &ObjectId,
    pending: &mut PendingChanges,
) -> Result<(), GitError> {
    let mut known: BTreeSet<ObjectId> = BTreeSet::new();
    for change in &pending.list {
        for side in [&change.old, &change.new].into_iter().flatten() {
            if let SideSource::Object { id, .. } = side {
                known.insert(id.clone());
            }
        }
    }
    let has_more = repository.history(base, head, MAX_COMMITS, |commit, raw| {
        if raw.new_mode != 0 && known.insert(raw.new_id.clone()) {
            pending.push(PendingChange { commit: Some(commit.clone()), ..raw.into() });
        }
    })?;
    pending.unread += usize::from(has_more);
    Ok(())
}

fn add_worktree(
    repository: &GitRepository,
    base: &ObjectId,
    pending: &mut PendingChanges,
) -> Result<(), GitError> {
    let entries = repository.tree_entries(base)?;
    let index = repository.index_entries()?;
    let object = |entry: &TrackedEntry| SideSource::Object {
        kind: EntryKind::of_git_mode(entry.mode),
        id: entry.id.clone(),
    };
    for (path, change) in worktree_changes(repository, &entries, &index)? {
        let new = match change {
            WorktreeChange::Deleted => None,
            WorktreeChange::Disk(kind) => Some(SideSource::Disk(kind)),
            WorktreeChange::Submodule(Some(id)) => {
                Some(SideSource::Object { kind: EntryKind::Submodule, id })
            }
            WorktreeChange::Submodule(None) => Some(SideSource::Nothing(EntryKind::Submodule)),
            WorktreeChange::Unreadable => Some(SideSource::Nothing(EntryKind::File)),
        };
        let old = entries.get(&path).map(object);
        pending.push(PendingChange { path, renamed_from: None, old, new, commit: None });
    }
    // What is staged is judged, too, unless the same is on disk.
    let mut files = WorktreeFiles::open(repository.work_tree())?;
    repository.diff_index(base, |raw| {
        let staged = TrackedEntry { mode: raw.new_mode, id: raw.new_id.clone(), skipped: false };
        let is_on_disk = match raw.new_mode {
            0 => files.file(&raw.path).is_ok_and(|file| file.is_none()),
            _ => files.is_same(&raw.path, &staged).unwrap_or(false),
        };
        if !is_on_disk {
            pending.push(raw.into());
        }
        Ok(())
    })
}

/// The names in the base and in the change.
fn names_of(
    repository: &GitRepository,
    base: &ObjectId,
    changes: &[PendingChange],
) -> Result<TreeNames, GitError> {
    let mut names = TreeNames::default();
    let mut gone: BTreeSet<&[u8]> = BTreeSet::new();
    for change in changes.iter().filter(|change| change.commit.is_none()) {
        gone.extend(change.renamed_from.as_deref());
        if change.new.is_none() {
            gone.insert(&change.path);
        }
    }
    // A path that is deleted or renamed does not collide with its new spelling: a change of case
    // alone is a rename.
    repository.tree_paths(base, |path| {
        if let Ok(text) = std::str::from_utf8(path)
            && !gone.contains(path)
        {
            names.add(text);
        }
    })?;
    for change in changes.iter().filter(|one| one.new.is_some() && one.commit.is_none()) {
        if let Ok(text) = std::str::from_utf8(&change.path) {
            names.add(text);
        }
    }
    Ok(names)
}

/// Reads and judges the changes in batches. Returns the decisions and the number of files that
/// were not judged.
fn read_and_judge(
    repository: &GitRepository,
    policy: &Policy,
    names: &TreeNames,
    pending: PendingChanges,
    today: PolicyDate,
) -> Result<(Vec<FileDecision>, usize), GitError> {
    let deadline = Instant::now() + Duration::from_millis(policy.limits.gate_timeout_ms);
    let mut reader = SideReader {
        objects: repository.objects()?,
        files: WorktreeFiles::open(repository.work_tree())?,
        limit: policy.limits.max_file_bytes as u64,
    };
    let PendingChanges { list, mut unread } = pending;
    let mut left = list.into_iter().peekable();
    let mut decisions = Vec::new();
    while left.peek().is_some() {
        if Instant::now() >= deadline {
            unread += left.count();
            break;
        }
        let (mut batch, mut commits, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < BATCH_BYTES
            && batch.len() < BATCH_FILES
            && let Some(change) = left.next()
        {
            let file = changed_file(names, &change, &mut reader)?;
            for side in [&file.old, &file.new].into_iter().flatten() {
                if let EntryContent::Bytes(content) = &side.content {
                    bytes += content.len();
                }
            }
            batch.push(file);
            commits.push(change.commit);
        }
        for (judged, commit) in
            judge_files(policy, &batch, today, deadline).into_iter().zip(commits)
        {
            match (judged, commit) {
                (None, _) => unread += 1,
                (Some(decision), None) => decisions.push(decision),
                (Some(decision), Some(commit)) => {
                    let short = &commit.as_str()[..SHORT_ID];
                    decisions.extend(decision.of_earlier_commit(short));
                }
            }
        }
    }
    Ok((decisions, unread))
}

struct SideReader {
    objects: ObjectReader,
    files: WorktreeFiles,
    /// Larger files are not read.
    limit: u64,
}

impl SideReader {
    fn read(&mut self, path: &[u8], side: &SideSource) -> Result<FileEntry, GitError> {
        let (kind, content) = match side {
            SideSource::Object { kind: EntryKind::Submodule, id } => {
                (EntryKind::Submodule, EntryContent::Bytes(id.as_str().as_bytes().to_vec()))
            }
            SideSource::Object { kind, id } => (*kind, self.objects.read(id, self.limit)?),
            SideSource::Disk(kind) => (*kind, self.files.read(path, self.limit)),
            SideSource::Nothing(kind) => (*kind, EntryContent::Unreadable),
        };
        Ok(FileEntry { kind, content })
    }
}

fn changed_file(
    names: &TreeNames,
    change: &PendingChange,
    reader: &mut SideReader,
) -> Result<ChangedFile, GitError> {
    let old_path = change.renamed_from.as_ref().unwrap_or(&change.path);
    let old = change.old.as_ref().map(|side| reader.read(old_path, side)).transpose()?;
    let new = change.new.as_ref().map(|side| reader.read(&change.path, side)).transpose()?;
    let is_new_path = change.new.is_some() && (old.is_none() || change.renamed_from.is_some());
    let text = std::str::from_utf8(&change.path).ok();
    Ok(ChangedFile {
        path: change.path.clone(),
        renamed_from: change.renamed_from.clone(),
        old,
        twins: text.filter(|_| is_new_path).map(|text| names.twins(text)).unwrap_or_default(),
        below_head: change.new.is_some() && text.is_some_and(|text| names.is_below_head(text)),
        ignored: false,
        new,
    })
}
