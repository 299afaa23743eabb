use super::*;

/// All messages of a stream that comes in the given pieces.
#[track_caller]
fn check(mut framing: Framing, pieces: &[&str], expected: &[&str]) {
    let mut messages = Vec::new();
    for piece in pieces {
        framing.push(piece.as_bytes()).unwrap();
        while let Some(message) = framing.next_message() {
            messages.push(message);
        }
    }
    let expected: Vec<_> = expected.iter().map(|message| message.as_bytes().to_vec()).collect();
    assert_eq!(messages, expected);
}

#[test]
fn a_line_is_a_message_once_it_ends() {
    check(Framing::lines(), &["a\nb\r\n", "c"], &["a", "b"]);
    check(Framing::lines(), &["a", "b", "\r", "\nc\n"], &["ab", "c"]);
    check(Framing::lines(), &["\n \n\t\r\n", "a\n\n"], &["a"]);
    check(Framing::lines(), &["a\rb\n"], &["a\rb"]);
}

#[test]
fn an_event_is_a_message_once_an_empty_line_ends_it() {
    check(Framing::server_sent_events(), &["data: a\n", "\n", "data: b\n"], &["a"]);
    check(Framing::server_sent_events(), &["data:a\r\n\r\ndata:  b\r\n\r\n"], &["a", " b"]);
    check(Framing::server_sent_events(), &["data: a\ndata: b\ndata:\n\n"], &["a\nb\n"]);
    check(
        Framing::server_sent_events(),
        &["event: x\nid: 1\n: note\ndata: a\nretry: 5\n\n"],
        &["a"],
    );
}

#[test]
fn an_event_without_data_is_no_message() {
    check(Framing::server_sent_events(), &["\n\n\n: ping\n\nevent: ping\n\n"], &[]);
    check(Framing::server_sent_events(), &["data:\n\ndata: \n\ndata: a\n\n"], &["a"]);
    check(Framing::server_sent_events(), &["database: a\n\n data: b\n\n"], &[]);
}

#[test]
fn as_much_as_the_bound_is_taken_and_not_a_byte_more() {
    let most = vec![b'a'; MAX_BODY_BYTES];
    let mut framing = Framing::lines();
    framing.push(&most).unwrap();
    assert_eq!(framing.next_message(), None);
    let refused = framing.push(b"\n").unwrap_err();
    assert_eq!(
        refused,
        ModelFailure::new(FailureKind::Malformed, "a line of the stream has no end")
    );
}

#[test]
fn what_was_handed_out_does_not_count_against_the_bound() {
    let line = [vec![b'a'; MAX_BODY_BYTES / 4], b"\n".to_vec()].concat();
    let mut framing = Framing::lines();
    for _ in 0..8 {
        framing.push(&line).unwrap();
        assert_eq!(framing.next_message().map(|message| message.len()), Some(line.len() - 1));
        assert_eq!(framing.next_message(), None);
    }
}
