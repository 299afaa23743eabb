use super::*;

/// Checks the messages of a stream that arrives in the given pieces.
#[track_caller]
fn check(mut framing: MessageFramer, pieces: &[&str], expected: &[&str]) {
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
    check(MessageFramer::lines(), &["a\nb\r\n", "c"], &["a", "b"]);
    check(MessageFramer::lines(), &["a", "b", "\r", "\nc\n"], &["ab", "c"]);
    check(MessageFramer::lines(), &["\n \n\t\r\n", "a\n\n"], &["a"]);
    check(MessageFramer::lines(), &["a\rb\n"], &["a\rb"]);
}

#[test]
fn an_event_is_a_message_once_an_empty_line_ends_it() {
    check(MessageFramer::server_sent_events(), &["data: a\n", "\n", "data: b\n"], &["a"]);
    check(MessageFramer::server_sent_events(), &["data:a\r\n\r\ndata:  b\r\n\r\n"], &["a", " b"]);
    check(MessageFramer::server_sent_events(), &["data: a\ndata: b\ndata:\n\n"], &["a\nb\n"]);
    check(
        MessageFramer::server_sent_events(),
        &["event: x\nid: 1\n: note\ndata: a\nretry: 5\n\n"],
        &["a"],
    );
}

#[test]
fn an_event_without_data_is_not_a_message() {
    check(MessageFramer::server_sent_events(), &["\n\n\n: ping\n\nevent: ping\n\n"], &[]);
    check(MessageFramer::server_sent_events(), &["data:\n\ndata: \n\ndata: a\n\n"], &["a"]);
    check(MessageFramer::server_sent_events(), &["database: a\n\n data: b\n\n"], &[]);
}

#[test]
fn a_line_of_exactly_the_limit_is_accepted_but_no_longer_one() {
    let most = vec![b'a'; MAX_BODY_BYTES];
    let mut framing = MessageFramer::lines();
    framing.push(&most).unwrap();
    assert_eq!(framing.next_message(), None);
    let refused = framing.push(b"\n").unwrap_err();
    assert_eq!(
        refused,
        ModelFailure::new(FailureKind::Malformed, "the provider sent a line longer than 16 MiB")
    );
}

#[test]
fn consumed_messages_do_not_count_toward_the_limit() {
    let line = [vec![b'a'; MAX_BODY_BYTES / 4], b"\n".to_vec()].concat();
    let mut framing = MessageFramer::lines();
    for _ in 0..8 {
        framing.push(&line).unwrap();
        assert_eq!(framing.next_message().map(|message| message.len()), Some(line.len() - 1));
        assert_eq!(framing.next_message(), None);
    }
}
