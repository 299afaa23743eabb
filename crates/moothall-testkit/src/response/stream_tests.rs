use super::{EventStream, deltas};

#[track_caller]
fn check_deltas(text: &str, expected: &[&str]) {
    assert_eq!(deltas(text).collect::<Vec<_>>(), expected);
}

#[test]
fn deltas_add_up_to_the_text_and_never_split_a_character() {
    check_deltas("", &[]);
    check_deltas("a", &["a"]);
    check_deltas("hello", &["hel", "lo"]);
    check_deltas("\u{1f980}", &["\u{1f980}"]);
    check_deltas("\u{1f980}\u{1f980}", &["\u{1f980}", "\u{1f980}"]);
    check_deltas(
        "a sentence that is longer than two",
        &["a sentence that ", "is longer than t", "wo"],
    );
}

fn example() -> EventStream {
    let mut events = EventStream::for_text(0);
    events.opening(|out| out.extend_from_slice(b"open"));
    events.delta(|out| out.extend_from_slice(b"one"));
    events.delta(|out| out.extend_from_slice(b"two and a half, and more"));
    events.closing(|out| out.extend_from_slice(b"end"));
    events
}

#[test]
fn every_event_is_a_chunk() {
    assert_eq!(
        String::from_utf8(example().finish()).unwrap(),
        "00000004\r\nopen\r\n00000003\r\none\r\n00000018\r\ntwo and a half, and more\r\n00000003\r\nend\r\n0\r\n\r\n"
    );
}

#[test]
fn cuts_fall_after_the_first_delta() {
    let kept = "00000004\r\nopen\r\n00000003\r\none\r\n";
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!(text(example().cut_after_first_delta()), kept);
    assert_eq!(
        text(example().cut_inside_the_event_after_first_delta()),
        format!("{kept}00000018\r\ntwo and a ha")
    );
    assert_eq!(
        text(example().replace_after_first_delta(|events| events.closing(|out| out.push(b'!')))),
        format!("{kept}00000001\r\n!\r\n0\r\n\r\n")
    );
}
