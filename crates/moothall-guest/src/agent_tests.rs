use moothall_core::consult::board;
use moothall_core::debate::{Calls, DebateInput};
use moothall_core::guest::{FoundFile, SaidStep, WayToEnd};
use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::sandbox::{Limits, SandboxFailure, SandboxFailureKind};
use proptest::prelude::*;

use super::*;

/// A world in which nothing happens, and everything is written down.
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
    fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.bytes += bytes.len();
        if self.bytes > self.most { Err(Refusal::new("the disk is full")) } else { Ok(()) }
    }

    fn finish(self) -> Result<(), Refusal> {
        Ok(())
    }
}

impl World for Diary {
    type Incoming = Page;
    type Outgoing = std::io::Take<std::io::Repeat>;

    fn reseed(&mut self, seed: &[u8; 32], unix_ms: u64) -> Result<(), Refusal> {
        self.lines.push(format!("reseed {:x} {unix_ms}", seed[0]));
        Ok(())
    }

    fn put(&mut self, place: Place, path: &GuestPath) -> Result<Page, Refusal> {
        self.lines.push(format!("put {place:?} {path}"));
        match place {
            Place::Workspace => Ok(Page { bytes: 0, most: 100_000 }),
            Place::Inputs => Err(Refusal::new("no inputs")),
        }
    }

    fn park(&mut self, argv: &[String]) -> Result<(), Refusal> {
        self.lines.push(format!("park {argv:?}"));
        Ok(())
    }

    fn run(&mut self, request: &RunRequest) -> Result<(), Refusal> {
        self.lines.push(format!("run {:?}", request.argv));
        if request.argv[0] == "nothing" { Err(Refusal::new("no such program")) } else { Ok(()) }
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

    fn list(&mut self, folder: Option<&GuestPath>, most: u32) -> Result<FromGuest, Refusal> {
        let folder = folder.map_or(".", GuestPath::as_str);
        self.lines.push(format!("list {folder} {most}"));
        let files = vec![FoundFile { path: "a".parse().unwrap(), bytes: 1 }];
        Ok(FromGuest::Listing { files, others: Vec::new() })
    }

    fn get(&mut self, path: &GuestPath, most_bytes: u64) -> Result<Self::Outgoing, Refusal> {
        self.lines.push(format!("get {path} {most_bytes}"));
        Ok(std::io::repeat(7).take(most_bytes))
    }
}

fn agent() -> Agent<Diary> {
    let mut agent = Agent::new(Diary::default()).unwrap();
    assert_eq!(said(&mut agent), [Said::Message(FromGuest::Ready { protocol: PROTOCOL })]);
    agent
}

#[derive(Debug, PartialEq)]
enum Said {
    Message(FromGuest),
    /// Data, by length.
    Data(Channel, usize),
}

/// Takes what the agent has said.
fn said(agent: &mut Agent<Diary>) -> Vec<Said> {
    let mut reader = FrameReader::default();
    reader.push(agent.output());
    agent.sent(agent.output().len());
    std::iter::from_fn(|| reader.next::<FromGuest>().unwrap())
        .map(|frame| match frame {
            Frame::Message(message) => Said::Message(message),
            Frame::Data(channel, bytes) => Said::Data(channel, bytes.len()),
        })
        .collect()
}

fn refused(why: &str) -> Said {
    Said::Message(FromGuest::Refused { why: why.to_owned() })
}

fn frame(message: &ToGuest) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_message(&mut bytes, message).unwrap();
    bytes
}

fn data(channel: Channel, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_data(&mut bytes, channel, &vec![b'x'; length]);
    bytes
}

fn run(program: &str) -> ToGuest {
    ToGuest::Run(RunRequest {
        argv: vec![program.to_owned()],
        env: [].into(),
        limits: Limits::default(),
    })
}

fn put(place: Place) -> ToGuest {
    ToGuest::Put { place, path: "d/f".parse().unwrap() }
}

const ENDED: Ended = Ended {
    way: WayToEnd::Exited(0),
    stdout_truncated: false,
    stderr_truncated: false,
    left_running: 0,
};

#[test]
fn tells_the_world_what_it_hears_and_the_host_what_came_of_it() {
    let mut agent = agent();
    let seed = ToGuest::Reseed { seed: "ab".repeat(32), unix_ms: 5 };
    let spoken = [
        frame(&seed),
        frame(&put(Place::Workspace)),
        data(Channel::File, 70_000),
        frame(&ToGuest::End),
        frame(&ToGuest::Park { argv: vec!["python3".to_owned()] }),
        frame(&ToGuest::List { folder: "out".parse().ok(), most: 3 }),
        frame(&ToGuest::Get { path: "a".parse().unwrap(), most_bytes: 40_000 }),
        frame(&run("program")),
        data(Channel::Stdin, 10),
        frame(&ToGuest::End),
        frame(&ToGuest::Kill),
    ]
    .concat();
    // However the bytes come in.
    for byte in spoken.chunks(1000) {
        agent.hear(byte).unwrap();
    }
    agent.printed(Channel::Stdout, b"hello");
    agent.ended(ENDED).unwrap();
    let files = vec![FoundFile { path: "a".parse().unwrap(), bytes: 1 }];
    assert_eq!(
        said(&mut agent),
        [
            Said::Message(FromGuest::Done),
            Said::Message(FromGuest::Done),
            Said::Message(FromGuest::Done),
            Said::Message(FromGuest::Listing { files, others: Vec::new() }),
            Said::Data(Channel::File, 32 << 10),
            Said::Data(Channel::File, 40_000 - (32 << 10)),
            Said::Message(FromGuest::End),
            Said::Data(Channel::Stdout, 5),
            Said::Message(FromGuest::Ended(ENDED)),
        ]
    );
    assert_eq!(
        agent.world().lines,
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
fn swallows_a_file_that_was_refused_and_says_so_once_at_its_end() {
    let mut agent = agent();
    agent.hear(&frame(&put(Place::Inputs))).unwrap();
    agent.hear(&data(Channel::File, 200_000)).unwrap();
    assert_eq!(said(&mut agent), []);
    agent.hear(&frame(&ToGuest::End)).unwrap();
    agent.hear(&frame(&put(Place::Workspace))).unwrap();
    agent.hear(&data(Channel::File, 200_000)).unwrap();
    agent.hear(&frame(&ToGuest::End)).unwrap();
    assert_eq!(said(&mut agent), [refused("no inputs"), refused("the disk is full")]);
}

#[test]
fn swallows_input_that_comes_after_the_program_ended() {
    let mut agent = agent();
    agent.hear(&frame(&run("program"))).unwrap();
    agent.ended(ENDED).unwrap();
    agent.hear(&data(Channel::Stdin, 10)).unwrap();
    agent.hear(&frame(&ToGuest::Kill)).unwrap();
    agent.hear(&frame(&ToGuest::End)).unwrap();
    agent.hear(&frame(&run("nothing"))).unwrap();
    agent.hear(&data(Channel::Stdin, 10)).unwrap();
    agent.hear(&frame(&ToGuest::End)).unwrap();
    assert_eq!(
        said(&mut agent),
        [Said::Message(FromGuest::Ended(ENDED)), refused("no such program")]
    );
    agent.hear(&frame(&ToGuest::End)).unwrap_err();
}

#[test]
fn refuses_a_command_that_cannot_be_one() {
    let mut agent = agent();
    let mut request = |argv: &[&str], name: &str, value: &str| {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        let env = [(name.to_owned(), value.to_owned())].into();
        let request = ToGuest::Run(RunRequest { argv, env, limits: Limits::default() });
        agent.hear(&[frame(&request), frame(&ToGuest::End)].concat()).unwrap();
    };
    request(&[], "A", "");
    request(&[""], "A", "");
    request(&["a\0b"], "A", "");
    request(&["a"], "A=B", "");
    request(&["a"], "", "");
    request(&["a"], "1A", "");
    request(&["a"], "A", "\0");
    agent.hear(&frame(&ToGuest::Park { argv: Vec::new() })).unwrap();
    agent.hear(&frame(&ToGuest::Reseed { seed: "ag".repeat(32), unix_ms: 5 })).unwrap();
    let name = "a variable's name is not made of letters, digits and `_`";
    assert_eq!(
        said(&mut agent),
        [
            refused("there is no command"),
            refused("there is no command"),
            refused("the command holds a NUL"),
            refused(name),
            refused(name),
            refused(name),
            refused("the variable `A` holds a NUL"),
            refused("there is no command"),
            refused("a seed has 64 hexadecimal digits"),
        ]
    );
    assert_eq!(agent.world().lines, [""; 0]);
}

#[test]
fn ends_the_conversation_where_something_is_out_of_place() {
    #[track_caller]
    fn check(spoken: &[Vec<u8>], expected: &str) {
        let ended = agent().hear(&spoken.concat()).unwrap_err();
        assert_eq!(ended.to_string(), format!("{expected} came where it does not belong"));
    }
    let (putting, running) = (frame(&put(Place::Workspace)), frame(&run("program")));
    check(&[data(Channel::File, 1)], "data");
    check(&[data(Channel::Stdout, 1)], "data");
    check(&[data(Channel::Stdin, 1)], "data");
    check(&[frame(&ToGuest::End)], "an end of nothing");
    check(&[putting.clone(), data(Channel::Stdin, 1)], "data");
    check(&[putting.clone(), putting], "a message within a file");
    check(&[running.clone(), data(Channel::File, 1)], "data");
    check(&[running.clone(), running.clone()], "a message while a program runs");
    let over = frame(&ToGuest::End);
    check(&[running.clone(), over.clone(), data(Channel::Stdin, 1)], "data");
    check(&[running, over.clone(), over], "a message while a program runs");
}

#[test]
fn stops_listening_while_nobody_takes_what_it_holds() {
    let mut reading = agent();
    reading
        .hear(&frame(&ToGuest::Get { path: "a".parse().unwrap(), most_bytes: 10 << 20 }))
        .unwrap();
    assert!(!reading.listens());
    assert!(reading.output().len() < 400 << 10);
    let mut bytes = 0;
    while !reading.output().is_empty() {
        bytes += reading.output().len();
        reading.sent(reading.output().len());
        reading.advance().unwrap();
    }
    assert!(reading.listens());
    assert!(bytes > 10 << 20);

    let mut feeding = agent();
    feeding.hear(&frame(&run("program"))).unwrap();
    feeding.printed(Channel::Stdout, &vec![0; 1 << 20]);
    assert!(!feeding.has_room());
    assert!(feeding.listens());
    feeding.hear(&data(Channel::Stdin, 1 << 20)).unwrap();
    assert!(!feeding.listens());
    feeding.world().backlog = 0;
    assert!(feeding.listens());
}

#[test]
fn holds_a_workflow_and_refuses_what_it_does_not_wait_for() {
    let mut agent = agent();
    let build = || GuestWorkflow::Debate { input: Box::new(debate()) };
    let failure = || SandboxFailure {
        kind: SandboxFailureKind::Lost,
        detail: "nothing of the sort was asked".to_owned(),
    };
    let mut outside = build().build().unwrap();
    let first = outside.start();
    let (id, _) = first.perform.first().unwrap().clone();
    let result = EffectResult::ModelFailed(ModelFailure::new(FailureKind::TimedOut, "too late"));
    let second = outside.resume(&id, result.clone()).unwrap();

    let tell = |result| frame(&ToGuest::Result { id: id.clone(), result: Box::new(result) });
    agent.hear(&tell(result.clone())).unwrap();
    agent.hear(&frame(&ToGuest::Start(Box::new(build())))).unwrap();
    agent.hear(&tell(EffectResult::NotExecuted(failure()))).unwrap();
    agent.hear(&tell(result)).unwrap();
    let unexpected = outside_refusal(build(), &id, EffectResult::NotExecuted(failure()));
    assert_eq!(
        said(&mut agent),
        [
            refused("no workflow was started"),
            Said::Message(FromGuest::Step(Box::new(SaidStep::of(first).unwrap()))),
            refused(&unexpected),
            Said::Message(FromGuest::Step(Box::new(SaidStep::of(second).unwrap()))),
        ]
    );
}

fn debate() -> DebateInput {
    let board = board();
    DebateInput {
        move_id: "m1".to_owned(),
        company: "Helix Instruments".to_owned(),
        dossier: "Revenue 412".into(),
        move_markdown: "# m1: Sell more".into(),
        machine_findings: Vec::new(),
        rounds: 2,
        critic: board.critic,
        decision_makers: board.decision_makers,
        metrics: board.metrics,
        critic_model: "demo".parse().unwrap(),
        decision_maker_model: "demo".parse().unwrap(),
        calls: Calls::default(),
    }
}

/// The words of a workflow that was told something else.
fn outside_refusal(workflow: GuestWorkflow, id: &EffectId, result: EffectResult) -> String {
    let mut outside = workflow.build().unwrap();
    let _ = outside.start();
    outside.resume(id, result).unwrap_err().to_string()
}

proptest! {
    #[test]
    fn never_panics_whatever_it_hears(
        pieces in prop::collection::vec((0..12_u8, prop::collection::vec(any::<u8>(), 0..40)), 0..20)
    ) {
        let mut agent = agent();
        for (kind, bytes) in pieces {
            let spoken = match kind {
                0 => frame(&put(Place::Workspace)),
                1 => frame(&put(Place::Inputs)),
                2 => frame(&ToGuest::End),
                3 => frame(&run("program")),
                4 => frame(&run("nothing")),
                5 => frame(&ToGuest::Kill),
                6 => data(Channel::File, bytes.len()),
                7 => data(Channel::Stdin, bytes.len()),
                8 => frame(&ToGuest::Get { path: "a".parse().unwrap(), most_bytes: 9 }),
                9 => frame(&ToGuest::List { folder: "a".parse().ok(), most: 9 }),
                10 => {
                    agent.ended(ENDED).unwrap();
                    Vec::new()
                }
                _ => bytes,
            };
            let heard = agent.hear(&spoken);
            said(&mut agent);
            if heard.is_err() {
                break;
            }
        }
    }
}
