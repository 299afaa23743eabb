//! The host's end of the connection.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use moothall_core::guest::{
    ExitCause, FrameReader, GuestFrame, GuestMessage, GuestRunRequest, GuestStream, HostMessage,
    PROTOCOL, Place, ProgramExit, write_data, write_message,
};
use moothall_core::sandbox::{GuestPath, SandboxLimits};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A running agent and its output. Dropping it closes the connection, which ends the agent.
pub(crate) struct Guest {
    pub(crate) folder: TempDir,
    process: Child,
    to_guest: Option<ChildStdin>,
    from_guest: Receiver<GuestFrame<GuestMessage>>,
}

/// Result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) way: ExitCause,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Guest {
    pub(crate) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_moothall-guest"))
            .arg("serve")
            .arg("--workspace")
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = process.stdout.take().unwrap();
        let (send, from_guest) = channel();
        std::thread::spawn(move || {
            let mut reader = FrameReader::default();
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut piece) {
                reader.push(&piece[..length]);
                while let Some(frame) = reader.next().unwrap() {
                    if send.send(frame).is_err() {
                        return;
                    }
                }
            }
        });
        let to_guest = process.stdin.take();
        let guest = Self { folder, process, to_guest, from_guest };
        assert_eq!(guest.hear(), GuestMessage::Ready { protocol: PROTOCOL });
        guest
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn say(&mut self, message: &HostMessage) {
        let mut bytes = Vec::new();
        write_message(&mut bytes, message).unwrap();
        self.say_bytes(&bytes);
    }

    pub(crate) fn say_data(&mut self, channel: GuestStream, data: &[u8]) {
        let mut bytes = Vec::new();
        write_data(&mut bytes, channel, data);
        self.say_bytes(&bytes);
    }

    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        // An agent that has exited does not read to the end.
        let _ = self.to_guest.as_mut().unwrap().write_all(bytes);
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) fn hear_frame(&self) -> Option<GuestFrame<GuestMessage>> {
        match self.from_guest.recv_timeout(TEST_TIMEOUT) {
            Ok(frame) => Some(frame),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("the agent says nothing"),
        }
    }

    #[track_caller]
    pub(crate) fn hear(&self) -> GuestMessage {
        match self.hear_frame() {
            Some(GuestFrame::Message(message)) => message,
            other => panic!("no message: {other:?}"),
        }
    }

    pub(crate) fn ask(&mut self, message: &HostMessage) -> GuestMessage {
        self.say(message);
        self.hear()
    }

    pub(crate) fn put(&mut self, place: Place, path: &str, bytes: &[u8]) -> GuestMessage {
        self.say(&HostMessage::Put { place, path: guest_path(path) });
        self.say_data(GuestStream::File, bytes);
        self.ask(&HostMessage::End)
    }

    #[track_caller]
    pub(crate) fn write(&mut self, path: &str, bytes: &[u8]) {
        assert_eq!(self.put(Place::Workspace, path, bytes), GuestMessage::Done);
    }

    pub(crate) fn get(&mut self, path: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
        self.say(&HostMessage::Get { path: guest_path(path), most_bytes });
        let mut bytes = Vec::new();
        loop {
            match self.hear_frame().unwrap() {
                GuestFrame::Data(GuestStream::File, piece) => bytes.extend(piece),
                GuestFrame::Message(GuestMessage::End) => return Ok(bytes),
                GuestFrame::Message(GuestMessage::Refused { why }) => return Err(why),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn park(&mut self) {
        assert_eq!(self.ask(&HostMessage::Park { argv: words(&["python3"]) }), GuestMessage::Done);
    }

    #[track_caller]
    pub(crate) fn run(&mut self, request: GuestRunRequest, stdin: &[u8]) -> (Outcome, ProgramExit) {
        self.say(&HostMessage::Run(request));
        self.say_data(GuestStream::Stdin, stdin);
        self.say(&HostMessage::End);
        self.hear_end()
    }

    #[track_caller]
    pub(crate) fn hear_end(&self) -> (Outcome, ProgramExit) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match self.hear_frame().unwrap() {
                GuestFrame::Data(GuestStream::Stdout, piece) => stdout.extend(piece),
                GuestFrame::Data(GuestStream::Stderr, piece) => stderr.extend(piece),
                GuestFrame::Message(GuestMessage::Ended(ended)) => {
                    let text = |bytes| String::from_utf8(bytes).unwrap();
                    let (stdout, stderr) = (text(stdout), text(stderr));
                    return (Outcome { way: ended.way, stdout, stderr }, ended);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Closes the connection.
    pub(crate) fn leave(&mut self) {
        self.to_guest = None;
    }

    /// Exit status and standard error of the agent process.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let mut stderr = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.process.wait().unwrap(), stderr)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.to_guest = None;
        let _ = self.process.wait();
    }
}

pub(crate) fn guest_path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

pub(crate) fn request(argv: &[&str]) -> GuestRunRequest {
    GuestRunRequest { argv: words(argv), env: BTreeMap::new(), limits: SandboxLimits::default() }
}

pub(crate) fn shell(script: &str) -> GuestRunRequest {
    request(&["sh", "-c", script])
}

pub(crate) fn exited(code: i32, stdout: &str, stderr: &str) -> Outcome {
    let way = ExitCause::Exited(code);
    Outcome { way, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}
