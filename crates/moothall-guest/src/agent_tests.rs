use moothall_core::guest::{ExitCause, GuestFile, StepSummary};
use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::sandbox::{SandboxFailure, SandboxFailureKind, SandboxLimits};
use proptest::prelude::*;

use self::debate_input::debate_input;
use super::*;

#[path = "../tests/it/debate_input.rs"]
mod debate_input;

/// A fake world that only records calls.
#[derive(Debug, Default)]
struct Diary {
    lines: Vec<String>,
    backlog: usize,
}

struct Page {
    bytes: usize,
    most: usize,
}

impl Incoming for Page {
    fn write(&mut self, bytes: &[u8]) -> Result<(), GuestRefusal> {
        self.bytes += bytes.len();
        if self.bytes > self.most { Err(GuestRefusal::new("the disk is full")) } else { Ok(()) }
    }

    fn finish(self) -> Result<(), GuestRefusal> {
        Ok(())
    }
}

impl GuestBackend for Diary {
    type IncomingFile = Page;
    type Outgoing = std::io::Take<std::io::Repeat>;

    fn reseed(&mut self, seed: &[u8; 32], unix_ms: u64) -> Result<(), GuestRefusal> {
        self.lines.push(format!("reseed {:x} {unix_ms}", seed[0]));
        Ok(())
    }

    fn put(&mut self, place: Place, path: &GuestPath) -> Result<Page, GuestRefusal> {
        self.lines.push(format!("put {place:?} {path}"));
        match place {
            Place::Workspace => Ok(Page { bytes: 0, most: 100_000 }),
            Place::Inputs => Err(GuestRefusal::new("no inputs")),
        }
    }

    fn replace(&mut self, path: &GuestPath, bytes: &[u8]) -> Result<(), GuestRefusal> {
        self.lines.push(format!("replace {path} {}", bytes.len()));
        Ok(())
    }

    fn park(&mut self, argv: &[String]) -> Result<(), GuestRefusal> {
        self.lines.push(format!("park {argv:?}"));
        Ok(())
    }

    fn run(&mut self, request: &GuestRunRequest) -> Result<(), GuestRefusal> {
        self.lines.push(format!("run {:?}", request.argv));
        if request.argv[0] == "nothing" {
            Err(GuestRefusal::new("no such program"))
        } else {
            Ok(())
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.lines.push(format!("feed {}", bytes.len()));
        self.backlog += bytes.len();
    }

    fn end_of_input(&mut self) {
        self.lines.push("end of input".to_owned());
    }

    fn backlog(&self) -> usize {
        self.backlog
    }

    fn kill(&mut self) {
        self.lines.push("kill".to_owned());
    }

    fn list(
        &mut self,
        folder: Option<&GuestPath>,
        most: u32,
    ) -> Result<GuestMessage, GuestRefusal> {
        let folder = folder.map_or(".", GuestPath::as_str);
        self.lines.push(format!("list {folder} {most}"));
        let files = vec![GuestFile { path: "a".parse().unwrap(), bytes: 1 }];
        Ok(GuestMessage::Listing { files, others: Vec::new() })
    }

    fn get(&mut self, path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, GuestRefusal> {
        self.lines.push(format!("get {path} {most_bytes}"));
        Ok(std::io::repeat(7).take(most_bytes))
    }

    fn probe(&mut self, host_file: &str, port: u16) -> BTreeMap<String, bool> {
        self.lines.push(format!("probe {host_file} {port}"));
        BTreeMap::from([("no-network".to_owned(), true)])
    }
}

fn agent() -> GuestAgent<Diary> {
    let mut agent = GuestAgent::new(Diary::default()).unwrap();
    assert_eq!(said(&mut agent), [Said::Message(GuestMessage::Ready { protocol: PROTOCOL })]);
    agent
}

#[derive(Debug, PartialEq)]
enum Said {
    Message(GuestMessage),
    /// Data, by length.
    Data(GuestStream, usize),
}

/// Takes the agent's output and decodes it.
fn said(agent: &mut GuestAgent<Diary>) -> Vec<Said> {
    let mut reader = FrameReader::default();
    reader.push(agent.output());
    agent.mark_sent(agent.output().len());
    std::iter::from_fn(|| reader.next::<GuestMessage>().unwrap())
        .map(|frame| match frame {
            GuestFrame::Message(message) => Said::Message(message),
            GuestFrame::Data(channel, bytes) => Said::Data(channel, bytes.len()),
        })
        .collect()
}

fn refused(why: &str) -> Said {
    Said::Message(GuestMessage::Refused { why: why.to_owned() })
}

fn frame(message: &HostMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&mut bytes, message).unwrap();
    bytes
}

fn data(channel: GuestStream, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_data(&mut bytes, channel, &vec![b'x'; length]);
    bytes
}

fn run(program: &str) -> HostMessage {
    HostMessage::Run(GuestRunRequest {
        argv: vec![program.to_owned()],
        env: [].into(),
        limits: SandboxLimits::default(),
    })
}

fn put(place: Place) -> HostMessage {
    HostMessage::Put { place, path: "d/f".parse().unwrap() }
}

const ENDED: ProgramExit = ProgramExit {
    way: ExitCause::Exited(0),
    stdout_truncated: false,
    stderr_truncated: false,
    left_running: 0,
};

#[test]
fn the_agent_executes_messages_and_reports_their_results() {
    let mut agent = agent();
    let seed = HostMessage::Reseed { seed: "ab".repeat(32), unix_ms: 5 };
    let spoken = [
        frame(&seed),
        frame(&put(Place::Workspace)),
        data(GuestStream::File, 70_000),
        frame(&HostMessage::End),
        frame(&HostMessage::Park { argv: vec!["python3".to_owned()] }),
        frame(&HostMessage::List { folder: "out".parse().ok(), most: 3 }),
        frame(&HostMessage::Get { path: "a".parse().unwrap(), most_bytes: 40_000 }),
        frame(&run("program")),
        data(GuestStream::Stdin, 10),
        frame(&HostMessage::End),
        frame(&HostMessage::Kill),
    ]
    .concat();
    // The size of the pieces does not matter.
    for byte in spoken.chunks(1000) {
        agent.receive(byte).unwrap();
    }
    agent.queue_output(GuestStream::Stdout, b"hello");
    agent.report_exit(ENDED).unwrap();
    let files = vec![GuestFile { path: "a".parse().unwrap(), bytes: 1 }];
    assert_eq!(
        said(&mut agent),
        [
            Said::Message(GuestMessage::Done),
            Said::Message(GuestMessage::Done),
            Said::Message(GuestMessage::Done),
            Said::Message(GuestMessage::Listing { files, others: Vec::new() }),
            Said::Data(GuestStream::File, 32 << 10),
            Said::Data(GuestStream::File, 40_000 - (32 << 10)),
            Said::Message(GuestMessage::End),
            Said::Data(GuestStream::Stdout, 5),
            Said::Message(GuestMessage::Ended(ENDED)),
        ]
    );
    assert_eq!(
        agent.backend().lines,
        [
            "reseed ab 5",
            "put Workspace d/f",
            "park [\"python3\"]",
            "list out 3",
            "get a 40000",
            "run [\"program\"]",
            "feed 10",
            "end of input",
            "kill",
        ]
    );
}

#[test]
fn the_agent_discards_a_refused_file_and_reports_it_once() {
    let mut agent = agent();
    agent.receive(&frame(&put(Place::Inputs))).unwrap();
    agent.receive(&data(GuestStream::File, 200_000)).unwrap();
    assert_eq!(said(&mut agent), []);
    agent.receive(&frame(&HostMessage::End)).unwrap();
    agent.receive(&frame(&put(Place::Workspace))).unwrap();
    agent.receive(&data(GuestStream::File, 200_000)).unwrap();
    agent.receive(&frame(&HostMessage::End)).unwrap();
    assert_eq!(said(&mut agent), [refused("no inputs"), refused("the disk is full")]);
}

#[test]
fn the_agent_discards_input_after_the_program_ended() {
    let mut agent = agent();
    agent.receive(&frame(&run("program"))).unwrap();
    agent.report_exit(ENDED).unwrap();
    agent.receive(&data(GuestStream::Stdin, 10)).unwrap();
    agent.receive(&frame(&HostMessage::Kill)).unwrap();
    agent.receive(&frame(&HostMessage::End)).unwrap();
    agent.receive(&frame(&run("nothing"))).unwrap();
    agent.receive(&data(GuestStream::Stdin, 10)).unwrap();
    agent.receive(&frame(&HostMessage::End)).unwrap();
    assert_eq!(
        said(&mut agent),
        [Said::Message(GuestMessage::Ended(ENDED)), refused("no such program")]
    );
    agent.receive(&frame(&HostMessage::End)).unwrap_err();
}

#[test]
fn the_agent_refuses_an_invalid_command() {
    let mut agent = agent();
    let mut request = |argv: &[&str], name: &str, value: &str| {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        let env = [(name.to_owned(), value.to_owned())].into();
        let request =
            HostMessage::Run(GuestRunRequest { argv, env, limits: SandboxLimits::default() });
        agent.receive(&[frame(&request), frame(&HostMessage::End)].concat()).unwrap();
    };
    request(&[], "A", "");
    request(&[""], "A", "");
    request(&["a\0b"], "A", "");
    request(&["a"], "A=B", "");
    request(&["a"], "", "");
    request(&["a"], "1A", "");
    request(&["a"], "A", "\0");
    agent.receive(&frame(&HostMessage::Park { argv: Vec::new() })).unwrap();
    agent.receive(&frame(&HostMessage::Reseed { seed: "ag".repeat(32), unix_ms: 5 })).unwrap();
    let name =
        "variable names may contain only letters, digits and `_` and must not start with a digit";
    assert_eq!(
        said(&mut agent),
        [
            refused("the command is empty"),
            refused("the command is empty"),
            refused("the command contains a NUL byte"),
            refused(name),
            refused(name),
            refused(name),
            refused("the variable `A` contains a NUL byte"),
            refused("the command is empty"),
            refused("a seed must have 64 hexadecimal digits"),
        ]
    );
    assert_eq!(agent.backend().lines, [""; 0]);
}

#[test]
fn the_agent_ends_the_session_on_an_unexpected_message() {
    #[track_caller]
    fn check(spoken: &[Vec<u8>], expected: &str) {
        let ended = agent().receive(&spoken.concat()).unwrap_err();
        assert_eq!(ended.to_string(), format!("unexpected {expected}"));
    }
    let (putting, running) = (frame(&put(Place::Workspace)), frame(&run("program")));
    check(&[data(GuestStream::File, 1)], "data");
    check(&[data(GuestStream::Stdout, 1)], "data");
    check(&[data(GuestStream::Stdin, 1)], "data");
    check(&[frame(&HostMessage::End)], "`end` message without a transfer");
    check(&[putting.clone(), data(GuestStream::Stdin, 1)], "data");
    check(&[putting.clone(), putting], "message inside a file transfer");
    check(&[running.clone(), data(GuestStream::File, 1)], "data");
    check(&[running.clone(), running.clone()], "message while a program runs");
    let over = frame(&HostMessage::End);
    check(&[running.clone(), over.clone(), data(GuestStream::Stdin, 1)], "data");
    check(&[running, over.clone(), over], "message while a program runs");
}

#[test]
fn the_agent_stops_reading_while_its_output_is_not_consumed() {
    let mut reading = agent();
    reading
        .receive(&frame(&HostMessage::Get { path: "a".parse().unwrap(), most_bytes: 10 << 20 }))
        .unwrap();
    assert!(!reading.can_receive());
    assert!(reading.output().len() < 400 << 10);
    let mut bytes = 0;
    while !reading.output().is_empty() {
        bytes += reading.output().len();
        reading.mark_sent(reading.output().len());
        reading.advance().unwrap();
    }
    assert!(reading.can_receive());
    assert!(bytes > 10 << 20);

    let mut feeding = agent();
    feeding.receive(&frame(&run("program"))).unwrap();
    feeding.queue_output(GuestStream::Stdout, &vec![0; 1 << 20]);
    assert!(!feeding.can_queue_output());
    assert!(feeding.can_receive());
    feeding.receive(&data(GuestStream::Stdin, 1 << 20)).unwrap();
    assert!(!feeding.can_receive());
    feeding.backend().backlog = 0;
    assert!(feeding.can_receive());
}

#[test]
fn the_agent_reports_for_each_test_of_a_probe_whether_the_sandbox_held() {
    let mut agent = agent();
    let probe = HostMessage::Probe { host_file: "/tmp/secret".to_owned(), port: 7 };
    agent.receive(&frame(&probe)).unwrap();
    let held = BTreeMap::from([("no-network".to_owned(), true)]);
    assert_eq!(said(&mut agent), [Said::Message(GuestMessage::Probed { held })]);
    assert_eq!(agent.backend().lines, ["probe /tmp/secret 7"]);
}

#[test]
fn the_agent_runs_a_workflow_and_refuses_unexpected_results() {
    let mut agent = agent();
    let build = || GuestWorkflow::Debate { input: Box::new(debate_input()) };
    let failure = || SandboxFailure {
        kind: SandboxFailureKind::Lost,
        detail: "nothing of the sort was asked".to_owned(),
    };
    let mut outside = build().build().unwrap();
    let first = outside.start();
    let (id, _) = first.perform.first().unwrap().clone();
    let result = EffectResult::ModelFailed(ModelFailure::new(FailureKind::TimedOut, "too late"));
    let second = outside.resume(&id, result.clone()).unwrap();

    let tell = |result| frame(&HostMessage::Result { id: id.clone(), result: Box::new(result) });
    agent.receive(&tell(result.clone())).unwrap();
    agent.receive(&frame(&HostMessage::Start(Box::new(build())))).unwrap();
    agent.receive(&tell(EffectResult::NotExecuted(failure()))).unwrap();
    agent.receive(&tell(result)).unwrap();
    let unexpected = outside_refusal(build(), &id, EffectResult::NotExecuted(failure()));
    assert_eq!(
        said(&mut agent),
        [
            refused("no workflow was started"),
            Said::Message(GuestMessage::Step(Box::new(StepSummary::of(first).unwrap()))),
            refused(&unexpected),
            Said::Message(GuestMessage::Step(Box::new(StepSummary::of(second).unwrap()))),
        ]
    );
}

/// The error of a workflow that received an unexpected result.
fn outside_refusal(workflow: GuestWorkflow, id: &EffectId, result: EffectResult) -> String {
    let mut outside = workflow.build().unwrap();
    let _ = outside.start();
    outside.resume(id, result).unwrap_err().to_string()
}

proptest! {
    #[test]
    fn the_agent_never_panics_on_any_input(
        pieces in prop::collection::vec((0..12_u8, prop::collection::vec(any::<u8>(), 0..40)), 0..20)
    ) {
        let mut agent = agent();
        for (kind, bytes) in pieces {
            let spoken = match kind {
                0 => frame(&put(Place::Workspace)),
                1 => frame(&put(Place::Inputs)),
                2 => frame(&HostMessage::End),
                3 => frame(&run("program")),
                4 => frame(&run("nothing")),
                5 => frame(&HostMessage::Kill),
                6 => data(GuestStream::File, bytes.len()),
                7 => data(GuestStream::Stdin, bytes.len()),
                8 => frame(&HostMessage::Get { path: "a".parse().unwrap(), most_bytes: 9 }),
                9 => frame(&HostMessage::List { folder: "a".parse().ok(), most: 9 }),
                10 => {
                    agent.report_exit(ENDED).unwrap();
                    Vec::new()
                }
                _ => bytes,
            };
            let heard = agent.receive(&spoken);
            said(&mut agent);
            if heard.is_err() {
                break;
            }
        }
    }
}
