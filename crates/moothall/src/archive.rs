//! The file that a backup is: a tar archive with a manifest and one database, and nothing else.
//!
//! Whoever unpacks it trusts nothing in it: names are compared and never used, sizes are those of
//! the manifest, and every byte is hashed on its way.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, Entries, EntryType, Header};

/// The number of this form. A reader that does not know it reads nothing.
const FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.json";

/// The database, in the archive and below a data folder.
const DATABASE: &str = crate::local::FILE_NAME;

/// The longest manifest that is read.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

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
    /// How many runs there are.
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

/// Packs a database.
pub(crate) fn write(
    to: impl Write,
    database: &Path,
    runs: u64,
    created_at_ms: u64,
) -> Result<Manifest> {
    let mut file = fs_err::File::open(database)?;
    let (bytes, sha256) = copy(&mut file, &mut std::io::sink())?;
    let manifest = Manifest {
        format: FORMAT,
        made_by: format!("moothall {}", env!("CARGO_PKG_VERSION")),
        created_at_ms,
        runs,
        files: vec![Listed { name: DATABASE.to_owned(), bytes, sha256 }],
    };
    let text = format!("{:#}\n", serde_json::to_value(&manifest).map_err(std::io::Error::from)?);
    let mut archive = Builder::new(to);
    let seconds = created_at_ms / 1000;
    append(&mut archive, MANIFEST, text.len() as u64, seconds, text.as_bytes())?;
    append(&mut archive, DATABASE, bytes, seconds, fs_err::File::open(database)?)?;
    archive.into_inner()?.flush()?;
    Ok(manifest)
}

/// Unpacks the database into `database` and compares what comes with what the manifest promises.
/// What was written so far is worth nothing where it fails.
pub(crate) fn read(from: impl Read, database: &mut impl Write) -> Result<Manifest> {
    let mut archive = Archive::new(from);
    // Raw: what would change the name or the size of the next entry is an entry that is refused.
    let mut entries = archive.entries()?.raw(true);
    let mut manifest = String::new();
    let entry = next(&mut entries, MANIFEST)?.ok_or_else(|| not_ours("it is empty"))?;
    entry.take(MAX_MANIFEST_BYTES).read_to_string(&mut manifest)?;
    let manifest = understand(&manifest)?;
    let [listed] = &manifest.files[..] else {
        return Err(not_ours("it should hold one database"));
    };
    if listed.name != DATABASE {
        return Err(not_ours("it should hold one database"));
    }
    let mut entry = next(&mut entries, DATABASE)?.ok_or_else(|| changed("it ends early"))?;
    if entry.size() != listed.bytes {
        return Err(changed("the database has another size than it says"));
    }
    let (bytes, sha256) = copy(&mut entry, database)?;
    if bytes != listed.bytes {
        return Err(changed("it ends early"));
    }
    if sha256 != listed.sha256 {
        return Err(changed("the database has another hash than it says"));
    }
    if entries.next().is_some() {
        return Err(changed("there is more in it than it says"));
    }
    database.flush()?;
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
        FORMAT => serde_json::from_str(manifest).map_err(unreadable),
        other => {
            bail!("it has format {other}, this program reads {FORMAT}: use a newer moothall")
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
