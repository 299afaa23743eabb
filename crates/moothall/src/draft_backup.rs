//! Packs draft stores into tar archives for `moothall backup` and `moothall restore`: drafts, their
//! contents, the audit log with its checkpoints, and the keys.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use tar::{Archive, Builder, EntryType, Header};

/// Taken by every operation on drafts.
const STORE_LOCK: &str = "store.lock";
/// Taken alone to verify the audit log.
const JOURNAL_LOCK: &str = "audit.lock";
/// Contents by hash. They never change, so they are copied without a lock.
const CONTENTS: &str = "blobs";

/// Name of the audit log's anchor in an archive. On disk it is stored in the data directory,
/// separate from the store, so that tampering requires replacing both.
const PACKED_ANCHOR: &str = "outside/anchor";

const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The deepest file of a store is three directories down; a restore rejects anything deeper than
/// this.
const MAX_PARTS: usize = 6;

/// The directory of all draft stores in a state directory.
pub(crate) fn stores_folder(state: &Path) -> PathBuf {
    state.join("drafts")
}

/// The last known record of a store's audit log, used by `moothall audit verify`.
pub(crate) fn anchor_path(data: &Path, id: &str) -> PathBuf {
    data.join("anchors").join(id)
}

/// A store id is 16 hexadecimal digits.
pub(crate) fn is_store_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The ids of all draft stores in a state directory, sorted.
pub(crate) fn find_stores(state: &Path) -> io::Result<Vec<String>> {
    let folder = stores_folder(state);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut ids = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if is_store_id(&name) && entry.path().join(STORE_LOCK).is_file() {
            ids.push(name);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Packs a consistent snapshot of a draft store and its anchor. Contents are packed first, without
/// the lock, so that other processes wait only while the audit log is copied.
pub(crate) fn pack_store(store: &Path, anchor: &Path, to: impl Write, seconds: u64) -> Result<()> {
    let mut archive = Builder::new(to);
    let mut packed = BTreeSet::new();
    if store.join(CONTENTS).is_dir() {
        pack_folder(store, CONTENTS, &mut archive, &mut packed, seconds)?;
    }
    let _store = lock(&store.join(STORE_LOCK))?;
    let _journal = lock(&store.join(JOURNAL_LOCK))?;
    pack_folder(store, "", &mut archive, &mut packed, seconds)?;
    if let Some(bytes) = if_exists(fs_err::read(anchor))? {
        append(&mut archive, PACKED_ANCHOR, 0o600, seconds, &bytes)?;
    }
    archive.into_inner()?.flush()?;
    Ok(())
}

/// Packs all files below a directory that are not packed yet. Hidden names are unfinished files.
fn pack_folder(
    store: &Path,
    below: &str,
    archive: &mut Builder<impl Write>,
    packed: &mut BTreeSet<String>,
    seconds: u64,
) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(store.join(below))? {
        let name = entry?.file_name();
        let name =
            name.to_str().ok_or_else(|| anyhow!("a file name in {below:?} is not valid UTF-8"))?;
        if !name.starts_with('.') {
            names.push(if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") });
        }
    }
    names.sort();
    for name in names {
        let path = store.join(&name);
        // Unused contents may be removed while contents are packed.
        let Some(found) = if_exists(path.symlink_metadata())? else { continue };
        if found.is_dir() {
            pack_folder(store, &name, archive, packed, seconds)?;
            continue;
        }
        if !found.is_file() {
            bail!("`{name}` is neither a file nor a directory");
        }
        if packed.contains(&name) {
            continue;
        }
        let Some(bytes) = if_exists(fs_err::read(&path))? else { continue };
        append(archive, &name, owner_mode(found.permissions().mode()), seconds, &bytes)?;
        packed.insert(name);
    }
    Ok(())
}

fn append(
    archive: &mut Builder<impl Write>,
    name: &str,
    mode: u32,
    seconds: u64,
    bytes: &[u8],
) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_mtime(seconds);
    header.set_size(bytes.len() as u64);
    header.set_path(name)?;
    header.set_cksum();
    Ok(archive.append(&header, bytes)?)
}

/// Unpacks a draft store into a new directory. Names are checked because the archive is untrusted.
pub(crate) fn unpack_store(from: impl Read, store: &Path) -> Result<()> {
    make_private(store)?;
    let mut archive = Archive::new(from);
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let is_plain = entry.header().entry_type() == EntryType::Regular;
        if !is_plain || !is_plain_name(&name) {
            bail!("unexpected file {name:?} in a draft store");
        }
        let path = store.join(&name);
        make_private(path.parent().unwrap_or(store))?;
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create_new(true).mode(owner_mode(entry.header().mode()?));
        let mut file = options.open(&path)?;
        let size = entry.size();
        if io::copy(&mut entry, &mut file)? != size {
            bail!("the draft store is truncated");
        }
    }
    if !store.join(STORE_LOCK).is_file() {
        bail!("`{STORE_LOCK}` is missing in a draft store");
    }
    Ok(())
}

/// Removes the anchor from an unpacked store and returns it.
pub(crate) fn take_anchor(store: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = store.join(PACKED_ANCHOR);
    let anchor = if_exists(fs_err::read(&path))?;
    if let (Some(_), Some(folder)) = (&anchor, path.parent()) {
        fs_err::remove_dir_all(folder)?;
    }
    Ok(anchor)
}

/// Writes an anchor atomically.
pub(crate) fn place_anchor(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    make_private(folder)?;
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(bytes)?;
    staged.as_file().sync_all()?;
    staged.persist(path)?;
    Ok(())
}

/// Whether another process has a store open, as far as this user can see. Such a process would
/// report a replaced audit log as damaged.
pub(crate) fn is_open_elsewhere(store: &Path) -> bool {
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    let locks = [STORE_LOCK, JOURNAL_LOCK].map(|name| fs_err::metadata(store.join(name)).map(id));
    let own = std::process::id().to_string();
    let Ok(processes) = fs_err::read_dir("/proc") else { return false };
    for process in processes.flatten() {
        let is_other = process
            .file_name()
            .to_str()
            .is_some_and(|pid| pid != own && pid.bytes().all(|byte| byte.is_ascii_digit()));
        let Ok(open) = fs_err::read_dir(process.path().join("fd")) else { continue };
        let mut open = open.flatten().filter_map(|file| fs_err::metadata(file.path()).ok());
        if is_other && open.any(|file| locks.iter().flatten().any(|lock| *lock == id(file.clone())))
        {
            return true;
        }
    }
    false
}

/// Creates a directory that only its owner can access, if it does not exist.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn if_exists<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Readable by the owner; writable if it was.
fn owner_mode(mode: u32) -> u32 {
    (mode & 0o200) | 0o400
}

fn is_plain_name(name: &str) -> bool {
    let is_plain = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(fits)
    };
    name.split('/').count() <= MAX_PARTS && name.split('/').all(is_plain)
}

/// Locks a store until the file is dropped.
fn lock(path: &Path) -> Result<File> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path)?.into_parts().0;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_POLL);
            }
            Err(TryLockError::WouldBlock) => {
                bail!("another process is changing the drafts; try again when it has finished")
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).context("cannot lock the drafts");
            }
        }
    }
}

#[cfg(test)]
#[path = "draft_backup_tests.rs"]
mod tests;
