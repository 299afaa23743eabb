//! Recorded answers of the SEC, served on loopback: tests and the demonstration take the way that
//! real requests take.
//!
//! The server is our own: it knows four kinds of paths, reads only heads of requests and answers with
//! whole files. A web framework would bring routing, bodies and middleware that a recording must not
//! have.

mod bundled;
mod layout;

use moothall_core::text::shown_line;
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
/// How long a client may take to say what it wants, or to take what it gets.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where recorded answers are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recording {
    /// In this folder, whose path has no links in it.
    Folder(PathBuf),
    /// In the program itself.
    Bundled,
}

impl Recording {
    /// A recording of the user's.
    pub(crate) fn in_folder(folder: &Path) -> Result<Self, CliError> {
        let whole = folder.canonicalize().map_err(|error| {
            let words = format!("the recording `{}` cannot be read", folder.display());
            CliError::usage(words).with_source(error)
        })?;
        if !whole.join("companyfacts").is_dir() {
            let shown = folder.display();
            return Err(CliError::usage(format!("{shown} is not a recording")).with_hint(
                "it has companyfacts/ and submissions/ with files such as CIK0000320193.json, and reference/company_tickers.json",
            ));
        }
        Ok(Self::Folder(whole))
    }

    /// What it is called in what is written about it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Folder(folder) => folder
                .file_name()
                .map_or_else(|| "/".to_owned(), |name| shown_line(&name.to_string_lossy())),
            Self::Bundled => BUNDLED_TICKER.to_owned(),
        }
    }

    /// The file that answers a request for this path.
    pub(crate) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let file = layout::file_of(path)?;
        match self {
            Self::Folder(root) => read_inside(root, &file),
            Self::Bundled => bundled::read(&file).map(<[u8]>::to_vec),
        }
    }
}

/// Reads a file that is really in the folder: a link that leads out of it is not there.
fn read_inside(root: &Path, file: &str) -> Option<Vec<u8>> {
    let path = fs_err::canonicalize(root.join(file)).ok()?;
    let known = fs_err::metadata(&path).ok()?;
    let fits = path.starts_with(root) && known.is_file() && known.len() <= MAX_FILE_BYTES;
    fits.then(|| fs_err::read(path).ok()).flatten()
}

/// A recording that is being served. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct RecordingServer {
    base: String,
    task: JoinHandle<()>,
}

impl RecordingServer {
    /// Serves a recording on a port of this machine that nobody else uses.
    pub(crate) async fn start(recording: Recording) -> Result<Self, CliError> {
        let cannot = |error: std::io::Error| {
            CliError::failed("the recording cannot be served on this machine").with_source(error)
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(cannot)?;
        let base = format!("http://{}", listener.local_addr().map_err(cannot)?);
        let task = tokio::spawn(serve(listener, Arc::new(recording)));
        Ok(Self { base, task })
    }

    /// The address that stands for the hosts of the SEC.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }
}

impl Drop for RecordingServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, recording: Arc<Recording>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let recording = Arc::clone(&recording);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(PATIENCE, answer(stream, recording)).await;
                    drop(slot);
                });
            }
            // Out of descriptors, most likely; a moment later there may be some.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Reads one request and answers it. A client that goes away early has what it wanted.
async fn answer(mut stream: TcpStream, recording: Arc<Recording>) -> std::io::Result<()> {
    let (status, body) = match request(&mut stream).await? {
        Request::Get(path) => {
            let read = tokio::task::spawn_blocking(move || recording.read(&path)).await;
            match read.ok().flatten() {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", Vec::new()),
            }
        }
        Request::Other => ("405 Method Not Allowed", Vec::new()),
        Request::Broken => ("400 Bad Request", Vec::new()),
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
enum Request {
    Get(String),
    Other,
    Broken,
}

async fn request(stream: &mut TcpStream) -> std::io::Result<Request> {
    let mut head = Vec::new();
    loop {
        match parse(&head) {
            Some(request) => return Ok(request),
            None if head.len() >= MAX_HEAD_BYTES => return Ok(Request::Broken),
            None => {}
        }
        let mut piece = [0; 2048];
        match stream.read(&mut piece).await? {
            0 => return Ok(Request::Broken),
            length => head.extend_from_slice(&piece[..length]),
        }
    }
}

/// What is asked for, or nothing while the head is not all there. A body is never read.
fn parse(bytes: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(match (request.method, request.path) {
            (Some("GET"), Some(path)) => Request::Get(path.to_owned()),
            _ => Request::Other,
        }),
        Ok(httparse::Status::Partial) => None,
        Err(_) => Some(Request::Broken),
    }
}

#[cfg(test)]
#[path = "offline_tests.rs"]
mod tests;
