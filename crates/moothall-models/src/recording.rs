//! Recorded replies, one file per request hash, so a run can be repeated exactly without a
//! provider.
//!
//! Replay is strict: a request without a recording fails and names the nearest recording and the
//! first difference. Calling the provider instead would no longer be a repetition.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use moothall_core::model::{CallPurpose, FailureKind, ModelFailure, ModelReply, ModelRequest};
use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct RecordingStore {
    folder: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyRecording {
    request: ModelRequest,
    reply: ModelReply,
}

impl RecordingStore {
    /// The folder does not have to exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The recorded reply to exactly this request.
    pub fn find(&self, request: &ModelRequest) -> Result<ModelReply, ModelFailure> {
        let path = self.path(hash(request)?);
        match read(&path) {
            // Do not rely on the file name: the file may have been renamed or edited.
            Ok(recording) if recording.request.hash() != request.hash() => {
                let detail =
                    format!("the recording {} contains a different request", path.display());
                Err(ModelFailure::new(FailureKind::NotFound, detail))
            }
            Ok(recording) => Ok(recording.reply),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.miss(request)),
            Err(error) => Err(ModelFailure::new(
                FailureKind::NotFound,
                format!("cannot read a recording: {error}"),
            )),
        }
    }

    /// Records a reply. Writes the file atomically.
    pub fn keep(&self, request: &ModelRequest, reply: &ModelReply) -> Result<(), ModelFailure> {
        let failed = |error: io::Error| {
            ModelFailure::new(FailureKind::NotFound, format!("cannot record the reply: {error}"))
        };
        let path = self.path(hash(request)?);
        let recording = ReplyRecording { request: request.clone(), reply: reply.clone() };
        let text =
            serde_json::to_string_pretty(&recording).map_err(|error| failed(error.into()))?;
        fs_err::create_dir_all(&self.folder).map_err(failed)?;
        // Use a unique name, because identical requests may be answered at the same time.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let partial = path.with_extension(format!("partial-{process}-{count}"));
        let kept =
            fs_err::write(&partial, text + "\n").and_then(|()| fs_err::rename(&partial, &path));
        kept.map_err(|error| {
            // Best effort; the original error is more useful.
            let _ = fs_err::remove_file(&partial);
            failed(error)
        })
    }

    fn path(&self, hash: Sha256Hex) -> PathBuf {
        self.folder.join(format!("{hash}.json"))
    }

    fn miss(&self, request: &ModelRequest) -> ModelFailure {
        let folder = self.folder.display();
        let wanted = canonical(request);
        let nearest = self.all().into_iter().map(|(name, other)| {
            let other = canonical(&other);
            (common_bytes(&wanted, &other), name, other)
        });
        let detail = match nearest.max_by(|a, b| (a.0, &b.1).cmp(&(b.0, &a.1))) {
            Some((_, name, other)) => {
                let place = first_difference(&wanted, &other)
                    .unwrap_or_else(|| "an unknown place".to_owned());
                format!(
                    "no recording in {folder} matches this request; the nearest is {name}, which differs at {place}"
                )
            }
            None => format!(
                "no recording in {folder} matches this request; the folder contains no recordings"
            ),
        };
        ModelFailure::new(FailureKind::NotFound, detail)
    }

    fn all(&self) -> Vec<(String, ModelRequest)> {
        let Ok(entries) = fs_err::read_dir(&self.folder) else { return Vec::new() };
        let files = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"));
        files
            .filter_map(|path| {
                let name = path.file_name()?.to_string_lossy().into_owned();
                Some((name, read(&path).ok()?.request))
            })
            .collect()
    }
}

fn read(path: &Path) -> io::Result<ReplyRecording> {
    serde_json::from_str(&fs_err::read_to_string(path)?).map_err(|error| {
        let named = format!("`{}`: {error}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, named)
    })
}

fn hash(request: &ModelRequest) -> Result<Sha256Hex, ModelFailure> {
    request.hash().map_err(|error| {
        ModelFailure::new(FailureKind::BadRequest, format!("cannot hash the request: {error}"))
    })
}

/// Removes the fields that are not hashed, because they cannot be the reason for a miss.
fn canonical(request: &ModelRequest) -> String {
    let counted = ModelRequest { purpose: CallPurpose::Ask, timeout_ms: None, ..request.clone() };
    canonical_json(&counted).unwrap_or_default()
}

/// Similarity of two requests: the length of their common prefix and suffix.
fn common_bytes(a: &str, b: &str) -> usize {
    let shared =
        |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(a, b)| a == b).count();
    let front = shared(&mut a.bytes().zip(b.bytes()));
    let back = shared(&mut a.bytes().rev().zip(b.bytes().rev()));
    (front + back).min(a.len().min(b.len()))
}

/// The JSON path of the first value that differs.
fn first_difference(a: &str, b: &str) -> Option<String> {
    fn walk(a: &Value, b: &Value, path: &str) -> Option<String> {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                let missing =
                    b.keys().find(|key| !a.contains_key(*key)).map(|key| format!("{path}/{key}"));
                a.iter()
                    .find_map(|(key, value)| {
                        walk(value, b.get(key).unwrap_or(&Value::Null), &format!("{path}/{key}"))
                    })
                    .or(missing)
            }
            (Value::Array(a), Value::Array(b)) => {
                let inner = a
                    .iter()
                    .zip(b)
                    .enumerate()
                    .find_map(|(at, (a, b))| walk(a, b, &format!("{path}/{at}")));
                inner.or_else(|| {
                    (a.len() != b.len()).then(|| format!("{path}/{}", a.len().min(b.len())))
                })
            }
            (a, b) => (a != b).then(|| path.to_owned()),
        }
    }
    walk(&serde_json::from_str(a).ok()?, &serde_json::from_str(b).ok()?, "")
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
