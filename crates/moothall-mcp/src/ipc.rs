//! Requests from the frontend to the gate and the runner, and the socket between them.
//!
//! A frame is a length of four bytes and one JSON value. Answers carry the id of their request, so
//! a waiting call does not block others.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use moothall_core::drafts::ClientInfo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::tools::ToolName;

/// Maximum frame size: a file and its diff with JSON escaping.
const MAX_FRAME_BYTES: usize = 64 << 20;
/// Maximum frames that wait to be written.
const MAX_QUEUED_FRAMES: usize = 64;

/// A request from the frontend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum IpcRequest {
    /// Call a tool. The arguments are passed as the client sent them.
    Call {
        /// The tool.
        tool: ToolName,
        /// The arguments.
        arguments: Map<String, Value>,
        /// The client, as it identifies itself.
        client: Option<ClientInfo>,
    },
    /// Get the diff of a draft.
    Diff {
        /// Id of the draft.
        draft: String,
    },
    /// List the agent's open drafts.
    Drafts,
    /// Get the result of a submission.
    Outcome {
        /// Id of one of its drafts.
        draft: String,
    },
    /// Apply a decision that a person made in a form of the client.
    Decide {
        /// Id of the draft.
        draft: String,
        /// Hash of the submission that the form showed.
        seal: String,
        /// Whether the person approved it.
        approve: bool,
        /// The person's reason.
        reason: String,
        /// The client, as it identifies itself.
        client: Option<ClientInfo>,
    },
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum IpcResponse {
    /// Success.
    Done {
        /// The tool's structured result.
        result: Value,
        /// What to ask the person, if the client supports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asking: Option<ElicitationPrompt>,
    },
    /// Refused; the caller can fix the request.
    Refused {
        /// The reason.
        words: String,
        /// How to fix it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// Failed; only the operator of the machine can fix it.
    Broken {
        /// The reason.
        words: String,
    },
}

/// A question to the person about a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum ElicitationPrompt {
    /// Open a review page.
    Url {
        /// Id of the draft.
        draft: String,
        /// URL of the page.
        url: String,
        /// Why a review is needed.
        message: String,
    },
    /// Decide in a form.
    Form {
        /// Id of the draft.
        draft: String,
        /// Hash of the submission that the form shows.
        seal: String,
        /// Text of the form.
        message: String,
    },
}

impl IpcResponse {
    /// A successful result without a question to the person.
    pub fn done(result: &impl Serialize) -> Self {
        match serde_json::to_value(result) {
            Ok(result) => Self::Done { result, asking: None },
            Err(error) => Self::Broken { words: error.to_string() },
        }
    }
}

/// The other process has ended or violated the frame format.
#[derive(Debug, thiserror::Error)]
#[error("the gate or runner process has exited")]
pub struct IpcError;

#[derive(Debug, Serialize, Deserialize)]
struct IpcMessage<T> {
    id: u64,
    what: T,
}

// --- answering side: threads, no async runtime ---

/// Reports readiness and answers requests until the other side disconnects; `on_disconnect` is called
/// immediately then. Up to `at_once` requests are answered in parallel; the others wait in the
/// socket.
pub fn answer_all(
    stream: UnixStream,
    at_once: usize,
    answer: impl Fn(IpcRequest) -> IpcResponse + Sync,
    on_disconnect: impl FnOnce(),
) -> io::Result<()> {
    let mut reading = stream.try_clone()?;
    let writing = Mutex::new(stream);
    write_frame(&writing, &"ready")?;
    let (queue, jobs) = mpsc::sync_channel::<IpcMessage<IpcRequest>>(at_once);
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(IpcMessage { id, what }) = job else { return };
                    // Ignore a disconnected client: work in progress is still completed. If the
                    // answer is too long, send an error, because the caller would wait forever
                    // otherwise.
                    if write_frame(&writing, &IpcMessage { id, what: answer(what) }).is_err() {
                        let words = "the answer is too long".to_owned();
                        let what = IpcResponse::Broken { words };
                        let _ = write_frame(&writing, &IpcMessage { id, what });
                    }
                }
            });
        }
        let ended = loop {
            match read_frame(&mut reading) {
                Ok(Some(job)) => {
                    if queue.send(job).is_err() {
                        break Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        on_disconnect();
        drop(queue);
        ended
    })
}

/// Waits until the other side reports readiness. Returns `false` if it ended instead.
pub fn wait_until_ready(stream: &mut UnixStream) -> io::Result<bool> {
    Ok(read_frame::<String>(stream)?.is_some_and(|word| word == "ready"))
}

fn frame_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value)?;
    let length = frame.len() - 4;
    let fits = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME_BYTES);
    let length = fits.ok_or_else(|| io::Error::other("frame too long"))?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame)
}

fn write_frame(stream: &Mutex<UnixStream>, value: &impl Serialize) -> io::Result<()> {
    let frame = frame_of(value)?;
    stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame)
}

fn read_frame<T: DeserializeOwned>(stream: &mut UnixStream) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut frame = vec![0; bounded(length)?];
    stream.read_exact(&mut frame)?;
    Ok(Some(serde_json::from_slice(&frame)?))
}

fn bounded(length: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::other("frame too long"));
    }
    Ok(length)
}

// --- asking side: async runtime ---

/// Connection to a process that answers requests.
#[derive(Debug, Clone)]
pub struct IpcClient {
    frames: tokio::sync::mpsc::Sender<Vec<u8>>,
    waiting: Arc<Waiting>,
    next: Arc<AtomicU64>,
    disconnected: CancellationToken,
}

type Waiting = Mutex<BTreeMap<u64, oneshot::Sender<IpcResponse>>>;

impl IpcClient {
    /// Registers the socket with the current async runtime.
    pub fn open(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reading, mut writing) = tokio::net::UnixStream::from_std(stream)?.into_split();
        let (frames, mut queue) = tokio::sync::mpsc::channel::<Vec<u8>>(MAX_QUEUED_FRAMES);
        let waiting = Arc::<Waiting>::default();
        let disconnected = CancellationToken::new();
        // A separate task writes, so a cancelled caller never leaves a partial frame.
        tokio::spawn(async move {
            while let Some(frame) = queue.recv().await {
                if writing.write_all(&frame).await.is_err() {
                    break;
                }
            }
        });
        let (answered, ended) = (Arc::clone(&waiting), disconnected.clone());
        tokio::spawn(async move {
            while let Some(IpcMessage { id, what }) = next_answer(&mut reading).await {
                let reply_sender =
                    answered.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                if let Some(reply_sender) = reply_sender {
                    let _ = reply_sender.send(what);
                }
            }
            ended.cancel();
            answered.lock().unwrap_or_else(PoisonError::into_inner).clear();
        });
        Ok(Self { frames, waiting, next: Arc::default(), disconnected })
    }

    /// Sends a request and waits for the answer.
    pub async fn ask(&self, request: &IpcRequest) -> Result<IpcResponse, IpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = frame_of(&IpcMessage { id, what: request }).map_err(|_| IpcError)?;
        let (reply_sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, reply_sender);
        let sent = self.frames.send(frame).await;
        if sent.is_err() || self.disconnected.is_cancelled() {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            return Err(IpcError);
        }
        answer.await.map_err(|_| IpcError)
    }

    /// Completes when the other side has disconnected.
    pub async fn disconnected(&self) {
        self.disconnected.cancelled().await;
    }
}

async fn next_answer(
    reading: &mut tokio::net::unix::OwnedReadHalf,
) -> Option<IpcMessage<IpcResponse>> {
    let mut length = [0; 4];
    reading.read_exact(&mut length).await.ok()?;
    let mut frame = vec![0; bounded(length).ok()?];
    reading.read_exact(&mut frame).await.ok()?;
    serde_json::from_slice(&frame).ok()
}

#[cfg(test)]
#[path = "ipc_tests.rs"]
mod tests;
