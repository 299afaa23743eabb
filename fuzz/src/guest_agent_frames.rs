//! Arbitrary bytes from a host, in pieces of arbitrary size: the agent inside a sandbox replies
//! with valid frames or ends the connection. Its environment is a fake: no program is started and
//! no file is touched.

use std::collections::BTreeMap;
use std::io::Read;

use moothall_core::guest::{
    ExitCause, FrameReader, GuestFrame, GuestMessage, GuestRunRequest, GuestStream, Place,
    ProgramExit,
};
use moothall_core::sandbox::GuestPath;
use moothall_guest::{GuestAgent, GuestBackend, GuestRefusal, Incoming};

#[derive(Default)]
struct Nowhere {
    running: bool,
    backlog: usize,
}

struct Nothing;

impl Incoming for Nothing {
    fn write(&mut self, bytes: &[u8]) -> Result<(), GuestRefusal> {
        if bytes.len() > 1000 { Err(GuestRefusal::new("too long")) } else { Ok(()) }
    }

    fn finish(self) -> Result<(), GuestRefusal> {
        Ok(())
    }
}

impl GuestBackend for Nowhere {
    type IncomingFile = Nothing;
    type Outgoing = std::io::Take<std::io::Repeat>;

    fn reseed(&mut self, _seed: &[u8; 32], _unix_ms: u64) -> Result<(), GuestRefusal> {
        Ok(())
    }

    fn put(&mut self, place: Place, _path: &GuestPath) -> Result<Nothing, GuestRefusal> {
        match place {
            Place::Workspace => Ok(Nothing),
            Place::Inputs => Err(GuestRefusal::new("no inputs")),
        }
    }

    fn replace(&mut self, _path: &GuestPath, _bytes: &[u8]) -> Result<(), GuestRefusal> {
        Ok(())
    }

    fn park(&mut self, argv: &[String]) -> Result<(), GuestRefusal> {
        assert!(!argv.is_empty());
        Ok(())
    }

    fn run(&mut self, request: &GuestRunRequest) -> Result<(), GuestRefusal> {
        assert!(!self.running, "two programs at once");
        assert!(request.argv.iter().all(|word| !word.contains('\0')));
        assert!(request.env.keys().all(|name| !name.contains('=')));
        self.running = true;
        Ok(())
    }

    fn feed(&mut self, bytes: &[u8]) {
        assert!(self.running);
        self.backlog += bytes.len();
    }

    fn end_of_input(&mut self) {
        assert!(self.running);
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn kill(&mut self) {
        assert!(self.running);
    }

    fn list(
        &mut self,
        _folder: Option<&GuestPath>,
        _most: u32,
    ) -> Result<GuestMessage, GuestRefusal> {
        Ok(GuestMessage::Listing { files: Vec::new(), others: Vec::new() })
    }

    fn get(&mut self, _path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, GuestRefusal> {
        Ok(std::io::repeat(0).take(most_bytes.min(1 << 20)))
    }

    fn probe(&mut self, _host_file: &str, _port: u16) -> BTreeMap<String, bool> {
        BTreeMap::new()
    }
}

/// Checks that the output can be decoded and that its buffer is limited.
fn take_output(agent: &mut GuestAgent<Nowhere>, host: &mut FrameReader) {
    assert!(agent.output().len() < 16 << 20);
    host.push(agent.output());
    agent.mark_sent(agent.output().len());
    while let Some(frame) = host.next::<GuestMessage>().expect("the host cannot read it") {
        if let GuestFrame::Data(channel, _) = frame {
            assert!(matches!(channel, GuestStream::File | GuestStream::Stdout));
        }
    }
}

pub fn guest_agent_frames(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let mut agent = GuestAgent::new(Nowhere::default()).expect("it can say that it is ready");
    let mut host = FrameReader::default();
    for piece in bytes.chunks(usize::from(size).max(1)) {
        while !agent.can_receive() {
            take_output(&mut agent, &mut host);
            agent.backend().backlog = 0;
            if agent.advance().is_err() {
                return;
            }
        }
        if agent.receive(piece).is_err() {
            return;
        }
        // The input determines when the program ends.
        if agent.backend().running && piece.first().is_some_and(|byte| byte % 3 == 0) {
            agent.queue_output(GuestStream::Stdout, piece);
            agent.backend().running = false;
            agent.backend().backlog = 0;
            let ended = ProgramExit {
                way: ExitCause::Exited(0),
                stdout_truncated: false,
                stderr_truncated: false,
                left_running: 0,
            };
            agent.report_exit(ended).expect("the end can be told");
        }
    }
    take_output(&mut agent, &mut host);
}
