//! What the agent does with a host that it cannot understand.

use moothall_core::guest::{Channel, Place, ToGuest};

use crate::guest::{Guest, guest_path, shell};

/// The agent ends, says why, and nothing that it started lives on.
#[track_caller]
fn check(spoken: &[u8], expected: &str) {
    let mut guest = Guest::start();
    guest.say_bytes(spoken);
    assert_eq!(guest.hear_frame(), None);
    let (status, stderr) = guest.end();
    assert_eq!((status.code(), stderr.as_str()), (Some(1), expected));
}

#[test]
fn ends_at_a_frame_that_is_too_long_or_empty() {
    check(b"\xff\xff\xff\xffj", "moothall-guest: the conversation broke\n");
    check(b"\0\0\0\0j", "moothall-guest: the conversation broke\n");
}

#[test]
fn ends_at_data_that_is_too_long_before_it_has_come() {
    check(b"\0\x10\0\0f", "moothall-guest: the conversation broke\n");
}

#[test]
fn ends_at_an_unknown_kind_and_at_what_is_no_message() {
    check(b"\0\0\0\x02xx", "moothall-guest: the conversation broke\n");
    check(b"\0\0\0\x03j{}", "moothall-guest: the conversation broke\n");
    let escape = br#"j{"to_guest":"get","path":"../etc/passwd","most_bytes":9}"#;
    let length = u32::try_from(escape.len()).unwrap().to_be_bytes();
    check(&[&length[..], escape].concat(), "moothall-guest: the conversation broke\n");
}

#[test]
fn ends_at_a_message_that_is_out_of_place_and_takes_the_program_along() {
    let mut guest = Guest::start();
    let script = "sleep 1000 & echo $! > child; echo $$ > self; echo started; sleep 1000";
    guest.say(&ToGuest::Run(shell(script)));
    guest.hear_frame().unwrap();
    let pids = ["child", "self"].map(|name| pid_in(&guest, name));
    guest.say(&ToGuest::Put { place: Place::Workspace, path: guest_path("a") });
    assert_eq!(guest.hear_frame(), None);
    let (status, stderr) = guest.end();
    let expected = "moothall-guest: a message while a program runs came where it does not belong\n";
    assert_eq!((status.code(), stderr.as_str()), (Some(1), expected));
    assert_eq!(pids.map(is_alive), [false, false]);
}

#[test]
fn goes_when_the_host_goes_and_takes_the_program_along() {
    let mut guest = Guest::start();
    // Its own session, its own group, and deaf: only being killed one by one helps.
    let script = "trap '' HUP TERM; setsid sh -c 'trap \"\" HUP TERM; echo $$ > child; echo started; sleep 1000' & wait";
    guest.say(&ToGuest::Run(shell(script)));
    guest.say_data(Channel::Stdin, b"input");
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
fn ends_at_once_where_the_host_goes_amid_a_frame() {
    let mut guest = Guest::start();
    guest.say_bytes(b"\0\x0f\0\0j{\"to_guest\"");
    guest.leave();
    assert_eq!(guest.hear_frame(), None);
    assert_eq!(guest.end().0.code(), Some(0));
}

/// The number that a program has written before it said that it had started.
fn pid_in(guest: &Guest, name: &str) -> i32 {
    fs_err::read_to_string(guest.workspace().join(name)).unwrap().trim().parse().unwrap()
}

fn is_alive(pid: i32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
