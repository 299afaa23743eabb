//! File transfers and requests that are not about programs.

use std::os::unix::fs::{MetadataExt, symlink};

use moothall_core::guest::{GuestFile, GuestMessage, HostMessage, Place};

use crate::guest::{Guest, exited, guest_path, request, shell};

fn refused(why: &str) -> GuestMessage {
    GuestMessage::Refused { why: why.to_owned() }
}

#[test]
fn files_can_be_copied_into_and_out_of_the_guest() {
    let mut guest = Guest::start();
    let large: Vec<u8> = (0..3 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    guest.write("a/b/large", &large);
    guest.write("empty", b"");
    assert_eq!(guest.get("a/b/large", 4 << 20), Ok(large));
    assert_eq!(guest.get("empty", 0), Ok(Vec::new()));
    let mode = fs_err::metadata(guest.workspace().join("a/b/large")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn inputs_are_refused_if_the_agent_cannot_make_them_read_only() {
    let mut guest = Guest::start();
    let answer = guest.put(Place::Inputs, "a", b"bytes");
    assert_eq!(answer, refused("read-only inputs need an agent that runs as root"));
    guest.write("a", b"");
}

#[test]
fn links_made_by_a_program_are_not_followed() {
    let mut guest = Guest::start();
    let script = "ln -s /etc out/etc; ln -s /etc/passwd out/passwd; ln -s / root; \
                  ln -s /proc/1/environ out/environ; mkfifo out/pipe; echo x > out/file; \
                  ln out/file out/hard; ln -s out elsewhere";
    let (outcome, _) = guest.run(shell(script), b"");
    assert_eq!(outcome, exited(0, "", ""));
    let file = |path: &str| GuestFile { path: guest_path(path), bytes: 2 };
    assert_eq!(
        guest.ask(&HostMessage::List { folder: Some(guest_path("out")), most: 10 }),
        GuestMessage::Listing {
            files: vec![file("file"), file("hard")],
            others: vec![
                "`environ` is a link".to_owned(),
                "`etc` is a link".to_owned(),
                "`passwd` is a link".to_owned(),
                "`pipe` is a pipe".to_owned(),
            ]
        }
    );
    assert_eq!(
        guest.ask(&HostMessage::List { folder: Some(guest_path("elsewhere")), most: 10 }),
        GuestMessage::Listing {
            files: Vec::new(),
            others: vec!["`elsewhere` is not a directory".to_owned()]
        }
    );
    for path in ["out/passwd", "out/etc/passwd", "root/etc/passwd", "out/environ", "elsewhere/file"]
    {
        guest.get(path, 1 << 20).unwrap_err();
    }
    let below_a_link = guest.put(Place::Workspace, "root/tmp/new", b"");
    assert_eq!(
        below_a_link,
        refused("cannot create `root/tmp/new`: Not a directory (os error 20)")
    );
    let pipe = guest.get("out/pipe", 1 << 20);
    assert_eq!(pipe, Err("`out/pipe` is not a regular file".to_owned()));
}

#[test]
fn an_existing_link_in_the_guest_is_not_followed() {
    let mut guest = Guest::start();
    symlink("/etc", guest.workspace().join("way")).unwrap();
    let answer = guest.put(Place::Workspace, "way/file", b"");
    assert_eq!(answer, refused("cannot create `way/file`: Not a directory (os error 20)"));
}

#[test]
fn reseeding_succeeds_in_a_container() {
    let mut guest = Guest::start();
    let reseed = HostMessage::Reseed { seed: "00".repeat(32), unix_ms: 1 };
    assert_eq!(guest.ask(&reseed), GuestMessage::Done);
}

#[test]
fn a_program_that_cannot_start_is_refused_and_the_agent_continues() {
    let mut guest = Guest::start();
    guest.say(&HostMessage::Run(request(&["no-such-program"])));
    guest.say(&HostMessage::End);
    let why = "cannot start `no-such-program`: No such file or directory (os error 2)";
    assert_eq!(guest.hear(), refused(why));
    assert_eq!(guest.run(request(&["true"]), b"").0, exited(0, "", ""));
    guest.say(&HostMessage::Park { argv: vec!["false".to_owned()] });
    assert_eq!(guest.hear(), refused("the interpreter exited: "));
}
