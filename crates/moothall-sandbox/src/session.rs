//! The host's side of the agent protocol. The guest is untrusted: every frame is bounded, every
//! exchange has a deadline, and an unexpected reply ends the session.

use std::collections::BTreeMap;
use std::time::Duration;

use moothall_core::guest::{
    FrameReader, GuestFile, GuestFrame, GuestMessage, GuestRunRequest, GuestStream, GuestWorkflow,
    HostMessage, PROTOCOL, Place, ProgramExit, StepSummary, write_data, write_message,
};
use moothall_core::sandbox::GuestPath;
use moothall_core::{EffectId, EffectResult};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};

use crate::SandboxError;
use crate::registry::now_ms;

/// Time limit for a short exchange. Emulated machines on busy hosts are slow.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long to wait for the agent after the program's time limit. The agent normally stops the
/// program itself.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// How much output beyond the limit is tolerated: one frame in transit per stream.
const SLACK_BYTES: u64 = 128 << 10;

/// Maximum number of entries in a listing.
const MAX_LISTED: usize = 2_000;

/// Receives a program's output as it is printed.
pub trait OutputListener: Send {
    fn stdout(&mut self, bytes: &[u8]);
    fn stderr(&mut self, bytes: &[u8]);
}

/// The protocol session with one agent.
pub struct AgentSession {
    from: Box<dyn AsyncRead + Send + Unpin>,
    to: Box<dyn AsyncWrite + Send + Unpin>,
    reader: FrameReader,
    buffer: Box<[u8]>,
    /// Set while an exchange is incomplete. After an interrupted exchange, the next message may be
    /// its reply, so nothing more is sent.
    unfinished: bool,
}

impl std::fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSession").finish_non_exhaustive()
    }
}

/// Result of a program as seen by the host.
#[derive(Debug)]
pub(crate) struct SessionRun {
    pub(crate) end: SessionRunEnd,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Whether the host truncated the output.
    pub(crate) stdout_truncated: bool,
    pub(crate) stderr_truncated: bool,
}

#[derive(Debug)]
pub(crate) enum SessionRunEnd {
    /// The agent reported how it ended.
    Reported(ProgramExit),
    /// The agent did not report before the deadline.
    TimedOut,
    /// The connection ended or the agent violated the protocol.
    Broken(SandboxError),
}

impl AgentSession {
    pub fn new(
        from: Box<dyn AsyncRead + Send + Unpin>,
        to: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Self {
        let buffer = vec![0; 64 << 10].into_boxed_slice();
        Self { from, to, reader: FrameReader::default(), buffer, unfinished: false }
    }

    /// Begins an exchange. It counts as interrupted until [`finish_exchange`](Self::finish_exchange) is called.
    fn begin_exchange(&mut self) -> Result<(), SandboxError> {
        if self.unfinished {
            let before = "a previous exchange was interrupted";
            return Err(SandboxError::Protocol(before.to_owned()));
        }
        self.unfinished = true;
        Ok(())
    }

    fn finish_exchange(&mut self) {
        self.unfinished = false;
    }

    /// Waits until the agent reports that it is ready.
    pub async fn ready(&mut self, within: Duration) -> Result<(), SandboxError> {
        self.begin_exchange()?;
        let deadline = Instant::now() + within;
        let timed_out = SandboxError::NotReady { what: "the guest agent", waited: within };
        match timeout_at(deadline, self.read_message()).await.map_err(|_| timed_out)?? {
            GuestMessage::Ready { protocol: PROTOCOL } => {
                self.finish_exchange();
                Ok(())
            }
            GuestMessage::Ready { protocol } => Err(SandboxError::Protocol(format!(
                "it uses protocol version {protocol}, but this program uses {PROTOCOL}"
            ))),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives the guest new randomness and the current time. The reply shows that it works.
    pub(crate) async fn refresh(&mut self) -> Result<(), SandboxError> {
        let mut seed = [0; 32];
        fs_err::File::open("/dev/urandom")
            .and_then(|mut source| std::io::Read::read_exact(&mut source, &mut seed))
            .map_err(SandboxError::host("cannot read randomness for the guest"))?;
        self.reseed(seed, now_ms()).await
    }

    /// Sets the guest's randomness and clock.
    pub async fn reseed(&mut self, seed: [u8; 32], unix_ms: u64) -> Result<(), SandboxError> {
        let seed = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        self.exchange(&HostMessage::Reseed { seed, unix_ms }, EXCHANGE_TIMEOUT).await
    }

    /// Starts an interpreter that waits for a program.
    pub async fn park(&mut self, argv: Vec<String>, within: Duration) -> Result<(), SandboxError> {
        self.exchange(&HostMessage::Park { argv }, within).await
    }

    /// Writes a file into the guest.
    pub async fn put(
        &mut self,
        place: Place,
        path: &GuestPath,
        bytes: &[u8],
    ) -> Result<(), SandboxError> {
        self.begin_exchange()?;
        let deadline = Instant::now() + EXCHANGE_TIMEOUT;
        self.send_message(&HostMessage::Put { place, path: path.clone() }, deadline).await?;
        for piece in bytes.chunks(1 << 20) {
            let mut frames = Vec::with_capacity(piece.len() + 128);
            write_data(&mut frames, GuestStream::File, piece);
            self.send(&frames, Instant::now() + EXCHANGE_TIMEOUT).await?;
        }
        self.finish_with(&HostMessage::End, EXCHANGE_TIMEOUT).await
    }

    /// Runs a program and collects its output. The wall-clock limit starts now; output is kept
    /// however the program ends.
    pub(crate) async fn run(
        &mut self,
        request: GuestRunRequest,
        stdin: &[u8],
        mut listener: Option<&mut dyn OutputListener>,
    ) -> SessionRun {
        let deadline =
            Instant::now() + Duration::from_millis(request.limits.wall_ms) + GRACE_PERIOD;
        let max_bytes = request.limits.output_bytes;
        let mut ran = SessionRun {
            end: SessionRunEnd::TimedOut,
            stdout: Vec::new(),
            stderr: Vec::new(),
            stdout_truncated: false,
            stderr_truncated: false,
        };
        if let Err(error) = self.begin_exchange() {
            ran.end = SessionRunEnd::Broken(error);
            return ran;
        }
        let mut frames = Vec::new();
        if let Err(fault) = write_message(&mut frames, &HostMessage::Run(request)) {
            ran.end = SessionRunEnd::Broken(fault.into());
            return ran;
        }
        write_data(&mut frames, GuestStream::Stdin, stdin);
        if let Err(fault) = write_message(&mut frames, &HostMessage::End) {
            ran.end = SessionRunEnd::Broken(fault.into());
            return ran;
        }
        // Read and write concurrently: a program that prints before it reads must not block.
        let (from, to, reader, buffer) =
            (&mut self.from, &mut self.to, &mut self.reader, &mut self.buffer);
        let mut reading = Box::pin(async {
            let mut received = 0_u64;
            loop {
                match next_frame(from, reader, buffer).await? {
                    GuestFrame::Data(
                        channel @ (GuestStream::Stdout | GuestStream::Stderr),
                        bytes,
                    ) => {
                        received += bytes.len() as u64;
                        if received > 2 * max_bytes + SLACK_BYTES {
                            let flood = "it sends more output than the limit";
                            return Err(SandboxError::Protocol(flood.to_owned()));
                        }
                        let out = channel == GuestStream::Stdout;
                        let (kept, cut) = if out {
                            (&mut ran.stdout, &mut ran.stdout_truncated)
                        } else {
                            (&mut ran.stderr, &mut ran.stderr_truncated)
                        };
                        let free = usize::try_from(max_bytes).unwrap_or(usize::MAX) - kept.len();
                        let piece = &bytes[..bytes.len().min(free)];
                        *cut |= piece.len() < bytes.len();
                        kept.extend_from_slice(piece);
                        match listener.as_deref_mut() {
                            Some(listener) if out => listener.stdout(piece),
                            Some(listener) => listener.stderr(piece),
                            None => {}
                        }
                    }
                    GuestFrame::Message(GuestMessage::Ended(ended)) => return Ok(ended),
                    GuestFrame::Message(GuestMessage::Refused { why }) => {
                        return Err(SandboxError::Request(shortened(&why)));
                    }
                    GuestFrame::Message(other) => return Err(unexpected(&other)),
                    GuestFrame::Data(..) => return Err(misplaced_data()),
                }
            }
        });
        let mut sent = 0;
        let writing = async {
            while let Some(rest) = frames.get(sent..).filter(|rest| !rest.is_empty()) {
                match to.write(rest).await? {
                    0 => return Err(std::io::ErrorKind::WriteZero.into()),
                    written => sent += written,
                }
            }
            to.flush().await
        };
        let reply = timeout_at(deadline, async {
            tokio::select! {
                reply = &mut reading => reply,
                // A failed write does not matter; the agent's report decides.
                _ = writing => reading.as_mut().await,
            }
        })
        .await;
        drop(reading);
        if let Ok(Ok(_)) = reply {
            let rest = rest_of_input(&frames, sent);
            if self.send(&rest, Instant::now() + EXCHANGE_TIMEOUT).await.is_ok() {
                self.finish_exchange();
            }
        }
        ran.end = match reply {
            Ok(Ok(ended)) => SessionRunEnd::Reported(ended),
            Ok(Err(error)) => SessionRunEnd::Broken(error),
            Err(_) => SessionRunEnd::TimedOut,
        };
        ran
    }

    /// Lists the files in a folder of `/workspace`, or in all of it, and describes other entries as
    /// text.
    pub(crate) async fn list(
        &mut self,
        folder: Option<&GuestPath>,
        most: u32,
    ) -> Result<(Vec<GuestFile>, Vec<String>), SandboxError> {
        self.begin_exchange()?;
        let deadline = Instant::now() + EXCHANGE_TIMEOUT;
        self.send_message(&HostMessage::List { folder: folder.cloned(), most }, deadline).await?;
        let reply = self.read_reply(deadline).await?;
        self.finish_exchange();
        match reply {
            GuestMessage::Listing { files, others } => {
                if files.len() > most as usize || others.len() > MAX_LISTED {
                    return Err(SandboxError::Protocol(
                        "it lists more files than requested".to_owned(),
                    ));
                }
                Ok((files, others.iter().map(|other| shortened(other)).collect()))
            }
            // The program did not create the folder.
            GuestMessage::Refused { .. } => Ok((Vec::new(), Vec::new())),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads a file from `/workspace`, or returns why that failed.
    pub async fn get(
        &mut self,
        path: &GuestPath,
        most_bytes: u64,
    ) -> Result<Result<Vec<u8>, String>, SandboxError> {
        self.begin_exchange()?;
        let deadline = Instant::now() + EXCHANGE_TIMEOUT;
        self.send_message(&HostMessage::Get { path: path.clone(), most_bytes }, deadline).await?;
        let mut file = Vec::new();
        loop {
            let frame = timeout_at(
                deadline,
                next_frame(&mut self.from, &mut self.reader, &mut self.buffer),
            );
            match frame.await.map_err(|_| timed_out())?? {
                GuestFrame::Data(GuestStream::File, bytes) => {
                    if (file.len() + bytes.len()) as u64 > most_bytes {
                        let more = "it sends more of a file than requested";
                        return Err(SandboxError::Protocol(more.to_owned()));
                    }
                    file.extend_from_slice(&bytes);
                }
                GuestFrame::Message(GuestMessage::End) => {
                    self.finish_exchange();
                    return Ok(Ok(file));
                }
                GuestFrame::Message(GuestMessage::Refused { why }) => {
                    self.finish_exchange();
                    return Ok(Err(shortened(&why)));
                }
                GuestFrame::Message(other) => return Err(unexpected(&other)),
                GuestFrame::Data(..) => return Err(misplaced_data()),
            }
        }
    }

    /// Starts a workflow in the guest and returns its first step.
    pub async fn start_workflow(
        &mut self,
        workflow: GuestWorkflow,
    ) -> Result<StepSummary, SandboxError> {
        self.step(&HostMessage::Start(Box::new(workflow))).await
    }

    /// Passes a result to the workflow and returns its next step. The effects in the step are
    /// untrusted requests: the caller decides which to perform.
    pub async fn resume_workflow(
        &mut self,
        id: EffectId,
        result: EffectResult,
    ) -> Result<StepSummary, SandboxError> {
        self.step(&HostMessage::Result { id, result: Box::new(result) }).await
    }

    /// Lets the agent try to leave the sandbox. Returns for each test whether the sandbox held.
    pub(crate) async fn probe(
        &mut self,
        host_file: String,
        port: u16,
    ) -> Result<BTreeMap<String, bool>, SandboxError> {
        self.begin_exchange()?;
        let deadline = Instant::now() + EXCHANGE_TIMEOUT;
        self.send_message(&HostMessage::Probe { host_file, port }, deadline).await?;
        let reply = self.read_reply(deadline).await?;
        self.finish_exchange();
        match reply {
            GuestMessage::Probed { held } => Ok(held),
            other => Err(unexpected(&other)),
        }
    }

    async fn step(&mut self, message: &HostMessage) -> Result<StepSummary, SandboxError> {
        self.begin_exchange()?;
        let deadline = Instant::now() + EXCHANGE_TIMEOUT;
        self.send_message(message, deadline).await?;
        let reply = self.read_reply(deadline).await?;
        self.finish_exchange();
        match reply {
            GuestMessage::Step(step) => Ok(*step),
            GuestMessage::Refused { why } => Err(SandboxError::Request(shortened(&why))),
            other => Err(unexpected(&other)),
        }
    }

    async fn exchange(
        &mut self,
        message: &HostMessage,
        within: Duration,
    ) -> Result<(), SandboxError> {
        self.begin_exchange()?;
        self.finish_with(message, within).await
    }

    /// Sends the last message of an exchange and waits for confirmation.
    async fn finish_with(
        &mut self,
        message: &HostMessage,
        within: Duration,
    ) -> Result<(), SandboxError> {
        let deadline = Instant::now() + within;
        self.send_message(message, deadline).await?;
        let reply = self.read_reply(deadline).await?;
        self.finish_exchange();
        match reply {
            GuestMessage::Done => Ok(()),
            GuestMessage::Refused { why } => Err(SandboxError::Request(shortened(&why))),
            other => Err(unexpected(&other)),
        }
    }

    async fn send_message(
        &mut self,
        message: &HostMessage,
        deadline: Instant,
    ) -> Result<(), SandboxError> {
        let mut frame = Vec::new();
        write_message(&mut frame, message)?;
        self.send(&frame, deadline).await
    }

    async fn send(&mut self, frames: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        let send = async {
            self.to.write_all(frames).await?;
            self.to.flush().await
        };
        timeout_at(deadline, send).await.map_err(|_| timed_out())?.map_err(SandboxError::Lost)
    }

    async fn read_reply(&mut self, deadline: Instant) -> Result<GuestMessage, SandboxError> {
        timeout_at(deadline, self.read_message()).await.map_err(|_| timed_out())?
    }

    async fn read_message(&mut self) -> Result<GuestMessage, SandboxError> {
        match next_frame(&mut self.from, &mut self.reader, &mut self.buffer).await? {
            GuestFrame::Message(message) => Ok(message),
            GuestFrame::Data(..) => Err(misplaced_data()),
        }
    }
}

async fn next_frame(
    from: &mut Box<dyn AsyncRead + Send + Unpin>,
    reader: &mut FrameReader,
    buffer: &mut [u8],
) -> Result<GuestFrame<GuestMessage>, SandboxError> {
    loop {
        if let Some(frame) = reader.next()? {
            return Ok(frame);
        }
        match from.read(buffer).await.map_err(SandboxError::Lost)? {
            0 => return Err(SandboxError::Lost(std::io::ErrorKind::UnexpectedEof.into())),
            read => reader.push(&buffer[..read]),
        }
    }
}

/// What to send after a program ended without reading all of its input: the rest of the current
/// frame and the end marker. Otherwise the next message would be taken as input.
fn rest_of_input(frames: &[u8], sent: usize) -> Vec<u8> {
    let mut at = 0;
    while at < sent
        && let Some(length) = frames.get(at..).and_then(|frame| frame.first_chunk())
    {
        at += length.len() + u32::from_be_bytes(*length) as usize;
    }
    let mut rest = frames.get(sent..at).unwrap_or_default().to_vec();
    if at < frames.len()
        && let Err(fault) = write_message(&mut rest, &HostMessage::End)
    {
        tracing::warn!(%fault, "cannot signal the end of a program's input");
    }
    rest
}

fn timed_out() -> SandboxError {
    SandboxError::NotReady { what: "the guest agent's reply", waited: EXCHANGE_TIMEOUT }
}

fn misplaced_data() -> SandboxError {
    SandboxError::Protocol("it sends unexpected data".to_owned())
}

fn unexpected(message: &GuestMessage) -> SandboxError {
    let name = match message {
        GuestMessage::Ready { .. } => "ready",
        GuestMessage::Done => "done",
        GuestMessage::Refused { .. } => "refused",
        GuestMessage::Ended(_) => "ended",
        GuestMessage::Listing { .. } => "listing",
        GuestMessage::End => "end",
        GuestMessage::Probed { .. } => "probed",
        GuestMessage::Step(_) => "step",
    };
    SandboxError::Protocol(format!("it sends an unexpected `{name}` message"))
}

/// Limits text from the guest to one short line.
fn shortened(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
