use super::*;

#[track_caller]
fn check(typed: &[u8], expected: Option<&str>) {
    assert_eq!(read_hidden(typed).unwrap().as_deref(), expected);
}

#[test]
fn a_hidden_line_ends_with_enter_and_can_be_edited() {
    check(b"sk-1\rrest", Some("sk-1"));
    check(b"sk-1\n", Some("sk-1"));
    check(b"sk-2\x7f1\n", Some("sk-1"));
    check(b"\x7fwrong\x15sk-1\n", Some("sk-1"));
    check(b"no line end", Some("no line end"));
}

#[test]
fn a_hidden_line_can_be_cancelled() {
    check(b"sk-1\x03", None);
    check(b"\x04", None);
    check(b"sk\x04-1\n", Some("sk\u{4}-1"));
}

#[test]
fn a_hidden_line_has_a_limit() {
    assert!(read_hidden(io::BufReader::new(io::repeat(b'a'))).is_err());
    assert!(read_hidden(&[0xff, b'\n'][..]).is_err());
}
