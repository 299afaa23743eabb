//! The host's side of the conversation with an agent. Whatever arrives is hostile: every frame is
//! bounded, every exchange has a deadline, and an answer that does not fit ends the conversation.

use std::time::Duration;

use moothall_core::guest::{
    Channel, Ended, FoundFile, Frame, FrameReader, FromGuest, GuestWorkflow, PROTOCOL, Place,
    RunRequest, SaidStep, ToGuest, write_data, write_message,
};
use moothall_core::sandbox::GuestPath;
use moothall_core::{EffectId, EffectResult};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout_at};

use crate::SandboxError;

/// How long a short exchange may take. An emulated machine on a busy host is slow.
const EXCHANGE: Duration = Duration::from_secs(20);

/// How long the agent may be silent after the program's time is over. It stops the program itself;
/// this is for an agent that does not.
const GRACE: Duration = Duration::from_secs(2);

/// How much more output than agreed an agent may send before we stop listening: one frame that was
/// under way for each stream.
const SLACK_BYTES: u64 = 128 << 10;

/// The most files and other things that a listing may name.
const MOST_LISTED: usize = 2_000;

/// Hears what a program prints, while it prints it.
pub trait Listener: Send {
    /// A piece of standard output.
    fn stdout(&mut self, bytes: &[u8]);
    /// A piece of standard error.
    fn stderr(&mut self, bytes: &[u8]);
}

/// A conversation with one agent.
pub struct Session {
    from: Box<dyn AsyncRead + Send + Unpin>,
    to: Box<dyn AsyncWrite + Send + Unpin>,
    reader: FrameReader,
    buffer: Box<[u8]>,
    /// An exchange that was begun and did not come to its end: whatever is said next may be its
    /// answer, so nothing is asked any more.
    unfinished: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// What came of a program, as far as this side of the channel saw it.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: RanEnd,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Whether this side cut something off.
    pub(crate) stdout_truncated: bool,
    pub(crate) stderr_truncated: bool,
}

#[derive(Debug)]
pub(crate) enum RanEnd {
    /// The agent said how.
    Told(Ended),
    /// The agent was still silent when the time was over.
    Silent,
    /// The channel ended, or what came over it made no sense.
    Broken(SandboxError),
}

impl Session {
    /// A conversation that has not begun.
    pub fn new(
        from: Box<dyn AsyncRead + Send + Unpin>,
        to: Box<dyn AsyncWrite + Send + Unpin>,
    ) -> Self {
        let buffer = vec![0; 64 << 10].into_boxed_slice();
        Self { from, to, reader: FrameReader::default(), buffer, unfinished: false }
    }

    /// Whether an exchange failed or was given up in the middle. Then nothing can be asked any more.
    pub fn is_broken(&self) -> bool {
        self.unfinished
    }

    /// Begins an exchange. It counts as given up until it is [finished](Self::finished).
    fn begin(&mut self) -> Result<(), SandboxError> {
        if self.unfinished {
            let before = "an exchange before this one did not come to its end";
            return Err(SandboxError::Protocol(before.to_owned()));
        }
        self.unfinished = true;
        Ok(())
    }

    fn finished(&mut self) {
        self.unfinished = false;
    }

    /// Waits for the agent to say that it is there.
    pub async fn ready(&mut self, within: Duration) -> Result<(), SandboxError> {
        self.begin()?;
        let deadline = Instant::now() + within;
        let late = SandboxError::NotReady { what: "the guest", waited: within };
        match timeout_at(deadline, self.message()).await.map_err(|_| late)?? {
            FromGuest::Ready { protocol: PROTOCOL } => {
                self.finished();
                Ok(())
            }
            FromGuest::Ready { protocol } => Err(SandboxError::Protocol(format!(
                "it speaks version {protocol}, this program speaks {PROTOCOL}"
            ))),
            other => Err(unexpected(&other)),
        }
    }

    /// Gives the guest its own randomness and the time.
    pub async fn reseed(&mut self, seed: [u8; 32], unix_ms: u64) -> Result<(), SandboxError> {
        let seed = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        self.done(&ToGuest::Reseed { seed, unix_ms }, EXCHANGE).await
    }

    /// Lets an interpreter start and wait for a program.
    pub async fn park(&mut self, argv: Vec<String>, within: Duration) -> Result<(), SandboxError> {
        self.done(&ToGuest::Park { argv }, within).await
    }

    /// Puts a file into the guest.
    pub async fn put(
        &mut self,
        place: Place,
        path: &GuestPath,
        bytes: &[u8],
    ) -> Result<(), SandboxError> {
        self.begin()?;
        let deadline = Instant::now() + EXCHANGE;
        self.say(&ToGuest::Put { place, path: path.clone() }, deadline).await?;
        for piece in bytes.chunks(1 << 20) {
            let mut frames = Vec::with_capacity(piece.len() + 128);
            write_data(&mut frames, Channel::File, piece);
            self.send(&frames, Instant::now() + EXCHANGE).await?;
        }
        self.done_after(&ToGuest::End, EXCHANGE).await
    }

    /// Runs a program and hears it out. `wall` counts from now; what came until the end is kept
    /// whatever the end is.
    pub(crate) async fn run(
        &mut self,
        request: RunRequest,
        stdin: &[u8],
        mut listener: Option<&mut dyn Listener>,
    ) -> Ran {
        let deadline = Instant::now() + Duration::from_millis(request.limits.wall_ms) + GRACE;
        let keep = request.limits.output_bytes;
        let mut ran = Ran {
            end: RanEnd::Silent,
            stdout: Vec::new(),
            stderr: Vec::new(),
            stdout_truncated: false,
            stderr_truncated: false,
        };
        if let Err(error) = self.begin() {
            ran.end = RanEnd::Broken(error);
            return ran;
        }
        let mut words = Vec::new();
        if let Err(fault) = write_message(&mut words, &ToGuest::Run(request)) {
            ran.end = RanEnd::Broken(fault.into());
            return ran;
        }
        write_data(&mut words, Channel::Stdin, stdin);
        if let Err(fault) = write_message(&mut words, &ToGuest::End) {
            ran.end = RanEnd::Broken(fault.into());
            return ran;
        }
        // Both directions at once: a program that prints before it reads must not stall us.
        let (from, to, reader, buffer) =
            (&mut self.from, &mut self.to, &mut self.reader, &mut self.buffer);
        let mut hear = Box::pin(async {
            let mut heard = 0_u64;
            loop {
                match next_frame(from, reader, buffer).await? {
                    Frame::Data(channel @ (Channel::Stdout | Channel::Stderr), bytes) => {
                        heard += bytes.len() as u64;
                        if heard > 2 * keep + SLACK_BYTES {
                            let flood = "it sends more output than was agreed";
                            return Err(SandboxError::Protocol(flood.to_owned()));
                        }
                        let out = channel == Channel::Stdout;
                        let (kept, cut) = if out {
                            (&mut ran.stdout, &mut ran.stdout_truncated)
                        } else {
                            (&mut ran.stderr, &mut ran.stderr_truncated)
                        };
                        let room = usize::try_from(keep).unwrap_or(usize::MAX) - kept.len();
                        let piece = &bytes[..bytes.len().min(room)];
                        *cut |= piece.len() < bytes.len();
                        kept.extend_from_slice(piece);
                        match listener.as_deref_mut() {
                            Some(listener) if out => listener.stdout(piece),
                            Some(listener) => listener.stderr(piece),
                            None => {}
                        }
                    }
                    Frame::Message(FromGuest::Ended(ended)) => return Ok(ended),
                    Frame::Message(FromGuest::Refused { why }) => {
                        return Err(SandboxError::Request(shortened(&why)));
                    }
                    Frame::Message(other) => return Err(unexpected(&other)),
                    Frame::Data(..) => return Err(misplaced_data()),
                }
            }
        });
        let mut sent = 0;
        let say = async {
            while let Some(rest) = words.get(sent..).filter(|rest| !rest.is_empty()) {
                match to.write(rest).await? {
                    0 => return Err(std::io::ErrorKind::WriteZero.into()),
                    written => sent += written,
                }
            }
            to.flush().await
        };
        let heard = timeout_at(deadline, async {
            tokio::select! {
                heard = &mut hear => heard,
                // What the agent hears is its business; the end is what it says.
                _ = say => hear.as_mut().await,
            }
        })
        .await;
        drop(hear);
        if let Ok(Ok(_)) = heard {
            let rest = rest_of_input(&words, sent);
            if self.send(&rest, Instant::now() + EXCHANGE).await.is_ok() {
                self.finished();
            }
        }
        ran.end = match heard {
            Ok(Ok(ended)) => RanEnd::Told(ended),
            Ok(Err(error)) => RanEnd::Broken(error),
            Err(_) => RanEnd::Silent,
        };
        ran
    }

    /// The files below a folder of `/workspace`, or in all of it, and in words whatever else is
    /// there.
    pub(crate) async fn list(
        &mut self,
        folder: Option<&GuestPath>,
        most: u32,
    ) -> Result<(Vec<FoundFile>, Vec<String>), SandboxError> {
        self.begin()?;
        let deadline = Instant::now() + EXCHANGE;
        self.say(&ToGuest::List { folder: folder.cloned(), most }, deadline).await?;
        let answer = self.answer(deadline).await?;
        self.finished();
        match answer {
            FromGuest::Listing { files, others } => {
                if files.len() > most as usize || others.len() > MOST_LISTED {
                    return Err(SandboxError::Protocol("it lists more than was asked".to_owned()));
                }
                Ok((files, others.iter().map(|other| shortened(other)).collect()))
            }
            // There is no such folder: the program made none.
            FromGuest::Refused { .. } => Ok((Vec::new(), Vec::new())),
            other => Err(unexpected(&other)),
        }
    }

    /// One file from below `/workspace`, or why not.
    pub async fn get(
        &mut self,
        path: &GuestPath,
        most_bytes: u64,
    ) -> Result<Result<Vec<u8>, String>, SandboxError> {
        self.begin()?;
        let deadline = Instant::now() + EXCHANGE;
        self.say(&ToGuest::Get { path: path.clone(), most_bytes }, deadline).await?;
        let mut file = Vec::new();
        loop {
            let frame = timeout_at(
                deadline,
                next_frame(&mut self.from, &mut self.reader, &mut self.buffer),
            );
            match frame.await.map_err(|_| late())?? {
                Frame::Data(Channel::File, bytes) => {
                    if (file.len() + bytes.len()) as u64 > most_bytes {
                        let more = "it sends more of a file than was asked";
                        return Err(SandboxError::Protocol(more.to_owned()));
                    }
                    file.extend_from_slice(&bytes);
                }
                Frame::Message(FromGuest::End) => {
                    self.finished();
                    return Ok(Ok(file));
                }
                Frame::Message(FromGuest::Refused { why }) => {
                    self.finished();
                    return Ok(Err(shortened(&why)));
                }
                Frame::Message(other) => return Err(unexpected(&other)),
                Frame::Data(..) => return Err(misplaced_data()),
            }
        }
    }

    /// Starts a workflow inside; its first step.
    pub async fn start_workflow(
        &mut self,
        workflow: GuestWorkflow,
    ) -> Result<SaidStep, SandboxError> {
        self.step(&ToGuest::Start(Box::new(workflow))).await
    }

    /// Tells the workflow inside a result; its next step. What the step asks for is the guest's
    /// wish and nothing more: the caller decides what is performed.
    pub async fn tell_result(
        &mut self,
        id: EffectId,
        result: EffectResult,
    ) -> Result<SaidStep, SandboxError> {
        self.step(&ToGuest::Result { id, result: Box::new(result) }).await
    }

    async fn step(&mut self, message: &ToGuest) -> Result<SaidStep, SandboxError> {
        self.begin()?;
        let deadline = Instant::now() + EXCHANGE;
        self.say(message, deadline).await?;
        let answer = self.answer(deadline).await?;
        self.finished();
        match answer {
            FromGuest::Step(step) => Ok(*step),
            FromGuest::Refused { why } => Err(SandboxError::Request(shortened(&why))),
            other => Err(unexpected(&other)),
        }
    }

    async fn done(&mut self, message: &ToGuest, within: Duration) -> Result<(), SandboxError> {
        self.begin()?;
        self.done_after(message, within).await
    }

    /// The last message of an exchange, and that it was done.
    async fn done_after(
        &mut self,
        message: &ToGuest,
        within: Duration,
    ) -> Result<(), SandboxError> {
        let deadline = Instant::now() + within;
        self.say(message, deadline).await?;
        let answer = self.answer(deadline).await?;
        self.finished();
        match answer {
            FromGuest::Done => Ok(()),
            FromGuest::Refused { why } => Err(SandboxError::Request(shortened(&why))),
            other => Err(unexpected(&other)),
        }
    }

    async fn say(&mut self, message: &ToGuest, deadline: Instant) -> Result<(), SandboxError> {
        let mut frame = Vec::new();
        write_message(&mut frame, message)?;
        self.send(&frame, deadline).await
    }

    async fn send(&mut self, frames: &[u8], deadline: Instant) -> Result<(), SandboxError> {
        let send = async {
            self.to.write_all(frames).await?;
            self.to.flush().await
        };
        timeout_at(deadline, send).await.map_err(|_| late())?.map_err(SandboxError::Lost)
    }

    async fn answer(&mut self, deadline: Instant) -> Result<FromGuest, SandboxError> {
        timeout_at(deadline, self.message()).await.map_err(|_| late())?
    }

    async fn message(&mut self) -> Result<FromGuest, SandboxError> {
        match next_frame(&mut self.from, &mut self.reader, &mut self.buffer).await? {
            Frame::Message(message) => Ok(message),
            Frame::Data(..) => Err(misplaced_data()),
        }
    }
}

async fn next_frame(
    from: &mut Box<dyn AsyncRead + Send + Unpin>,
    reader: &mut FrameReader,
    buffer: &mut [u8],
) -> Result<Frame<FromGuest>, SandboxError> {
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

/// What must still be said after a program ended that did not read all its input: the frame that was
/// under way, and that there is no more. Whatever is said next would be taken for input otherwise.
fn rest_of_input(words: &[u8], sent: usize) -> Vec<u8> {
    let mut at = 0;
    while at < sent
        && let Some(length) = words.get(at..).and_then(|frame| frame.first_chunk())
    {
        at += length.len() + u32::from_be_bytes(*length) as usize;
    }
    let mut rest = words.get(sent..at).unwrap_or_default().to_vec();
    if at < words.len()
        && let Err(fault) = write_message(&mut rest, &ToGuest::End)
    {
        tracing::warn!(%fault, "the end of a program's input cannot be said");
    }
    rest
}

fn late() -> SandboxError {
    SandboxError::NotReady { what: "the guest's answer", waited: EXCHANGE }
}

fn misplaced_data() -> SandboxError {
    SandboxError::Protocol("it sends data that nobody asked for".to_owned())
}

fn unexpected(message: &FromGuest) -> SandboxError {
    let name = match message {
        FromGuest::Ready { .. } => "ready",
        FromGuest::Done => "done",
        FromGuest::Refused { .. } => "refused",
        FromGuest::Ended(_) => "ended",
        FromGuest::Listing { .. } => "listing",
        FromGuest::End => "end",
        FromGuest::Step(_) => "step",
    };
    SandboxError::Protocol(format!("it says `{name}` where that is no answer"))
}

/// A guest's words in a message of ours: one line, not long.
fn shortened(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
