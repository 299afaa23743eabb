//! The agent's side of the protocol: decodes frames and lets a [`GuestBackend`] carry out the requests.

use std::collections::BTreeMap;
use std::io::Read;

use moothall_core::guest::{
    FrameReader, GuestFrame, GuestMessage, GuestRunRequest, GuestStateMachine, GuestStream,
    GuestWorkflow, HostMessage, MAX_DATA_BYTES, PROTOCOL, Place, ProgramExit, StepSummary,
    write_data, write_message,
};
use moothall_core::sandbox::GuestPath;
use moothall_core::{EffectId, EffectResult, RoundStatus, RunEventBody, Step, Workflow};

use crate::error::{GuestError, GuestRefusal};

/// Limit of buffered output to the host. Above it nothing is added.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// Limit of input that the program has not read yet. Above it the agent stops reading from the
/// host.
const MAX_BACKLOG_BYTES: usize = 1 << 20;

/// Carries out requests. Implemented by a real sandbox and by a fake for tests.
///
/// Implementations guarantee:
/// - A refused request has no effect.
/// - Methods do not block beyond their own work; a program keeps running while other messages are
///   handled.
pub trait GuestBackend {
    /// A file being written.
    type IncomingFile: Incoming;
    /// A file being read.
    type Outgoing: Read;

    /// Sets randomness and clock.
    fn reseed(&mut self, seed: &[u8; 32], unix_ms: u64) -> Result<(), GuestRefusal>;
    /// Creates a file.
    fn put(&mut self, place: Place, path: &GuestPath) -> Result<Self::IncomingFile, GuestRefusal>;
    /// Writes a file of the workspace. An existing one is replaced atomically, so a reader never sees
    /// half of it.
    fn replace(&mut self, path: &GuestPath, bytes: &[u8]) -> Result<(), GuestRefusal>;
    /// Starts an interpreter that waits for a program.
    fn park(&mut self, argv: &[String]) -> Result<(), GuestRefusal>;
    /// Starts a program. Its end is reported through [`GuestAgent::report_exit`].
    fn run(&mut self, request: &GuestRunRequest) -> Result<(), GuestRefusal>;
    /// Adds input for the running program.
    fn feed(&mut self, bytes: &[u8]);
    /// Marks the end of input.
    fn end_of_input(&mut self);
    /// Number of input bytes that the program has not read yet.
    fn backlog(&self) -> usize;
    /// Kills the running program.
    fn kill(&mut self);
    /// Lists files in a folder of the workspace, or in all of it.
    fn list(&mut self, folder: Option<&GuestPath>, most: u32)
    -> Result<GuestMessage, GuestRefusal>;
    /// Opens a file of at most `most_bytes` bytes.
    fn get(&mut self, path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, GuestRefusal>;
    /// Tries to leave the sandbox. Returns for each test whether the sandbox held.
    fn probe(&mut self, host_file: &str, port: u16) -> BTreeMap<String, bool>;
}

/// A file being written. Dropping it without [`Incoming::finish`] deletes it.
pub trait Incoming {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), GuestRefusal>;
    /// Keeps the file.
    fn finish(self) -> Result<(), GuestRefusal>;
}

/// The agent's protocol state machine.
pub struct GuestAgent<W: GuestBackend> {
    backend: W,
    reader: FrameReader,
    out: Vec<u8>,
    state: AgentState<W::IncomingFile, W::Outgoing>,
    /// The last program ended before the end of its input arrived.
    late_input: bool,
    workflow: Option<GuestStateMachine>,
}

enum AgentState<I, O> {
    Idle,
    /// A file is being received. `Err` if it was refused, while its bytes still arrive.
    Putting(Result<I, GuestRefusal>),
    Running {
        input_over: bool,
    },
    Sending(O),
}

impl<W: GuestBackend> std::fmt::Debug for GuestAgent<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            AgentState::Idle => "idle",
            AgentState::Putting(_) => "putting",
            AgentState::Running { .. } => "running",
            AgentState::Sending(_) => "sending",
        };
        f.debug_struct("GuestAgent").field("state", &state).finish_non_exhaustive()
    }
}

impl<W: GuestBackend> GuestAgent<W> {
    /// Creates an agent that announces that it is ready.
    pub fn new(backend: W) -> Result<Self, GuestError> {
        let mut agent = Self {
            backend,
            reader: FrameReader::default(),
            out: Vec::new(),
            state: AgentState::Idle,
            late_input: false,
            workflow: None,
        };
        agent.queue_message(&GuestMessage::Ready { protocol: PROTOCOL })?;
        Ok(agent)
    }

    /// Whether the agent accepts input; otherwise input must wait. While a program runs, pending
    /// output does not matter: a host that is still sending may not be reading yet.
    pub fn can_receive(&self) -> bool {
        match self.state {
            AgentState::Sending(_) => false,
            AgentState::Running { .. } => self.backend.backlog() < MAX_BACKLOG_BYTES,
            AgentState::Idle | AgentState::Putting(_) => self.can_queue_output(),
        }
    }

    /// Handles bytes from the host. Call it only while the agent [can receive](Self::can_receive).
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), GuestError> {
        self.reader.push(bytes);
        self.advance()
    }

    /// Does everything that needs no further input.
    pub fn advance(&mut self) -> Result<(), GuestError> {
        loop {
            if matches!(self.state, AgentState::Sending(_)) {
                self.continue_sending()?;
            }
            if !self.can_receive() {
                return Ok(());
            }
            match self.reader.next::<HostMessage>()? {
                None => return Ok(()),
                Some(GuestFrame::Data(channel, bytes)) => self.take_data(channel, &bytes)?,
                Some(GuestFrame::Message(message)) => self.take_message(message)?,
            }
        }
    }

    /// Bytes to send to the host.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// Removes sent bytes from the output.
    pub fn mark_sent(&mut self, bytes: usize) {
        self.out.drain(..bytes.min(self.out.len()));
    }

    /// Whether program output can be accepted now.
    pub fn can_queue_output(&self) -> bool {
        self.out.len() < MAX_OUTPUT_BYTES
    }

    /// Queues program output.
    pub fn queue_output(&mut self, channel: GuestStream, bytes: &[u8]) {
        write_data(&mut self.out, channel, bytes);
    }

    /// Reports the end of the program.
    pub fn report_exit(&mut self, ended: ProgramExit) -> Result<(), GuestError> {
        if let AgentState::Running { input_over } = self.state {
            self.late_input = !input_over;
            self.state = AgentState::Idle;
        }
        self.queue_message(&GuestMessage::Ended(ended))
    }

    /// The backend that carries out requests.
    pub fn backend(&mut self) -> &mut W {
        &mut self.backend
    }

    fn take_data(&mut self, channel: GuestStream, bytes: &[u8]) -> Result<(), GuestError> {
        match (&mut self.state, channel) {
            (AgentState::Putting(file), GuestStream::File) => {
                if let Ok(open) = file
                    && let Err(refusal) = open.write(bytes)
                {
                    *file = Err(refusal);
                }
                Ok(())
            }
            (AgentState::Running { input_over: false }, GuestStream::Stdin) => {
                self.backend.feed(bytes);
                Ok(())
            }
            (AgentState::Idle, GuestStream::Stdin) if self.late_input => Ok(()),
            _ => Err(GuestError::Unexpected("data")),
        }
    }

    fn take_message(&mut self, message: HostMessage) -> Result<(), GuestError> {
        match std::mem::replace(&mut self.state, AgentState::Idle) {
            AgentState::Idle => self.take_request(message),
            AgentState::Putting(file) => match message {
                HostMessage::End => {
                    let kept = file.and_then(Incoming::finish);
                    self.queue_reply(kept)
                }
                _ => Err(GuestError::Unexpected("message inside a file transfer")),
            },
            AgentState::Running { input_over } => {
                self.state = AgentState::Running { input_over };
                match message {
                    HostMessage::Kill => self.backend.kill(),
                    HostMessage::End if !input_over => {
                        self.backend.end_of_input();
                        self.state = AgentState::Running { input_over: true };
                    }
                    _ => return Err(GuestError::Unexpected("message while a program runs")),
                }
                Ok(())
            }
            // Nothing is read while a file is sent.
            AgentState::Sending(_) => {
                Err(GuestError::Unexpected("message while a file is being sent"))
            }
        }
    }

    fn take_request(&mut self, message: HostMessage) -> Result<(), GuestError> {
        match message {
            HostMessage::Reseed { seed, unix_ms } => {
                let done = parse_seed(&seed).and_then(|seed| self.backend.reseed(&seed, unix_ms));
                self.queue_reply(done)
            }
            HostMessage::Put { place, path } => {
                self.state = AgentState::Putting(self.backend.put(place, &path));
                Ok(())
            }
            HostMessage::End if self.late_input => {
                self.late_input = false;
                Ok(())
            }
            HostMessage::End => Err(GuestError::Unexpected("`end` message without a transfer")),
            HostMessage::Park { argv } => {
                let done = check_argv(&argv).and_then(|()| self.backend.park(&argv));
                self.queue_reply(done)
            }
            HostMessage::Run(request) => {
                match check_request(&request).and_then(|()| self.backend.run(&request)) {
                    Ok(()) => {
                        self.state = AgentState::Running { input_over: false };
                        Ok(())
                    }
                    Err(refusal) => {
                        self.late_input = true;
                        self.queue_reply(Err(refusal))
                    }
                }
            }
            // The program ended before the request arrived; no reply is needed.
            HostMessage::Kill => Ok(()),
            HostMessage::List { folder, most } => match self.backend.list(folder.as_ref(), most) {
                Ok(listing) => self.queue_message_or_refuse(&listing),
                Err(refusal) => self.queue_reply(Err(refusal)),
            },
            HostMessage::Get { path, most_bytes } => match self.backend.get(&path, most_bytes) {
                Ok(file) => {
                    self.state = AgentState::Sending(file);
                    Ok(())
                }
                Err(refusal) => self.queue_reply(Err(refusal)),
            },
            HostMessage::Probe { host_file, port } => {
                let held = self.backend.probe(&host_file, port);
                self.queue_message(&GuestMessage::Probed { held })
            }
            HostMessage::Start(workflow) => self.start(*workflow),
            HostMessage::Result { id, result } => self.resume(&id, *result),
        }
    }

    fn start(&mut self, workflow: GuestWorkflow) -> Result<(), GuestError> {
        match workflow.build() {
            Ok(mut machine) => {
                let step = machine.start();
                self.workflow = Some(machine);
                self.queue_step(step)
            }
            Err(error) => self.queue_reply(Err(GuestRefusal::new(error))),
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<(), GuestError> {
        let Some(machine) = &mut self.workflow else {
            return self.queue_reply(Err(GuestRefusal::new("no workflow was started")));
        };
        match machine.resume(id, result) {
            Ok(step) => self.queue_step(step),
            Err(error) => self.queue_reply(Err(GuestRefusal::new(error))),
        }
    }

    /// Sends a step. After each round and before the last step, the workflow's files are written:
    /// they show the conversation so far, and at the end the host reads them.
    fn queue_step(&mut self, step: Step) -> Result<(), GuestError> {
        if (step.outcome.is_some() || completes_round(&step))
            && let Err(refusal) = self.write_files()
        {
            return self.queue_reply(Err(refusal));
        }
        match StepSummary::of(step) {
            Ok(step) => self.queue_message_or_refuse(&GuestMessage::Step(Box::new(step))),
            Err(error) => self.queue_reply(Err(GuestRefusal::new(error))),
        }
    }

    fn write_files(&mut self) -> Result<(), GuestRefusal> {
        let files = self.workflow.as_ref().map(GuestStateMachine::files).unwrap_or_default();
        for (path, text) in files {
            self.backend.replace(&path, text.as_bytes())?;
        }
        Ok(())
    }

    /// Sends more of a file, as far as the buffer allows.
    fn continue_sending(&mut self) -> Result<(), GuestError> {
        let mut piece = [0; 32 << 10];
        while self.out.len() < MAX_OUTPUT_BYTES {
            let AgentState::Sending(file) = &mut self.state else { return Ok(()) };
            match file.read(&mut piece) {
                Ok(0) => {
                    self.state = AgentState::Idle;
                    return self.queue_message(&GuestMessage::End);
                }
                Ok(length) => {
                    write_data(
                        &mut self.out,
                        GuestStream::File,
                        piece.get(..length).unwrap_or(&[]),
                    );
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.state = AgentState::Idle;
                    return self.queue_reply(Err(GuestRefusal::new(error)));
                }
            }
        }
        Ok(())
    }

    fn queue_reply(&mut self, done: Result<(), GuestRefusal>) -> Result<(), GuestError> {
        match done {
            Ok(()) => self.queue_message(&GuestMessage::Done),
            Err(refusal) => self.queue_message(&GuestMessage::Refused { why: refusal.why() }),
        }
    }

    fn queue_message(&mut self, message: &GuestMessage) -> Result<(), GuestError> {
        Ok(write_message(&mut self.out, message)?)
    }

    /// For messages that may exceed the frame limit.
    fn queue_message_or_refuse(&mut self, message: &GuestMessage) -> Result<(), GuestError> {
        match write_message(&mut self.out, message) {
            Ok(()) => Ok(()),
            Err(fault) => self.queue_reply(Err(GuestRefusal::new(fault))),
        }
    }
}

fn completes_round(step: &Step) -> bool {
    let is_end = |body: &RunEventBody| {
        matches!(body, RunEventBody::SandboxRound { status: RoundStatus::DmResponded, .. })
    };
    step.publish.iter().any(|event| is_end(&event.body))
}

fn parse_seed(text: &str) -> Result<[u8; 32], GuestRefusal> {
    let mut seed = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 2 * seed.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(GuestRefusal::new("a seed must have 64 hexadecimal digits"));
    }
    for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or("0");
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    Ok(seed)
}

fn check_argv(argv: &[String]) -> Result<(), GuestRefusal> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(GuestRefusal::new("the command is empty"));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(GuestRefusal::new("the command contains a NUL byte"));
    }
    Ok(())
}

fn check_request(request: &GuestRunRequest) -> Result<(), GuestRefusal> {
    check_argv(&request.argv)?;
    for (name, value) in &request.env {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(plain)
        {
            return Err(GuestRefusal::new(
                "variable names may contain only letters, digits and `_` and must not start with a digit",
            ));
        }
        if value.contains('\0') {
            return Err(GuestRefusal::new(format!("the variable `{name}` contains a NUL byte")));
        }
    }
    Ok(())
}

/// Read buffer size for the host and the program.
pub(crate) const PIECE_BYTES: usize = MAX_DATA_BYTES;

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
