//! Cache of fetched documents: blobs named by their hash, and one index file per URL that names the
//! blob.
//!
//! The cache can be deleted at any time. Blobs are checked against their hash when read, so a
//! damaged or replaced file is never used.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};

use super::{EdgarDocument, MAX_BODY_BYTES};

const MAX_ENTRY_BYTES: u64 = 16 << 10;

/// The index file of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EdgarCacheEntry {
    pub(crate) url: String,
    /// Hash of the document and name of its blob.
    pub(crate) sha256: Sha256Hex,
    pub(crate) bytes: u64,
    /// HTTP status of the response.
    pub(crate) status: u16,
    /// Fetch time in Unix milliseconds.
    pub(crate) fetched_at_ms: u64,
}

#[derive(Debug)]
pub(crate) struct EdgarCache {
    folder: PathBuf,
}

impl EdgarCache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the cached document of a URL if it is intact and `may_be_used` accepts its entry.
    pub(crate) async fn find(
        &self,
        url: &str,
        may_be_used: impl Fn(&EdgarCacheEntry) -> bool + Send + 'static,
    ) -> Option<EdgarDocument> {
        let (folder, url) = (self.folder.clone(), url.to_owned());
        let read = tokio::task::spawn_blocking(move || find(&folder, &url, &may_be_used));
        read.await.ok().flatten()
    }

    /// Stores a document. A failure is only logged.
    pub(crate) async fn keep(&self, entry: EdgarCacheEntry, document: EdgarDocument) {
        let folder = self.folder.clone();
        let stored = tokio::task::spawn_blocking(move || keep(&folder, &entry, &document));
        if let Ok(Err(error)) = stored.await {
            tracing::warn!(error = %error, "could not write document to cache");
        }
    }
}

fn find(
    folder: &Path,
    url: &str,
    may_be_used: &dyn Fn(&EdgarCacheEntry) -> bool,
) -> Option<EdgarDocument> {
    let entry: EdgarCacheEntry =
        serde_json::from_slice(&read(&entry_path(folder, url), MAX_ENTRY_BYTES)?).ok()?;
    if entry.url != url || !may_be_used(&entry) {
        return None;
    }
    let bytes = read(&blob_path(folder, entry.sha256), MAX_BODY_BYTES as u64)?;
    (Sha256Hex::of(&bytes) == entry.sha256)
        .then(|| EdgarDocument { bytes: bytes.into(), sha256: entry.sha256 })
}

/// Writes the blob first, so that an index file never names a missing blob.
fn keep(folder: &Path, entry: &EdgarCacheEntry, document: &EdgarDocument) -> io::Result<()> {
    write(&blob_path(folder, entry.sha256), &document.bytes)?;
    let text = serde_json::to_vec(entry).map_err(io::Error::other)?;
    write(&entry_path(folder, &entry.url), &text)
}

fn entry_path(folder: &Path, url: &str) -> PathBuf {
    folder.join("index").join(format!("{}.json", Sha256Hex::of(url.as_bytes())))
}

fn blob_path(folder: &Path, sha256: Sha256Hex) -> PathBuf {
    folder.join("files").join(sha256.to_string())
}

fn read(path: &Path, longest: u64) -> Option<Vec<u8>> {
    use io::Read as _;
    let mut bytes = Vec::new();
    let file = fs_err::File::open(path).ok()?;
    file.take(longest + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= longest).then_some(bytes)
}

/// Writes atomically, because other processes may write the same file at the same time.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    fs_err::create_dir_all(folder)?;
    let mut fresh = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666)) // less what the user's mask takes
        .tempfile_in(folder)?;
    fresh.write_all(bytes)?;
    fresh.persist(path)?;
    Ok(())
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
