use super::*;

#[track_caller]
fn check(said: &[u8], expected: &str) {
    let words = RuntimeStderrTail(Arc::new(Mutex::new(said.to_vec())));
    assert_eq!(words.text(), expected);
}

#[test]
fn makes_one_line_of_what_a_runtime_says() {
    check(b"", "");
    check(b"\n\n", "");
    check(b"it failed\n", "it failed");
    check(b"first\r\n\tsecond\x1b\n", "first; second");
    check(b"not \xff text", "not \u{fffd} text");
}

#[tokio::test]
async fn keeps_the_end_of_what_a_runtime_says() {
    let words = RuntimeStderrTail::default();
    let mut child = Command::new("sh")
        .args(["-c", "head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    words.listen(child.stderr.take().unwrap()).await.unwrap();
    child.wait().unwrap();
    let expected = format!("{}; last", "x".repeat(LAST_WORDS - "\nlast\n".len()));
    assert_eq!(words.text(), expected);
}
