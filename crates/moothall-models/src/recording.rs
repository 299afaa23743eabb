//! Recordings: request hash → reply, one file each, so that a run can be repeated word for word
//! without a provider.
//!
//! Replaying is strict: a request without a recording is a failure that names the nearest recording
//! and the first difference, because a silent call to a provider would make the repetition a lie.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use moothall_core::model::{FailureKind, ModelFailure, ModelReply, ModelRequest, Purpose};
use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A folder of recordings.
#[derive(Debug, Clone)]
pub struct Recordings {
    folder: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    request: ModelRequest,
    reply: ModelReply,
}

impl Recordings {
    /// A folder that need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The recorded reply to exactly this request.
    pub fn find(&self, request: &ModelRequest) -> Result<ModelReply, ModelFailure> {
        let path = self.path(hash(request)?);
        match read(&path) {
            // The name is only a name: a file that was renamed or edited answers another question.
            Ok(recording) if recording.request.hash() != request.hash() => {
                let detail = format!("the recording {} holds another request", path.display());
                Err(ModelFailure::new(FailureKind::NotFound, detail))
            }
            Ok(recording) => Ok(recording.reply),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.miss(request)),
            Err(error) => Err(ModelFailure::new(
                FailureKind::NotFound,
                format!("a recording cannot be read: {error}"),
            )),
        }
    }

    /// Keeps a reply. The file appears whole or not at all.
    pub fn keep(&self, request: &ModelRequest, reply: &ModelReply) -> Result<(), ModelFailure> {
        let failed = |error: io::Error| {
            ModelFailure::new(
                FailureKind::NotFound,
                format!("the reply cannot be recorded: {error}"),
            )
        };
        let path = self.path(hash(request)?);
        let recording = Recording { request: request.clone(), reply: reply.clone() };
        let text =
            serde_json::to_string_pretty(&recording).map_err(|error| failed(error.into()))?;
        fs_err::create_dir_all(&self.folder).map_err(failed)?;
        // A name of its own for each: two equal requests may be answered at the same moment.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let partial = path.with_extension(format!("partial-{process}-{count}"));
        let kept =
            fs_err::write(&partial, text + "\n").and_then(|()| fs_err::rename(&partial, &path));
        kept.map_err(|error| {
            // Nothing can be done about a remnant that cannot be removed, and the first error says
            // more.
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
                    .unwrap_or_else(|| "nothing that can be seen".to_owned());
                format!(
                    "no recording in {folder} answers this request; the nearest is {name}, which differs at {place}"
                )
            }
            None => format!("no recording in {folder} answers this request; the folder holds none"),
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

fn read(path: &Path) -> io::Result<Recording> {
    serde_json::from_str(&fs_err::read_to_string(path)?).map_err(|error| {
        let named = format!("`{}`: {error}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, named)
    })
}

fn hash(request: &ModelRequest) -> Result<Sha256Hex, ModelFailure> {
    request.hash().map_err(|error| {
        ModelFailure::new(FailureKind::BadRequest, format!("the request has no hash: {error}"))
    })
}

/// Without what the hash leaves out: it cannot be why a recording was missed.
fn canonical(request: &ModelRequest) -> String {
    let counted = ModelRequest { purpose: Purpose::Ask, timeout_ms: None, ..request.clone() };
    canonical_json(&counted).unwrap_or_default()
}

/// How much two requests share: what they begin with and what they end with.
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
