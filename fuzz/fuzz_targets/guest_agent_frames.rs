//! Arbitrary bytes as what a host says, in arbitrary pieces: the agent inside a sandbox answers in
//! frames that can be read, or ends the conversation. Its world is made up: nothing is started and no
//! file is touched.

#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use moothall_core::guest::{
    Channel, Ended, Frame, FrameReader, FromGuest, Place, RunRequest, WayToEnd,
};
use moothall_core::sandbox::GuestPath;
use moothall_guest::{Agent, Incoming, Refusal, World};

#[derive(Default)]
struct Nowhere {
    running: bool,
    backlog: usize,
}

struct Nothing;

impl Incoming for Nothing {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if bytes.len() > 1000 { Err(Refusal::new("too long")) } else { Ok(()) }
    }

    fn finish(self) -> Result<(), Refusal> {
        Ok(())
    }
}

impl World for Nowhere {
    type Incoming = Nothing;
    type Outgoing = std::io::Take<std::io::Repeat>;

    fn reseed(&mut self, _seed: &[u8; 32], _unix_ms: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn put(&mut self, place: Place, _path: &GuestPath) -> Result<Nothing, Refusal> {
        match place {
            Place::Workspace => Ok(Nothing),
            Place::Inputs => Err(Refusal::new("no inputs")),
        }
    }

    fn park(&mut self, argv: &[String]) -> Result<(), Refusal> {
        assert!(!argv.is_empty());
        Ok(())
    }

    fn run(&mut self, request: &RunRequest) -> Result<(), Refusal> {
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

    fn list(&mut self, _folder: Option<&GuestPath>, _most: u32) -> Result<FromGuest, Refusal> {
        Ok(FromGuest::Listing { files: Vec::new(), others: Vec::new() })
    }

    fn get(&mut self, _path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, Refusal> {
        Ok(std::io::repeat(0).take(most_bytes.min(1 << 20)))
    }
}

/// What was said can be read, and is not kept without bound.
fn take_output(agent: &mut Agent<Nowhere>, host: &mut FrameReader) {
    assert!(agent.output().len() < 16 << 20);
    host.push(agent.output());
    agent.sent(agent.output().len());
    while let Some(frame) = host.next::<FromGuest>().expect("the host cannot read it") {
        if let Frame::Data(channel, _) = frame {
            assert!(matches!(channel, Channel::File | Channel::Stdout));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&size, bytes)) = data.split_first() else { return };
    let mut agent = Agent::new(Nowhere::default()).expect("it can say that it is ready");
    let mut host = FrameReader::default();
    for piece in bytes.chunks(usize::from(size).max(1)) {
        while !agent.listens() {
            take_output(&mut agent, &mut host);
            agent.world().backlog = 0;
            if agent.advance().is_err() {
                return;
            }
        }
        if agent.hear(piece).is_err() {
            return;
        }
        // The program ends at moments that the input decides.
        if agent.world().running && piece.first().is_some_and(|byte| byte % 3 == 0) {
            agent.printed(Channel::Stdout, piece);
            agent.world().running = false;
            agent.world().backlog = 0;
            let ended = Ended {
                way: WayToEnd::Exited(0),
                stdout_truncated: false,
                stderr_truncated: false,
                left_running: 0,
            };
            agent.ended(ended).expect("the end can be told");
        }
    }
    take_output(&mut agent, &mut host);
});
