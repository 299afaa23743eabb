use std::collections::BTreeMap;

use moothall_core::guest::ExitCause;
use moothall_core::sandbox::SandboxLimits;

use super::*;
use crate::fake_engine::FakeAgent;

fn request(wall_ms: u64, output_bytes: u64) -> GuestRunRequest {
    GuestRunRequest {
        argv: vec!["python3".to_owned()],
        env: BTreeMap::new(),
        limits: SandboxLimits { wall_ms, output_bytes, ..SandboxLimits::default() },
    }
}

fn ended() -> ProgramExit {
    ProgramExit {
        way: ExitCause::Exited(0),
        stdout_truncated: false,
        stderr_truncated: false,
        left_running: 0,
    }
}

async fn run_against<F: Future<Output = ()> + Send + 'static>(
    agent: impl FnOnce(FakeAgent) -> F,
    request: GuestRunRequest,
) -> SessionRun {
    let (mut session, fake) = FakeAgent::pair();
    let task = tokio::spawn(agent(fake));
    let ran = session.run(request, b"", None).await;
    task.abort();
    ran
}

fn problem(ran: &SessionRun) -> String {
    match &ran.end {
        SessionRunEnd::Broken(error) => error.failure().detail,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn program_output_is_streamed_to_the_listener_and_kept() {
    struct Heard(Vec<u8>, Vec<u8>);
    impl OutputListener for Heard {
        fn stdout(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn stderr(&mut self, bytes: &[u8]) {
            self.1.extend_from_slice(bytes);
        }
    }
    let (mut session, mut agent) = FakeAgent::pair();
    let task = tokio::spawn(async move {
        agent.receive_until(&HostMessage::End).await;
        agent.data(GuestStream::Stdout, b"out ").await;
        agent.data(GuestStream::Stderr, b"err").await;
        agent.data(GuestStream::Stdout, b"more").await;
        agent.send(&GuestMessage::Ended(ended())).await;
    });
    let mut heard = Heard(Vec::new(), Vec::new());
    let ran = session.run(request(1000, 100), b"input", Some(&mut heard)).await;
    task.await.unwrap();
    assert!(matches!(ran.end, SessionRunEnd::Reported(told) if told == ended()));
    assert_eq!((&*ran.stdout, &*ran.stderr), (&b"out more"[..], &b"err"[..]));
    assert_eq!((heard.0, heard.1), (ran.stdout, ran.stderr));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_answers_times_out() {
    let silent = |mut agent: FakeAgent| async move {
        agent.data(GuestStream::Stdout, b"so far").await;
        std::future::pending::<()>().await;
    };
    let began = Instant::now();
    let ran = run_against(silent, request(5_000, 100)).await;
    assert!(matches!(ran.end, SessionRunEnd::TimedOut));
    assert_eq!(ran.stdout, b"so far");
    assert_eq!(began.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_read_times_out() {
    let (mut session, agent) = FakeAgent::pair();
    let stdin = vec![b'x'; 4 << 20];
    let ran = session.run(request(1_000, 100), &stdin, None).await;
    assert!(matches!(ran.end, SessionRunEnd::TimedOut));
    drop(agent);
}

#[tokio::test]
async fn a_disconnected_agent_is_a_lost_session() {
    let gone = |mut agent: FakeAgent| async move {
        agent.data(GuestStream::Stdout, b"last").await;
    };
    let ran = run_against(gone, request(5_000, 100)).await;
    assert_eq!(problem(&ran), "lost contact with the guest agent: unexpected end of file");
    assert_eq!(ran.stdout, b"last");
}

#[tokio::test]
async fn an_agent_that_exceeds_the_output_limit_ends_the_session() {
    let flood = |mut agent: FakeAgent| async move {
        loop {
            agent.data(GuestStream::Stdout, &[b'x'; 60_000]).await;
        }
    };
    let ran = run_against(flood, request(5_000, 1_000)).await;
    assert_eq!(
        problem(&ran),
        "the guest agent violated the protocol: it sends more output than the limit"
    );
    assert_eq!((ran.stdout.len(), ran.stdout_truncated), (1_000, true));
}

#[tokio::test]
async fn invalid_frames_from_the_agent_end_the_session() {
    let cases: [(&[u8], &str); 5] = [
        (&[0xff; 8], "invalid frame length: 4294967295 bytes"),
        (&[0, 0, 0, 0], "invalid frame length: 0 bytes"),
        (&[0, 0, 0, 2, b'z', b'!'], "unknown frame kind 0x7a"),
        (&[0, 0, 0, 3, b'j', b'{', b'}'], "invalid message: missing field `from_guest`"),
        (&[0, 0, 0, 2, b'f', b'x'], "it sends unexpected data"),
    ];
    for (bytes, expected) in cases {
        let agent = move |mut agent: FakeAgent| async move {
            agent.bytes(bytes).await;
            std::future::pending::<()>().await;
        };
        let ran = run_against(agent, request(5_000, 1_000)).await;
        let problem = problem(&ran);
        assert!(problem.contains(expected), "{problem}");
    }
}

#[tokio::test]
async fn a_duplicate_reply_is_not_taken_for_the_next_one() {
    let (mut session, mut agent) = FakeAgent::pair();
    agent.ready().await;
    agent.ready().await;
    session.ready(Duration::from_secs(1)).await.unwrap();
    let error = session.reseed([0; 32], 0).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the guest agent violated the protocol: it sends an unexpected `ready` message"
    );
}

#[tokio::test]
async fn an_agent_with_another_protocol_version_is_refused() {
    let (mut session, mut agent) = FakeAgent::pair();
    agent.send(&GuestMessage::Ready { protocol: 99 }).await;
    let error = session.ready(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the guest agent violated the protocol: it uses protocol version 99, but this program uses 2"
    );
}

#[tokio::test]
async fn a_file_larger_than_requested_is_refused() {
    let (mut session, mut agent) = FakeAgent::pair();
    let task = tokio::spawn(async move {
        agent.receive().await;
        agent.data(GuestStream::File, b"123456").await;
        agent.send(&GuestMessage::End).await;
        agent.receive().await
    });
    let error = session.get(&"out/a".parse().unwrap(), 5).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the guest agent violated the protocol: it sends more of a file than requested"
    );
    drop(session);
    task.await.unwrap();
}

#[tokio::test]
async fn a_listing_longer_than_requested_is_refused() {
    let (mut session, mut agent) = FakeAgent::pair();
    let file = |name: &str| GuestFile { path: name.parse().unwrap(), bytes: 1 };
    let files = vec![file("a"), file("b")];
    agent.send(&GuestMessage::Listing { files, others: Vec::new() }).await;
    let error = session.list("out".parse().ok().as_ref(), 1).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the guest agent violated the protocol: it lists more files than requested"
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_reply_of_the_agent_counts_as_a_timeout() {
    let late = |mut agent: FakeAgent| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        agent.send(&GuestMessage::Ended(ended())).await;
        std::future::pending::<()>().await;
    };
    let ran = run_against(late, request(5_000, 100)).await;
    assert!(matches!(ran.end, SessionRunEnd::TimedOut));

    let (mut session, mut agent) = FakeAgent::pair();
    let task = tokio::spawn(async move {
        tokio::time::sleep(EXCHANGE_TIMEOUT * 2).await;
        agent.send(&GuestMessage::Done).await;
    });
    let error = session.reseed([0; 32], 0).await.unwrap_err();
    assert_eq!(error.to_string(), "the guest agent's reply was not ready after 20s");
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_frame_times_out() {
    let half = |mut agent: FakeAgent| async move {
        agent.bytes(&[0, 0, 0xff, 0xff, b'1', b'x']).await;
        std::future::pending::<()>().await;
    };
    let ran = run_against(half, request(5_000, 100)).await;
    assert!(matches!(ran.end, SessionRunEnd::TimedOut));
    assert_eq!(ran.stdout, b"");
}

#[tokio::test]
async fn an_end_message_that_arrives_byte_by_byte_is_accepted() {
    let dripping = |mut agent: FakeAgent| async move {
        let mut frames = Vec::new();
        write_data(&mut frames, GuestStream::Stdout, b"out");
        write_message(&mut frames, &GuestMessage::Ended(ended())).unwrap();
        for byte in frames {
            agent.bytes(&[byte]).await;
        }
        std::future::pending::<()>().await;
    };
    let ran = run_against(dripping, request(5_000, 100)).await;
    assert!(matches!(ran.end, SessionRunEnd::Reported(told) if told == ended()));
    assert_eq!(ran.stdout, b"out");
}

#[tokio::test]
async fn messages_after_the_end_message_are_a_protocol_error() {
    let mut end = Vec::new();
    write_message(&mut end, &GuestMessage::Ended(ended())).unwrap();
    let mut more = Vec::new();
    write_data(&mut more, GuestStream::Stdout, b"more");
    let cases =
        [(&end, "it sends an unexpected `ended` message"), (&more, "it sends unexpected data")];
    for (after, expected) in cases {
        let (mut session, mut agent) = FakeAgent::pair();
        agent.bytes(&[end.as_slice(), after].concat()).await;
        let ran = session.run(request(5_000, 100), b"", None).await;
        assert!(matches!(ran.end, SessionRunEnd::Reported(_)));
        let error = session.list("out".parse().ok().as_ref(), 1).await.unwrap_err();
        let expected = format!("the guest agent violated the protocol: {expected}");
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_transfer_that_never_ends_times_out() {
    let (mut session, mut agent) = FakeAgent::pair();
    let task = tokio::spawn(async move {
        loop {
            agent.data(GuestStream::File, b"x").await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    });
    let began = Instant::now();
    let error = session.get(&"out/a".parse().unwrap(), 1_000).await.unwrap_err();
    assert_eq!(error.to_string(), "the guest agent's reply was not ready after 20s");
    assert_eq!(began.elapsed(), EXCHANGE_TIMEOUT);
    task.abort();
}

#[tokio::test]
async fn a_listing_with_an_unsafe_path_is_refused() {
    for path in ["../etc/passwd", "/etc/passwd", "a//b", "a/./b", "line\\nend", ""] {
        let (mut session, mut agent) = FakeAgent::pair();
        let listing = format!(
            r#"j{{"from_guest":"listing","files":[{{"path":"{path}","bytes":1}}],"others":[]}}"#
        );
        agent.bytes(&u32::try_from(listing.len()).unwrap().to_be_bytes()).await;
        agent.bytes(listing.as_bytes()).await;
        let error = session.list("out".parse().ok().as_ref(), 10).await.unwrap_err();
        let problem = error.failure().detail;
        assert!(problem.contains("expected a short relative path"), "{path}: {problem}");
    }
}

#[tokio::test]
async fn error_messages_of_the_agent_are_truncated_and_sanitized() {
    let (mut session, mut agent) = FakeAgent::pair();
    let why = format!("\x1b[2J\n{}", "x".repeat(100_000));
    agent.send(&GuestMessage::Refused { why }).await;
    let error = session.reseed([0; 32], 0).await.unwrap_err();
    let problem = error.failure().detail;
    assert!(problem.len() < 400 && !problem.contains(char::is_control), "{problem}");
}

/// Regression: unread program input was cut off in the middle of a frame, and the next request was
/// taken as input.
#[tokio::test]
async fn unread_input_does_not_corrupt_the_next_request() {
    let (mut session, mut agent) = FakeAgent::pair();
    let stdin = vec![b'x'; 8 << 20];
    let task = tokio::spawn(async move {
        // The agent reports the end before it has read more than the pipe holds.
        agent.receive().await;
        agent.send(&GuestMessage::Ended(ended())).await;
        agent.receive_until(&HostMessage::End).await;
        let asked = agent.receive().await;
        agent.send(&GuestMessage::Listing { files: Vec::new(), others: Vec::new() }).await;
        asked
    });
    let ran = session.run(request(5_000, 100), &stdin, None).await;
    assert!(matches!(ran.end, SessionRunEnd::Reported(_)));
    let folder: Option<GuestPath> = "out".parse().ok();
    assert_eq!(session.list(folder.as_ref(), 1).await.unwrap(), (Vec::new(), Vec::new()));
    let asked = GuestFrame::Message(HostMessage::List { folder, most: 1 });
    assert_eq!(task.await.unwrap(), Some(asked));
}

/// Regression: a late step was taken as the reply to the next result.
#[tokio::test(start_paused = true)]
async fn no_request_is_sent_after_an_interrupted_exchange() {
    let (mut session, mut agent) = FakeAgent::pair();
    let late = session.reseed([0; 32], 0).await.unwrap_err();
    assert_eq!(late.to_string(), "the guest agent's reply was not ready after 20s");
    agent.send(&GuestMessage::Done).await;
    assert!(session.unfinished);
    let error = session.reseed([1; 32], 0).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the guest agent violated the protocol: a previous exchange was interrupted"
    );
}
