//! How the agent handles a host that violates the protocol.

use moothall_core::guest::{GuestStream, HostMessage, Place};

use crate::guest::{Guest, guest_path, shell};

/// The agent exits with a reason, and nothing that it started survives.
#[track_caller]
fn check(spoken: &[u8], expected: &str) {
    let mut guest = Guest::start();
    guest.say_bytes(spoken);
    assert_eq!(guest.hear_frame(), None);
    let (status, stderr) = guest.end();
    assert_eq!((status.code(), stderr.as_str()), (Some(1), expected));
}

#[test]
fn the_agent_exits_on_a_too_long_or_empty_frame() {
    check(b"\xff\xff\xff\xffj", "moothall-guest: invalid frame\n");
    check(b"\0\0\0\0j", "moothall-guest: invalid frame\n");
}

#[test]
fn the_agent_exits_on_too_long_data_before_it_arrives() {
    check(b"\0\x10\0\0f", "moothall-guest: invalid frame\n");
}

#[test]
fn the_agent_exits_on_an_unknown_frame_kind_or_invalid_message() {
    check(b"\0\0\0\x02xx", "moothall-guest: invalid frame\n");
    check(b"\0\0\0\x03j{}", "moothall-guest: invalid frame\n");
    let escape = br#"j{"to_guest":"get","path":"../etc/passwd","most_bytes":9}"#;
    let length = u32::try_from(escape.len()).unwrap().to_be_bytes();
    check(&[&length[..], escape].concat(), "moothall-guest: invalid frame\n");
}

#[test]
fn an_unexpected_message_ends_the_agent_and_its_program() {
    let mut guest = Guest::start();
    let script = "sleep 1000 & echo $! > child; echo $$ > self; echo started; sleep 1000";
    guest.say(&HostMessage::Run(shell(script)));
    guest.hear_frame().unwrap();
    let pids = ["child", "self"].map(|name| pid_in(&guest, name));
    guest.say(&HostMessage::Put { place: Place::Workspace, path: guest_path("a") });
    assert_eq!(guest.hear_frame(), None);
    let (status, stderr) = guest.end();
    let expected = "moothall-guest: unexpected message while a program runs\n";
    assert_eq!((status.code(), stderr.as_str()), (Some(1), expected));
    assert_eq!(pids.map(is_alive), [false, false]);
}

#[test]
fn a_disconnected_host_ends_the_agent_and_its_program() {
    let mut guest = Guest::start();
    // Its own session and process group, and it ignores signals: it must be killed individually.
    let script = "trap '' HUP TERM; setsid sh -c 'trap \"\" HUP TERM; echo $$ > child; echo started; sleep 1000' & wait";
    guest.say(&HostMessage::Run(shell(script)));
    guest.say_data(GuestStream::Stdin, b"input");
    guest.hear_frame().unwrap();
    let child = pid_in(&guest, "child");
    assert!(is_alive(child));
    guest.leave();
    assert_eq!(guest.hear_frame(), None);
    let (status, stderr) = guest.end();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
    assert!(!is_alive(child));
}

#[test]
fn the_agent_exits_if_the_host_disconnects_within_a_frame() {
    let mut guest = Guest::start();
    guest.say_bytes(b"\0\x0f\0\0j{\"to_guest\"");
    guest.leave();
    assert_eq!(guest.hear_frame(), None);
    assert_eq!(guest.end().0.code(), Some(0));
}

/// The process id that a program wrote before it reported its start.
fn pid_in(guest: &Guest, name: &str) -> i32 {
    fs_err::read_to_string(guest.workspace().join(name)).unwrap().trim().parse().unwrap()
}

fn is_alive(pid: i32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
