use super::*;

#[track_caller]
fn check(stderr: &[u8], expected: &str) {
    let stderr_tail = RuntimeStderrTail(Arc::new(Mutex::new(stderr.to_vec())));
    assert_eq!(stderr_tail.text(), expected);
}

#[test]
fn the_stderr_of_a_runtime_is_joined_into_one_line() {
    check(b"", "");
    check(b"\n\n", "");
    check(b"it failed\n", "it failed");
    check(b"first\r\n\tsecond\x1b\n", "first; second");
    check(b"not \xff text", "not \u{fffd} text");
}

#[tokio::test]
async fn only_the_end_of_the_stderr_of_a_runtime_is_kept() {
    let stderr_tail = RuntimeStderrTail::default();
    let mut child = Command::new("sh")
        .args(["-c", "head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    stderr_tail.collect(child.stderr.take().unwrap()).await.unwrap();
    child.wait().unwrap();
    let expected = format!("{}; last", "x".repeat(STDERR_TAIL_BYTES - "\nlast\n".len()));
    assert_eq!(stderr_tail.text(), expected);
}
