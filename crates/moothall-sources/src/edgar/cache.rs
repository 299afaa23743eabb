//! Documents that were fetched before, as files named by their hash, and a small file for each
//! address that says which one it was.
//!
//! Everything here can be deleted at any time, by anyone. What was read is compared with its name,
//! so a broken or foreign file is never used.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};

use super::{Document, MAX_BODY_BYTES};

const MAX_ENTRY_BYTES: u64 = 16 << 10;

/// What is known about a document that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// Where it is from.
    pub(super) url: String,
    /// Its hash, which is the name of its file.
    pub(super) sha256: Sha256Hex,
    /// Its length.
    pub(super) bytes: u64,
    /// The status of the answer.
    pub(super) status: u16,
    /// When it was fetched, in milliseconds since 1970.
    pub(super) fetched_at_ms: u64,
}

/// A folder of documents.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The kept document of an address, if it may still be used and is whole.
    pub(super) async fn find(
        &self,
        url: &str,
        may_be_used: impl Fn(&Entry) -> bool + Send + 'static,
    ) -> Option<Document> {
        let (folder, url) = (self.folder.clone(), url.to_owned());
        let read = tokio::task::spawn_blocking(move || find(&folder, &url, &may_be_used));
        read.await.ok().flatten()
    }

    /// Keeps a document. Where that fails, it is not kept, and nobody else is bothered.
    pub(super) async fn keep(&self, entry: Entry, document: Document) {
        let folder = self.folder.clone();
        let kept = tokio::task::spawn_blocking(move || keep(&folder, &entry, &document));
        if let Ok(Err(error)) = kept.await {
            tracing::warn!(error = %error, "document could not be kept");
        }
    }
}

fn find(folder: &Path, url: &str, may_be_used: &dyn Fn(&Entry) -> bool) -> Option<Document> {
    let entry: Entry =
        serde_json::from_slice(&read(&entry_path(folder, url), MAX_ENTRY_BYTES)?).ok()?;
    if entry.url != url || !may_be_used(&entry) {
        return None;
    }
    let bytes = read(&blob_path(folder, entry.sha256), MAX_BODY_BYTES as u64)?;
    (Sha256Hex::of(&bytes) == entry.sha256)
        .then(|| Document { bytes: bytes.into(), sha256: entry.sha256 })
}

/// The document first: an entry must never name what is not there.
fn keep(folder: &Path, entry: &Entry, document: &Document) -> io::Result<()> {
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

/// Whole or not at all: others may write the same file at the same time.
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
