//! Serves recorded SEC responses on loopback, so that tests and the demo use the same code path as
//! real requests.
//!
//! A minimal server: it knows four kinds of paths, reads only request heads and responds with whole
//! files. A web framework would add routing, bodies and middleware that a recording must not have.

mod bundled;
mod layout;

use moothall_core::text::sanitize_line;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub(crate) use self::bundled::TICKER as BUNDLED_TICKER;
use crate::error::CliError;

const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
const MAX_FILE_BYTES: u64 = 64 << 20;
const MAX_CONNECTIONS: usize = 32;
/// Timeout of one connection, reading and writing.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The location of recorded responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilingRecording {
    /// A canonical directory.
    Folder(PathBuf),
    /// Built into the program.
    Bundled,
}

impl FilingRecording {
    /// A recording in the user's directory.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, CliError> {
        let canonical = folder.canonicalize().map_err(|error| {
            let message = format!("cannot read the recording `{}`", folder.display());
            CliError::usage(message).with_source(error)
        })?;
        if !canonical.join("companyfacts").is_dir() {
            let shown = folder.display();
            return Err(CliError::usage(format!("{shown} is not a recording of filings")).with_hint(
                "expected companyfacts/ and submissions/ with files such as CIK0000320193.json, and reference/company_tickers.json",
            ));
        }
        Ok(Self::Folder(canonical))
    }

    /// The name shown in reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder
                .file_name()
                .map_or_else(|| "/".to_owned(), |name| sanitize_line(&name.to_string_lossy())),
            Self::Bundled => BUNDLED_TICKER.to_owned(),
        }
    }

    /// The response to a request for this path.
    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let file = layout::recording_path(path)?;
        match self {
            Self::Folder(root) => read_inside(root, &file),
            Self::Bundled => bundled::read(&file).map(<[u8]>::to_vec),
        }
    }
}

/// Reads a file inside `root`; symbolic links that lead outside are treated as missing.
fn read_inside(root: &Path, file: &str) -> Option<Vec<u8>> {
    let path = fs_err::canonicalize(root.join(file)).ok()?;
    let known = fs_err::metadata(&path).ok()?;
    let fits = path.starts_with(root) && known.is_file() && known.len() <= MAX_FILE_BYTES;
    fits.then(|| fs_err::read(path).ok()).flatten()
}

/// A running server, stopped when dropped.
#[derive(Debug)]
pub(crate) struct RecordingServer {
    base: String,
    task: JoinHandle<()>,
}

impl RecordingServer {
    /// Serves a recording on a free loopback port.
    pub(crate) async fn start(recording: FilingRecording) -> Result<Self, CliError> {
        let cannot = |error: std::io::Error| {
            CliError::failed("cannot serve the recording on this machine").with_source(error)
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(cannot)?;
        let base = format!("http://{}", listener.local_addr().map_err(cannot)?);
        let task = tokio::spawn(serve(listener, Arc::new(recording)));
        Ok(Self { base, task })
    }

    /// The base URL that replaces the hosts of the SEC.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, recording: Arc<FilingRecording>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let recording = Arc::clone(&recording);
                tokio::spawn(async move {
                    let _ =
                        tokio::time::timeout(CONNECTION_TIMEOUT, answer(stream, recording)).await;
                    drop(slot);
                });
            }
            // Probably out of file descriptors; retry shortly.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Answers one request. Errors of a disconnected client are ignored.
async fn answer(mut stream: TcpStream, recording: Arc<FilingRecording>) -> std::io::Result<()> {
    let (status, body) = match request(&mut stream).await? {
        RecordingRequest::Get(path) => {
            let read = tokio::task::spawn_blocking(move || recording.read(&path)).await;
            match read.ok().flatten() {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", Vec::new()),
            }
        }
        RecordingRequest::Other => ("405 Method Not Allowed", Vec::new()),
        RecordingRequest::Broken => ("400 Bad Request", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\ncontent-type: application/octet-stream\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}

#[derive(Debug, PartialEq, Eq)]
enum RecordingRequest {
    Get(String),
    Other,
    Broken,
}

async fn request(stream: &mut TcpStream) -> std::io::Result<RecordingRequest> {
    let mut head = Vec::new();
    loop {
        match parse(&head) {
            Some(request) => return Ok(request),
            None if head.len() >= MAX_HEAD_BYTES => return Ok(RecordingRequest::Broken),
            None => {}
        }
        let mut chunk = [0; 2048];
        match stream.read(&mut chunk).await? {
            0 => return Ok(RecordingRequest::Broken),
            length => head.extend_from_slice(&chunk[..length]),
        }
    }
}

/// Parses the request head; `None` while it is incomplete. Bodies are never read.
fn parse(bytes: &[u8]) -> Option<RecordingRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(match (request.method, request.path) {
            (Some("GET"), Some(path)) => RecordingRequest::Get(path.to_owned()),
            _ => RecordingRequest::Other,
        }),
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(RecordingRequest::Broken),
    }
}

#[cfg(test)]
#[path = "recording_server_tests.rs"]
mod tests;
