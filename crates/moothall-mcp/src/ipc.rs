//! What the front asks of the gate and the runner, and the socket between them.
//!
//! A frame is its length in four bytes and one JSON value. Answers carry the number of what they
//! answer, so a call that waits holds up no other.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use moothall_core::drafts::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::tools::ToolName;

/// The longest frame: a file, its difference, and what JSON makes of them.
const MAX_FRAME_BYTES: usize = 64 << 20;
/// Frames that wait to be written.
const QUEUE: usize = 64;

/// What the front wants to know or have done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// A tool is called. The arguments are as the client sent them.
    Call {
        /// Which.
        tool: ToolName,
        /// With what.
        arguments: Map<String, Value>,
        /// Through what, as it says.
        client: Option<Client>,
    },
    /// The difference that a draft comes to.
    Diff {
        /// Which.
        draft: String,
    },
    /// The open drafts of the worker.
    Drafts,
    /// What became of a submission.
    Outcome {
        /// One of its drafts.
        draft: String,
    },
    /// What a person said in a form of their client.
    Decide {
        /// About which draft.
        draft: String,
        /// What was shown.
        seal: String,
        /// What they said.
        approve: bool,
        /// And why.
        reason: String,
        /// Through what.
        client: Option<Client>,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// It is done, and this is what the tool says.
    Done {
        /// The tool's structured result.
        result: Value,
        /// What a person should be asked, if the client can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asking: Option<Asking>,
    },
    /// It is not done; the caller can mend it.
    Refused {
        /// Why.
        words: String,
        /// And how to mend it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// It could not be done; whoever keeps the machine can mend it.
    Broken {
        /// Why.
        words: String,
    },
}

/// What a person should be asked about a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Asking {
    /// To look at a page.
    Url {
        /// The draft.
        draft: String,
        /// The page.
        url: String,
        /// Why.
        message: String,
    },
    /// To decide in a form.
    Form {
        /// The draft.
        draft: String,
        /// The hash of what the form shows.
        seal: String,
        /// What it shows.
        message: String,
    },
}

impl Answer {
    /// A result about which nobody is asked anything.
    pub fn done(result: &impl Serialize) -> Self {
        match serde_json::to_value(result) {
            Ok(result) => Self::Done { result, asking: None },
            Err(error) => Self::Broken { words: error.to_string() },
        }
    }
}

/// The other process is gone, or does not keep to the frames.
#[derive(Debug, thiserror::Error)]
#[error("the process behind this server is gone")]
pub struct LinkError;

#[derive(Debug, Serialize, Deserialize)]
struct Numbered<T> {
    id: u64,
    what: T,
}

// --- the side that answers: threads, no runtime -----------------------------------------------------

/// Says that it is ready, and answers until the other side is gone, which `gone` is told at once.
/// `at_once` are answered at a time; others wait in the socket.
pub fn answer_all(
    stream: UnixStream,
    at_once: usize,
    answer: impl Fn(Ask) -> Answer + Sync,
    gone: impl FnOnce(),
) -> io::Result<()> {
    let mut reading = stream.try_clone()?;
    let writing = Mutex::new(stream);
    write_frame(&writing, &"ready")?;
    let (queue, jobs) = mpsc::sync_channel::<Numbered<Ask>>(at_once);
    let jobs = Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Numbered { id, what }) = job else { return };
                    // Nobody may be there any more; what was begun is finished all the same. An
                    // answer that is too long is still one: whoever asked would wait for ever.
                    if write_frame(&writing, &Numbered { id, what: answer(what) }).is_err() {
                        let words = "the answer is too long".to_owned();
                        let what = Answer::Broken { words };
                        let _ = write_frame(&writing, &Numbered { id, what });
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
        gone();
        drop(queue);
        ended
    })
}

/// Waits for the other side to say that it is ready. `false`: it ended instead.
pub fn wait_until_ready(stream: &mut UnixStream) -> io::Result<bool> {
    Ok(read_frame::<String>(stream)?.is_some_and(|word| word == "ready"))
}

fn frame_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value)?;
    let length = frame.len() - 4;
    let fits = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME_BYTES);
    let length = fits.ok_or_else(|| io::Error::other("a frame is too long"))?;
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
        return Err(io::Error::other("a frame is too long"));
    }
    Ok(length)
}

// --- the side that asks: a runtime --------------------------------------------------------------------

/// The way to a process that answers.
#[derive(Debug, Clone)]
pub struct Link {
    frames: tokio::sync::mpsc::Sender<Vec<u8>>,
    waiting: Arc<Waiting>,
    next: Arc<AtomicU64>,
    lost: CancellationToken,
}

type Waiting = Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>;

impl Link {
    /// Takes the socket into the runtime that this is called in.
    pub fn open(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reading, mut writing) = tokio::net::UnixStream::from_std(stream)?.into_split();
        let (frames, mut queue) = tokio::sync::mpsc::channel::<Vec<u8>>(QUEUE);
        let waiting = Arc::<Waiting>::default();
        let lost = CancellationToken::new();
        // A task of its own writes: a caller that goes away in the middle leaves no half frame.
        tokio::spawn(async move {
            while let Some(frame) = queue.recv().await {
                if writing.write_all(&frame).await.is_err() {
                    break;
                }
            }
        });
        let (answered, ended) = (Arc::clone(&waiting), lost.clone());
        tokio::spawn(async move {
            while let Some(Numbered { id, what }) = next_answer(&mut reading).await {
                let asker = answered.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                if let Some(asker) = asker {
                    let _ = asker.send(what);
                }
            }
            ended.cancel();
            answered.lock().unwrap_or_else(PoisonError::into_inner).clear();
        });
        Ok(Self { frames, waiting, next: Arc::default(), lost })
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&self, ask: &Ask) -> Result<Answer, LinkError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = frame_of(&Numbered { id, what: ask }).map_err(|_| LinkError)?;
        let (asker, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, asker);
        let sent = self.frames.send(frame).await;
        if sent.is_err() || self.lost.is_cancelled() {
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            return Err(LinkError);
        }
        answer.await.map_err(|_| LinkError)
    }

    /// Waits until the other side is gone.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

async fn next_answer(reading: &mut tokio::net::unix::OwnedReadHalf) -> Option<Numbered<Answer>> {
    let mut length = [0; 4];
    reading.read_exact(&mut length).await.ok()?;
    let mut frame = vec![0; bounded(length).ok()?];
    reading.read_exact(&mut frame).await.ok()?;
    serde_json::from_slice(&frame).ok()
}

#[cfg(test)]
#[path = "ipc_tests.rs"]
mod tests;
