//! The conversation: frames in, frames out. What is asked for is done by a [`World`].

use std::io::Read;

use moothall_core::guest::{
    Channel, Ended, Frame, FrameReader, FromGuest, GuestMachine, GuestWorkflow, MAX_DATA_BYTES,
    PROTOCOL, Place, RunRequest, SaidStep, ToGuest, write_data, write_message,
};
use moothall_core::sandbox::GuestPath;
use moothall_core::{EffectId, EffectResult, Step, Workflow};

use crate::error::{GuestError, Refusal};

/// What is said waits here until the host takes it; while there is more, nothing is added.
const ROOM_BYTES: usize = 256 << 10;

/// Input that the program has not read yet; while there is more, the host is not listened to.
const BACKLOG_BYTES: usize = 1 << 20;

/// What an agent can do. There are two: a sandbox, and a made-up one for tests.
///
/// What implementors promise:
/// - What was refused was not done; the next request can be done as if it had not been made.
/// - Nothing blocks for longer than it takes to do it; a program runs on while others speak.
pub trait World {
    /// A file that is being written.
    type Incoming: Incoming;
    /// A file that is being read.
    type Outgoing: Read;

    /// Takes fresh randomness and the time.
    fn reseed(&mut self, seed: &[u8; 32], unix_ms: u64) -> Result<(), Refusal>;
    /// Makes a new file.
    fn put(&mut self, place: Place, path: &GuestPath) -> Result<Self::Incoming, Refusal>;
    /// Starts an interpreter and has it wait.
    fn park(&mut self, argv: &[String]) -> Result<(), Refusal>;
    /// Starts a program. Its end is told with [`Agent::ended`].
    fn run(&mut self, request: &RunRequest) -> Result<(), Refusal>;
    /// More input for the program that runs.
    fn feed(&mut self, bytes: &[u8]);
    /// There is no more input.
    fn end_of_input(&mut self);
    /// How much input the program has not taken yet.
    fn backlog(&self) -> usize;
    /// Stops the program that runs.
    fn kill(&mut self);
    /// Looks for files below a folder of the workspace, or in all of it.
    fn list(&mut self, folder: Option<&GuestPath>, most: u32) -> Result<FromGuest, Refusal>;
    /// Opens a file.
    fn get(&mut self, path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, Refusal>;
}

/// A file that is being written. Dropped without [`Incoming::finish`], it is gone again.
pub trait Incoming {
    /// Adds bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal>;
    /// Keeps it.
    fn finish(self) -> Result<(), Refusal>;
}

/// One end of the conversation.
pub struct Agent<W: World> {
    world: W,
    reader: FrameReader,
    out: Vec<u8>,
    state: State<W::Incoming, W::Outgoing>,
    /// The last program is gone, and the end of its input has not come yet.
    late_input: bool,
    workflow: Option<GuestMachine>,
}

enum State<I, O> {
    Idle,
    /// A file is coming, or it was refused and its bytes are coming nevertheless.
    Putting(Result<I, Refusal>),
    Running {
        input_over: bool,
    },
    Sending(O),
}

impl<W: World> std::fmt::Debug for Agent<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Idle => "idle",
            State::Putting(_) => "putting",
            State::Running { .. } => "running",
            State::Sending(_) => "sending",
        };
        f.debug_struct("Agent").field("state", &state).finish_non_exhaustive()
    }
}

impl<W: World> Agent<W> {
    /// An agent that has said that it is ready.
    pub fn new(world: W) -> Result<Self, GuestError> {
        let mut agent = Self {
            world,
            reader: FrameReader::default(),
            out: Vec::new(),
            state: State::Idle,
            late_input: false,
            workflow: None,
        };
        agent.say(&FromGuest::Ready { protocol: PROTOCOL })?;
        Ok(agent)
    }

    /// Whether it listens; where not, what arrives must wait. While a program runs, what it prints
    /// is no reason not to: a host that still sends its input may not be reading yet.
    pub fn listens(&self) -> bool {
        match self.state {
            State::Sending(_) => false,
            State::Running { .. } => self.world.backlog() < BACKLOG_BYTES,
            State::Idle | State::Putting(_) => self.has_room(),
        }
    }

    /// Takes bytes from the host. Only while it [listens](Self::listens).
    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), GuestError> {
        self.reader.push(bytes);
        self.advance()
    }

    /// Does whatever can be done without hearing more.
    pub fn advance(&mut self) -> Result<(), GuestError> {
        loop {
            if matches!(self.state, State::Sending(_)) {
                self.send_on()?;
            }
            if !self.listens() {
                return Ok(());
            }
            match self.reader.next::<ToGuest>()? {
                None => return Ok(()),
                Some(Frame::Data(channel, bytes)) => self.take_data(channel, &bytes)?,
                Some(Frame::Message(message)) => self.take_message(message)?,
            }
        }
    }

    /// What is to be sent to the host.
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// So many bytes of the output were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.out.drain(..bytes.min(self.out.len()));
    }

    /// Whether what the program prints can be taken now.
    pub fn has_room(&self) -> bool {
        self.out.len() < ROOM_BYTES
    }

    /// The program printed this.
    pub fn printed(&mut self, channel: Channel, bytes: &[u8]) {
        write_data(&mut self.out, channel, bytes);
    }

    /// The program ended.
    pub fn ended(&mut self, ended: Ended) -> Result<(), GuestError> {
        if let State::Running { input_over } = self.state {
            self.late_input = !input_over;
            self.state = State::Idle;
        }
        self.say(&FromGuest::Ended(ended))
    }

    /// The world.
    pub fn world(&mut self) -> &mut W {
        &mut self.world
    }

    fn take_data(&mut self, channel: Channel, bytes: &[u8]) -> Result<(), GuestError> {
        match (&mut self.state, channel) {
            (State::Putting(file), Channel::File) => {
                if let Ok(open) = file
                    && let Err(refusal) = open.write(bytes)
                {
                    *file = Err(refusal);
                }
                Ok(())
            }
            (State::Running { input_over: false }, Channel::Stdin) => {
                self.world.feed(bytes);
                Ok(())
            }
            (State::Idle, Channel::Stdin) if self.late_input => Ok(()),
            _ => Err(GuestError::OutOfPlace("data")),
        }
    }

    fn take_message(&mut self, message: ToGuest) -> Result<(), GuestError> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => self.take_request(message),
            State::Putting(file) => match message {
                ToGuest::End => {
                    let kept = file.and_then(Incoming::finish);
                    self.answer(kept)
                }
                _ => Err(GuestError::OutOfPlace("a message within a file")),
            },
            State::Running { input_over } => {
                self.state = State::Running { input_over };
                match message {
                    ToGuest::Kill => self.world.kill(),
                    ToGuest::End if !input_over => {
                        self.world.end_of_input();
                        self.state = State::Running { input_over: true };
                    }
                    _ => return Err(GuestError::OutOfPlace("a message while a program runs")),
                }
                Ok(())
            }
            // Nothing is read while a file is sent.
            State::Sending(_) => Err(GuestError::OutOfPlace("a message while a file is sent")),
        }
    }

    fn take_request(&mut self, message: ToGuest) -> Result<(), GuestError> {
        match message {
            ToGuest::Reseed { seed, unix_ms } => {
                let done = parse_seed(&seed).and_then(|seed| self.world.reseed(&seed, unix_ms));
                self.answer(done)
            }
            ToGuest::Put { place, path } => {
                self.state = State::Putting(self.world.put(place, &path));
                Ok(())
            }
            ToGuest::End if self.late_input => {
                self.late_input = false;
                Ok(())
            }
            ToGuest::End => Err(GuestError::OutOfPlace("an end of nothing")),
            ToGuest::Park { argv } => {
                let done = check_argv(&argv).and_then(|()| self.world.park(&argv));
                self.answer(done)
            }
            ToGuest::Run(request) => {
                match check_request(&request).and_then(|()| self.world.run(&request)) {
                    Ok(()) => {
                        self.state = State::Running { input_over: false };
                        Ok(())
                    }
                    Err(refusal) => {
                        self.late_input = true;
                        self.answer(Err(refusal))
                    }
                }
            }
            // The program ended while the host was asking: there is nothing to say to that.
            ToGuest::Kill => Ok(()),
            ToGuest::List { folder, most } => match self.world.list(folder.as_ref(), most) {
                Ok(listing) => self.say_or_refuse(&listing),
                Err(refusal) => self.answer(Err(refusal)),
            },
            ToGuest::Get { path, most_bytes } => match self.world.get(&path, most_bytes) {
                Ok(file) => {
                    self.state = State::Sending(file);
                    Ok(())
                }
                Err(refusal) => self.answer(Err(refusal)),
            },
            ToGuest::Start(workflow) => self.start(*workflow),
            ToGuest::Result { id, result } => self.resume(&id, *result),
        }
    }

    fn start(&mut self, workflow: GuestWorkflow) -> Result<(), GuestError> {
        match workflow.build() {
            Ok(mut machine) => {
                let step = machine.start();
                self.workflow = Some(machine);
                self.tell(step)
            }
            Err(error) => self.answer(Err(Refusal::new(error))),
        }
    }

    fn resume(&mut self, id: &EffectId, result: EffectResult) -> Result<(), GuestError> {
        let Some(machine) = &mut self.workflow else {
            return self.answer(Err(Refusal::new("no workflow was started")));
        };
        match machine.resume(id, result) {
            Ok(step) => self.tell(step),
            Err(error) => self.answer(Err(Refusal::new(error))),
        }
    }

    /// Tells a step; the last one only after what the workflow wrote down is there to be read.
    fn tell(&mut self, step: Step) -> Result<(), GuestError> {
        if step.outcome.is_some()
            && let Err(refusal) = self.write_files()
        {
            return self.answer(Err(refusal));
        }
        match SaidStep::of(step) {
            Ok(step) => self.say_or_refuse(&FromGuest::Step(Box::new(step))),
            Err(error) => self.answer(Err(Refusal::new(error))),
        }
    }

    fn write_files(&mut self) -> Result<(), Refusal> {
        let files = self.workflow.as_ref().map(GuestMachine::files).unwrap_or_default();
        for (path, text) in files {
            let mut file = self.world.put(Place::Workspace, &path)?;
            file.write(text.as_bytes())?;
            file.finish()?;
        }
        Ok(())
    }

    /// Sends more of a file, as much as there is room for.
    fn send_on(&mut self) -> Result<(), GuestError> {
        let mut piece = [0; 32 << 10];
        while self.out.len() < ROOM_BYTES {
            let State::Sending(file) = &mut self.state else { return Ok(()) };
            match file.read(&mut piece) {
                Ok(0) => {
                    self.state = State::Idle;
                    return self.say(&FromGuest::End);
                }
                Ok(length) => {
                    write_data(&mut self.out, Channel::File, piece.get(..length).unwrap_or(&[]));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.state = State::Idle;
                    return self.answer(Err(Refusal::new(error)));
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, done: Result<(), Refusal>) -> Result<(), GuestError> {
        match done {
            Ok(()) => self.say(&FromGuest::Done),
            Err(refusal) => self.say(&FromGuest::Refused { why: refusal.why() }),
        }
    }

    fn say(&mut self, message: &FromGuest) -> Result<(), GuestError> {
        Ok(write_message(&mut self.out, message)?)
    }

    /// For messages whose length somebody else decides.
    fn say_or_refuse(&mut self, message: &FromGuest) -> Result<(), GuestError> {
        match write_message(&mut self.out, message) {
            Ok(()) => Ok(()),
            Err(fault) => self.answer(Err(Refusal::new(fault))),
        }
    }
}

fn parse_seed(text: &str) -> Result<[u8; 32], Refusal> {
    let mut seed = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 2 * seed.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Refusal::new("a seed has 64 hexadecimal digits"));
    }
    for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or("0");
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    Ok(seed)
}

fn check_argv(argv: &[String]) -> Result<(), Refusal> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(Refusal::new("there is no command"));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(Refusal::new("the command holds a NUL"));
    }
    Ok(())
}

fn check_request(request: &RunRequest) -> Result<(), Refusal> {
    check_argv(&request.argv)?;
    for (name, value) in &request.env {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(plain)
        {
            return Err(Refusal::new("a variable's name is not made of letters, digits and `_`"));
        }
        if value.contains('\0') {
            return Err(Refusal::new(format!("the variable `{name}` holds a NUL")));
        }
    }
    Ok(())
}

/// What is read at once, from the host and from the program.
pub(crate) const PIECE_BYTES: usize = MAX_DATA_BYTES;

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
