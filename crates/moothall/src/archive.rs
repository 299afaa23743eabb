//! The backup file: a tar archive with a manifest, the database, and one tar archive per draft
//! store.
//!
//! Archives are untrusted: names are checked against an allowlist, sizes and hashes against the
//! manifest.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, Entries, EntryType, Header};

use crate::draft_backup::is_store_id;

/// The format written by this version. Format 1 holds one database and no drafts, and can still be
/// read.
const FORMAT: u32 = 2;

const MANIFEST: &str = "manifest.json";

/// Name of the database, both in the archive and in a data directory.
const DATABASE: &str = crate::run_store::FILE_NAME;

/// Enough for about 7,000 workspaces.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

const BUFFER_BYTES: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupManifest {
    format: u32,
    /// Program and version that created the backup.
    pub(crate) made_by: String,
    /// Milliseconds since 1970.
    pub(crate) created_at_ms: u64,
    /// Number of runs in the database; 0 without a database.
    pub(crate) runs: u64,
    /// The files that follow the manifest.
    files: Vec<BackupFileEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BackupFileEntry {
    name: String,
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BackupPart {
    Database,
    /// The draft store with this id, as a tar archive.
    DraftStore(String),
}

impl BackupPart {
    fn name(&self) -> String {
        match self {
            Self::Database => DATABASE.to_owned(),
            Self::DraftStore(id) => format!("drafts/{id}.tar"),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        if name == DATABASE {
            return Some(Self::Database);
        }
        let id = name.strip_prefix("drafts/")?.strip_suffix(".tar")?;
        is_store_id(id).then(|| Self::DraftStore(id.to_owned()))
    }

    /// Path of the unpacked part in `folder`.
    pub(crate) fn path_in(&self, folder: &Path) -> PathBuf {
        match self {
            Self::Database => folder.join(DATABASE),
            Self::DraftStore(id) => folder.join(format!("{id}.tar")),
        }
    }
}

impl BackupManifest {
    /// The files of the archive in order. Fails if a file cannot be part of a backup.
    fn parts(&self) -> Result<Vec<(BackupPart, &BackupFileEntry)>> {
        let mut parts: Vec<(BackupPart, &BackupFileEntry)> = Vec::new();
        for listed in &self.files {
            let part = BackupPart::parse(&listed.name)
                .filter(|part| self.format > 1 || *part == BackupPart::Database)
                .filter(|part| parts.iter().all(|(other, _)| other != part))
                .ok_or_else(|| not_a_backup("unexpected file in the manifest"))?;
            parts.push((part, listed));
        }
        if parts.is_empty() {
            return Err(not_a_backup("the manifest lists no files"));
        }
        Ok(parts)
    }

    pub(crate) fn has_database(&self) -> bool {
        self.files.iter().any(|listed| listed.name == DATABASE)
    }

    pub(crate) fn draft_stores(&self) -> Vec<String> {
        let parts = self.files.iter().filter_map(|listed| BackupPart::parse(&listed.name));
        let ids = parts.filter_map(|part| match part {
            BackupPart::DraftStore(id) => Some(id),
            BackupPart::Database => None,
        });
        ids.collect()
    }
}

pub(crate) fn write(
    to: impl Write,
    files: &[(BackupPart, PathBuf)],
    runs: u64,
    created_at_ms: u64,
) -> Result<BackupManifest> {
    let list = |(part, path): &(BackupPart, PathBuf)| -> Result<BackupFileEntry> {
        let (bytes, sha256) = copy(&mut fs_err::File::open(path)?, &mut std::io::sink())?;
        Ok(BackupFileEntry { name: part.name(), bytes, sha256 })
    };
    let manifest = BackupManifest {
        format: FORMAT,
        made_by: format!("moothall {}", env!("CARGO_PKG_VERSION")),
        created_at_ms,
        runs,
        files: files.iter().map(list).collect::<Result<_>>()?,
    };
    let text = format!("{:#}\n", serde_json::to_value(&manifest).map_err(std::io::Error::from)?);
    if text.len() as u64 > MAX_MANIFEST_BYTES {
        bail!("too many draft stores for one backup ({})", files.len());
    }
    let mut archive = Builder::new(to);
    let seconds = created_at_ms / 1000;
    append(&mut archive, MANIFEST, text.len() as u64, seconds, text.as_bytes())?;
    for ((_, path), listed) in files.iter().zip(&manifest.files) {
        let file = fs_err::File::open(path)?;
        append(&mut archive, &listed.name, listed.bytes, seconds, file)?;
    }
    archive.into_inner()?.flush()?;
    Ok(manifest)
}

/// Reads only the manifest.
pub(crate) fn read_manifest(from: impl Read) -> Result<BackupManifest> {
    let mut archive = Archive::new(from);
    read_manifest_entry(&mut archive.entries()?.raw(true))
}

/// Unpacks every part into `folder` (see [`BackupPart::path_in`]) and compares it with the
/// manifest. After an error the unpacked files must not be used.
pub(crate) fn read(from: impl Read, folder: &Path) -> Result<BackupManifest> {
    let mut archive = Archive::new(from);
    // Raw, so that entries which change the name or size of the next entry are rejected.
    let mut entries = archive.entries()?.raw(true);
    let manifest = read_manifest_entry(&mut entries)?;
    for (part, listed) in manifest.parts()? {
        let name = &listed.name;
        let mut entry =
            next(&mut entries, name)?.ok_or_else(|| damaged("the archive is truncated"))?;
        if entry.size() != listed.bytes {
            return Err(damaged(&format!("the size of `{name}` does not match the manifest")));
        }
        let mut options = fs_err::OpenOptions::new();
        let path = part.path_in(folder);
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        let (bytes, sha256) = copy(&mut entry, &mut file)?;
        if bytes != listed.bytes {
            return Err(damaged("the archive is truncated"));
        }
        if sha256 != listed.sha256 {
            return Err(damaged(&format!("the hash of `{name}` does not match the manifest")));
        }
        file.sync_all()?;
    }
    if entries.next().is_some() {
        return Err(damaged("it contains entries that the manifest does not list"));
    }
    Ok(manifest)
}

fn read_manifest_entry<R: Read>(entries: &mut Entries<'_, R>) -> Result<BackupManifest> {
    let mut text = String::new();
    let entry = next(entries, MANIFEST)?.ok_or_else(|| not_a_backup("the file is empty"))?;
    entry.take(MAX_MANIFEST_BYTES).read_to_string(&mut text)?;
    let manifest = parse_manifest(&text)?;
    manifest.parts()?;
    Ok(manifest)
}

fn not_a_backup(why: &str) -> anyhow::Error {
    anyhow!("not a moothall backup: {why}")
}

fn damaged(why: &str) -> anyhow::Error {
    anyhow!("the backup is damaged or was modified: {why}")
}

fn append(
    archive: &mut Builder<impl Write>,
    name: &str,
    bytes: u64,
    seconds: u64,
    data: impl Read,
) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_mtime(seconds);
    header.set_size(bytes);
    archive.append_data(&mut header, name, data)?;
    Ok(())
}

/// Returns the next entry, which must be a regular file with this name.
fn next<'a, R: Read>(
    entries: &mut Entries<'a, R>,
    name: &str,
) -> Result<Option<tar::Entry<'a, R>>> {
    let Some(entry) = entries.next() else { return Ok(None) };
    let entry = entry.map_err(|_| not_a_backup("not a tar archive"))?;
    let is_plain = entry.header().entry_type() == EntryType::Regular;
    if !is_plain || *entry.path_bytes() != *name.as_bytes() {
        return Err(not_a_backup("unexpected entry in the archive"));
    }
    Ok(Some(entry))
}

fn parse_manifest(manifest: &str) -> Result<BackupManifest> {
    /// The part shared by all formats.
    #[derive(Deserialize)]
    struct ManifestVersion {
        format: u32,
    }
    let unreadable = |_: serde_json::Error| not_a_backup("the manifest cannot be parsed");
    match serde_json::from_str::<ManifestVersion>(manifest).map_err(unreadable)?.format {
        1..=FORMAT => serde_json::from_str(manifest).map_err(unreadable),
        other => {
            bail!(
                "unsupported backup format {other} (this version reads up to {FORMAT}); upgrade moothall"
            )
        }
    }
}

/// Copies everything and returns the number of bytes and their SHA-256 as hex.
fn copy(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<(u64, String)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => {
                hash.update(&buffer[..count]);
                to.write_all(&buffer[..count])?;
                bytes += count as u64;
            }
        }
    }
    let hex = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, hex))
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
