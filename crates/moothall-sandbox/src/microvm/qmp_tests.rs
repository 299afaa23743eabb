use std::io::Read as _;
use std::os::fd::AsFd as _;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::QmpClient;

const GREETING: &str = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\n";

/// Simulates QEMU: sends the greeting, replies to the two setup commands and then to each command
/// with the given lines. Returns the commands.
async fn play(stream: UnixStream, greeting: String, answers: Vec<String>) -> Vec<String> {
    let mut stream = BufReader::new(stream);
    let mut commands = Vec::new();
    let _ = stream.write_all(greeting.as_bytes()).await;
    let fine = "{\"return\": {}}\n".to_owned();
    for answer in [fine.clone(), fine].into_iter().chain(answers) {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            break;
        }
        let command: Value = serde_json::from_str(&line).unwrap();
        commands.push(command["execute"].as_str().unwrap().to_owned());
        let _ = stream.write_all(answer.as_bytes()).await;
    }
    commands
}

async fn greeted(answers: &[&str]) -> (QmpClient, tokio::task::JoinHandle<Vec<String>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let player = tokio::spawn(play(theirs, GREETING.to_owned(), answers));
    (QmpClient::greet(ours).await.unwrap(), player)
}

#[tokio::test]
async fn qmp_events_before_a_response_are_skipped() {
    let answers = "{\"event\": \"STOP\", \"timestamp\": {}}\n{\"return\": {\"status\": 7}}\n";
    let (mut qmp, player) = greeted(&[answers]).await;
    assert_eq!(qmp.execute("stop", json!({})).await.unwrap(), json!({ "status": 7 }));
    drop(qmp);
    assert_eq!(player.await.unwrap(), ["qmp_capabilities", "migrate-set-capabilities", "stop"]);
}

#[tokio::test]
async fn a_qmp_migration_ends_with_its_completion_event() {
    let status = |status: &str| {
        format!("{{\"event\": \"MIGRATION\", \"data\": {{\"status\": \"{status}\"}}}}\n")
    };
    for (last, expected) in [
        ("completed", Ok(())),
        (
            "failed",
            Err("QEMU cannot start a sandbox: migration of the template state failed".to_owned()),
        ),
    ] {
        // The first event comes before the reply, the last one after it.
        let answers = format!("{}{{\"return\": {{}}}}\n{}", status("setup"), status(last));
        let (mut qmp, _player) = greeted(&[&answers]).await;
        qmp.execute("migrate", json!({ "uri": "fd:state" })).await.unwrap();
        assert_eq!(qmp.wait_for_migration().await.map_err(|error| error.to_string()), expected);
    }
}

#[tokio::test]
async fn a_qmp_error_is_reported_in_one_short_line() {
    let long = "x".repeat(400);
    let answer = format!("{{\"error\": {{\"class\": \"e\", \"desc\": \"no\\n{long}\"}}}}\n");
    let (mut qmp, _player) = greeted(&[&answer]).await;
    let error = qmp.execute("cont", json!({})).await.unwrap_err();
    let expected = format!("QEMU cannot start a sandbox: no{}", "x".repeat(298));
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn an_invalid_qmp_greeting_ends_the_connection() {
    async fn check(said: String, expected: &str) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let player = tokio::spawn(play(theirs, said, Vec::new()));
        let error = QmpClient::greet(ours).await.unwrap_err();
        player.abort();
        assert_eq!(error.failure().detail, expected);
    }
    let says = "QEMU cannot start a sandbox: QMP protocol error:";
    check("{\"return\": {}}\n".to_owned(), &format!("{says} no greeting")).await;
    check("hello\n".to_owned(), &format!("{says} invalid JSON")).await;
    check("x".repeat(100_000), &format!("{says} line too long")).await;
}

#[tokio::test]
async fn a_file_descriptor_is_passed_over_qmp_with_its_name() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = theirs.into_std().unwrap();
    theirs.set_nonblocking(false).unwrap();
    // The greeting is handled manually, because the file is sent with bytes that must not be
    // buffered.
    let qemu = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut theirs = theirs;
        theirs.write_all(GREETING.as_bytes()).unwrap();
        for _ in 0..2 {
            let mut byte = [0];
            while byte != *b"\n" {
                theirs.read_exact(&mut byte).unwrap();
            }
            theirs.write_all(b"{\"return\": {}}\n").unwrap();
        }
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
        let mut words = [0; 200];
        let mut slices = [std::io::IoSliceMut::new(&mut words)];
        let flags = rustix::net::RecvFlags::empty();
        let bytes = rustix::net::recvmsg(&theirs, &mut slices, &mut control, flags).unwrap().bytes;
        theirs.write_all(b"{\"return\": {}}\n").unwrap();
        let mut text = String::new();
        for message in control.drain() {
            if let rustix::net::RecvAncillaryMessage::ScmRights(files) = message {
                for file in files {
                    std::fs::File::from(file).read_to_string(&mut text).unwrap();
                }
            }
        }
        (serde_json::from_slice::<Value>(&words[..bytes]).unwrap(), text)
    });
    let mut qmp = QmpClient::greet(ours).await.unwrap();
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, b"state").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    qmp.send_file("state", file.as_fd()).await.unwrap();
    let expected = json!({ "execute": "getfd", "arguments": { "fdname": "state" } });
    assert_eq!(qemu.join().unwrap(), (expected, "state".to_owned()));
}
