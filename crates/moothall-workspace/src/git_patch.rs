//! Applies a patch to the files of a commit, in memory, and judges the result.

use std::collections::BTreeMap;

use moothall_core::gate::{
    ChangeSetDecision, ChangedFile, CheckResults, EntryContent, EntryKind, FileEntry, PatchBody,
    PatchFault, PatchFaultKind, PatchFile, Policy, PolicyDate, TreeNames, read_patch,
};

use super::change_set::judge_change_set;
use super::git_repository::{GitError, GitRepository, ObjectId, TrackedEntry};
use super::object_reader::ObjectReader;

/// Why a patch cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum GitPatchError {
    /// The patch is invalid, or does not fit the commit.
    #[error("cannot read the patch: {0}")]
    Patch(#[from] PatchFault),
    /// The repository cannot be read.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Judges a patch that is applied to a commit. `looked` is explained at
/// [`moothall_core::gate::decide_change_set`].
pub fn judge_git_patch(
    repository: &GitRepository,
    base: Option<&ObjectId>,
    patch: &[u8],
    policy: &Policy,
    looked: Option<&CheckResults>,
    today: PolicyDate,
) -> Result<ChangeSetDecision, GitPatchError> {
    let sections = read_patch(patch)?;
    let tree = repository.tree(base)?;
    let entries = repository.tree_entries(&tree)?;
    let mut names = TreeNames::default();
    let gone: Vec<&Vec<u8>> = sections
        .iter()
        .filter(|section| section.old_path != section.new_path)
        .filter_map(|section| section.old_path.as_ref())
        .collect();
    let added = sections.iter().filter_map(|section| section.new_path.as_ref());
    for path in entries.keys().filter(|path| !gone.contains(path)).chain(added) {
        if let Ok(text) = std::str::from_utf8(path) {
            names.add(text);
        }
    }
    let mut objects = repository.objects()?;
    let limit = policy.limits.max_file_bytes as u64;
    let mut files = Vec::with_capacity(sections.len());
    for section in &sections {
        files.push(patched_file(section, &entries, &names, &mut objects, limit)?);
    }
    Ok(judge_change_set(policy, &files, looked, today))
}

fn patched_file(
    section: &PatchFile,
    entries: &BTreeMap<Vec<u8>, TrackedEntry>,
    names: &TreeNames,
    objects: &mut ObjectReader,
    limit: u64,
) -> Result<ChangedFile, GitPatchError> {
    let fault = PatchFault { line: section.line, kind: PatchFaultKind::Fit };
    let is_moved = section.old_path != section.new_path;
    let old_entry = match &section.old_path {
        Some(path) => Some(entries.get(path).ok_or(fault)?),
        None => None,
    };
    if is_moved && section.new_path.as_ref().is_some_and(|path| entries.contains_key(path)) {
        return Err(fault.into());
    }
    let old = match old_entry {
        Some(entry) => Some(read_entry(entry, objects, limit)?),
        None => None,
    };
    let new = match &section.new_path {
        None => {
            // Checks that the patch removes exactly this content.
            patched(section, old.as_ref())?;
            None
        }
        Some(_) => {
            let mode = section.new_mode.or_else(|| old_entry.map(|entry| entry.mode));
            let kind = EntryKind::of_git_mode(mode.unwrap_or(0o100_644));
            Some(FileEntry { kind, content: patched(section, old.as_ref())? })
        }
    };
    let path = section.new_path.as_ref().or(section.old_path.as_ref()).ok_or(fault)?;
    let text = std::str::from_utf8(path).ok();
    let is_new_path = is_moved && new.is_some();
    Ok(ChangedFile {
        path: path.clone(),
        renamed_from: section.old_path.clone().filter(|_| is_moved && section.new_path.is_some()),
        twins: text.filter(|_| is_new_path).map(|text| names.twins(text)).unwrap_or_default(),
        below_head: new.is_some() && text.is_some_and(|text| names.is_below_head(text)),
        ignored: false,
        old,
        new,
    })
}

fn read_entry(
    entry: &TrackedEntry,
    objects: &mut ObjectReader,
    limit: u64,
) -> Result<FileEntry, GitError> {
    let kind = EntryKind::of_git_mode(entry.mode);
    let content = match kind {
        // As git shows it in patches.
        EntryKind::Submodule => {
            EntryContent::Bytes(format!("Subproject commit {}\n", entry.id.as_str()).into_bytes())
        }
        _ => objects.read(&entry.id, limit)?,
    };
    Ok(FileEntry { kind, content })
}

/// The content after the patch. Binary data is not decoded, and what cannot be read cannot be
/// patched.
fn patched(section: &PatchFile, old: Option<&FileEntry>) -> Result<EntryContent, PatchFault> {
    if section.body == PatchBody::Binary {
        return Ok(EntryContent::Unreadable);
    }
    let base = match old.map(|entry| &entry.content) {
        None => None,
        Some(EntryContent::Bytes(bytes)) => Some(bytes.as_slice()),
        Some(other) => return Ok(other.clone()),
    };
    Ok(EntryContent::Bytes(section.apply(base)?))
}
