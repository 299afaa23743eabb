//! The backup file: a tar archive with a manifest, the database, and one tar archive per draft store.
//!
//! Nothing in an archive is trusted: names are compared with the few that can be there, sizes and
//! hashes with the manifest.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, Entries, EntryType, Header};

use crate::draft_backup::is_store_id;

/// The format that is written. Format 1 holds one database and no drafts, and is still read.
const FORMAT: u32 = 2;

const MANIFEST: &str = "manifest.json";

/// The database, in the archive and below a data folder.
const DATABASE: &str = crate::local::FILE_NAME;

/// The longest manifest that is read: about 7,000 workspaces.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

const BUFFER_BYTES: usize = 1 << 16;

/// What a backup says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The number of the form.
    format: u32,
    /// The program that made it.
    pub(crate) made_by: String,
    /// When, in milliseconds since 1970.
    pub(crate) created_at_ms: u64,
    /// How many runs the database holds; 0 where there is none.
    pub(crate) runs: u64,
    /// The files behind the manifest.
    files: Vec<Listed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    name: String,
    bytes: u64,
    sha256: String,
}

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArchivePart {
    /// The database with all runs.
    Database,
    /// The draft store with this id, as a tar archive.
    DraftStore(String),
}

impl ArchivePart {
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

    /// Where the part is unpacked below a folder.
    pub(crate) fn path_in(&self, folder: &Path) -> PathBuf {
        match self {
            Self::Database => folder.join(DATABASE),
            Self::DraftStore(id) => folder.join(format!("{id}.tar")),
        }
    }
}

impl Manifest {
    /// The files of the archive, in their order; an error where one cannot be part of a backup.
    fn parts(&self) -> Result<Vec<(ArchivePart, &Listed)>> {
        let mut parts: Vec<(ArchivePart, &Listed)> = Vec::new();
        for listed in &self.files {
            let part = ArchivePart::parse(&listed.name)
                .filter(|part| self.format > 1 || *part == ArchivePart::Database)
                .filter(|part| parts.iter().all(|(other, _)| other != part))
                .ok_or_else(|| not_ours("its manifest lists something else"))?;
            parts.push((part, listed));
        }
        if parts.is_empty() {
            return Err(not_ours("its manifest lists nothing"));
        }
        Ok(parts)
    }

    pub(crate) fn has_database(&self) -> bool {
        self.files.iter().any(|listed| listed.name == DATABASE)
    }

    /// The ids of the draft stores.
    pub(crate) fn draft_stores(&self) -> Vec<String> {
        let parts = self.files.iter().filter_map(|listed| ArchivePart::parse(&listed.name));
        let ids = parts.filter_map(|part| match part {
            ArchivePart::DraftStore(id) => Some(id),
            ArchivePart::Database => None,
        });
        ids.collect()
    }
}

/// Packs these files.
pub(crate) fn write(
    to: impl Write,
    files: &[(ArchivePart, PathBuf)],
    runs: u64,
    created_at_ms: u64,
) -> Result<Manifest> {
    let list = |(part, path): &(ArchivePart, PathBuf)| -> Result<Listed> {
        let (bytes, sha256) = copy(&mut fs_err::File::open(path)?, &mut std::io::sink())?;
        Ok(Listed { name: part.name(), bytes, sha256 })
    };
    let manifest = Manifest {
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

/// Reads what a backup says about itself, and nothing else of it.
pub(crate) fn read_manifest(from: impl Read) -> Result<Manifest> {
    let mut archive = Archive::new(from);
    manifest_of(&mut archive.entries()?.raw(true))
}

/// Unpacks every part into `folder` (see [`ArchivePart::path_in`]) and compares it with the manifest.
/// On an error the unpacked files must not be used.
pub(crate) fn read(from: impl Read, folder: &Path) -> Result<Manifest> {
    let mut archive = Archive::new(from);
    // Raw: an entry that would change the name or the size of the next one is refused.
    let mut entries = archive.entries()?.raw(true);
    let manifest = manifest_of(&mut entries)?;
    for (part, listed) in manifest.parts()? {
        let name = &listed.name;
        let mut entry = next(&mut entries, name)?.ok_or_else(|| changed("it ends early"))?;
        if entry.size() != listed.bytes {
            return Err(changed(&format!("the size of `{name}` is not the one in its manifest")));
        }
        let mut options = fs_err::OpenOptions::new();
        let path = part.path_in(folder);
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        let (bytes, sha256) = copy(&mut entry, &mut file)?;
        if bytes != listed.bytes {
            return Err(changed("it ends early"));
        }
        if sha256 != listed.sha256 {
            return Err(changed(&format!("the hash of `{name}` is not the one in its manifest")));
        }
        file.sync_all()?;
    }
    if entries.next().is_some() {
        return Err(changed("there is more in it than its manifest lists"));
    }
    Ok(manifest)
}

fn manifest_of<R: Read>(entries: &mut Entries<'_, R>) -> Result<Manifest> {
    let mut text = String::new();
    let entry = next(entries, MANIFEST)?.ok_or_else(|| not_ours("it is empty"))?;
    entry.take(MAX_MANIFEST_BYTES).read_to_string(&mut text)?;
    let manifest = understand(&text)?;
    manifest.parts()?;
    Ok(manifest)
}

fn not_ours(why: &str) -> anyhow::Error {
    anyhow!("it is no backup of moothall: {why}")
}

fn changed(why: &str) -> anyhow::Error {
    anyhow!("it was damaged or changed: {why}")
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

/// The next entry, which must be a plain file of this name.
fn next<'a, R: Read>(
    entries: &mut Entries<'a, R>,
    name: &str,
) -> Result<Option<tar::Entry<'a, R>>> {
    let Some(entry) = entries.next() else { return Ok(None) };
    let entry = entry.map_err(|_| not_ours("it is not a tar archive"))?;
    let is_plain = entry.header().entry_type() == EntryType::Regular;
    if !is_plain || *entry.path_bytes() != *name.as_bytes() {
        return Err(not_ours("there is something else in it"));
    }
    Ok(Some(entry))
}

fn understand(manifest: &str) -> Result<Manifest> {
    /// What every form has.
    #[derive(Deserialize)]
    struct Form {
        format: u32,
    }
    let unreadable = |_: serde_json::Error| not_ours("its manifest cannot be read");
    match serde_json::from_str::<Form>(manifest).map_err(unreadable)?.format {
        1..=FORMAT => serde_json::from_str(manifest).map_err(unreadable),
        other => {
            bail!("it has format {other}, this version reads up to {FORMAT}: use a newer moothall")
        }
    }
}

/// Copies everything, and says how much it was and what its hash is.
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
