use std::time::Instant;

use super::*;

fn tools() -> BuildTools {
    let variables = [("PATH", "/usr/bin:/bin"), ("SECRET", "x"), ("http_proxy", "proxy")];
    BuildTools::new(&variables.map(|(name, value)| (name.to_owned(), value.into())).into())
}

#[test]
fn program_that_is_not_there_is_named() {
    let error = tools().find("no-such-program-anywhere").unwrap_err();
    assert_eq!(error.to_string(), "cannot find `no-such-program-anywhere`");
}

#[tokio::test]
async fn a_build_tool_gets_a_minimal_environment() {
    let tools = tools();
    let ran = tools.run(&mut tools.command("/usr/bin/env")).await.unwrap();
    let mut lines: Vec<_> = ran.stdout.lines().collect();
    lines.sort_unstable();
    let path = "PATH=/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
    assert_eq!(lines, ["LC_ALL=C.UTF-8", path, "http_proxy=proxy"]);
}

#[tokio::test]
async fn a_failed_build_tool_reports_the_end_of_its_stderr() {
    let tools = tools();
    let mut command = tools.command("/bin/sh");
    command
        .args(["-c", "i=0; while [ $i -lt 9000 ]; do echo line $i >&2; i=$((i+1)); done; exit 7"]);
    let error = tools.run_checked("it did not work", &mut command).await.unwrap_err();
    let expected = format!(
        "it did not work: exit status: 7\n{}",
        (8988..9000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n")
    );
    assert_eq!(error.failure().detail, expected);
}

#[tokio::test]
async fn dropping_a_build_tool_ends_its_child_processes() {
    let tools = tools();
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("alive");
    let mut make = tools.command("/usr/bin/mkfifo");
    tools.run_checked("mkfifo", make.arg(&fifo)).await.unwrap();
    // The grandchild keeps the pipe open while it lives.
    let mut command = tools.command("/bin/sh");
    command.arg("-c").arg("(echo up; exec sleep 600) > \"$0\" & wait").arg(&fifo);
    let reader = tokio::task::spawn_blocking({
        let fifo = fifo.clone();
        move || {
            use std::io::Read as _;
            let mut pipe = fs_err::File::open(fifo).unwrap();
            let mut up = [0; 3];
            pipe.read_exact(&mut up).unwrap();
            (pipe, Instant::now())
        }
    });
    let pipe = tokio::select! {
        ran = tools.run(&mut command) => panic!("it ended: {ran:?}"),
        read = reader => read.unwrap().0,
    };
    // The run was dropped by the select. Reading ends when the last writer is gone.
    let end = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut rest = Vec::new();
        let mut pipe = pipe;
        pipe.read_to_end(&mut rest).unwrap();
        rest
    });
    let rest = tokio::time::timeout(Duration::from_secs(20), end).await.unwrap().unwrap();
    assert_eq!(rest, b"");
}
