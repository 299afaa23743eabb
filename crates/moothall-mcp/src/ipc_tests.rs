use std::io::Write as _;
use std::os::unix::net::UnixStream;

use serde_json::json;

use super::{Answer, Ask, Link, answer_all, wait_until_ready};

fn echo(ask: Ask) -> Answer {
    match ask {
        Ask::Diff { draft } => Answer::done(&draft),
        _ => Answer::Broken { words: "not asked here".to_owned() },
    }
}

#[tokio::test]
async fn answers_find_who_asked_whatever_their_order() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    // The first is answered when the second was asked for: answers come in another order.
    let (quick_came, quick) = std::sync::mpsc::channel();
    let quick = std::sync::Mutex::new(quick);
    let answer = move |ask: Ask| {
        match &ask {
            Ask::Diff { draft } if draft == "slow" => quick.lock().unwrap().recv().unwrap(),
            Ask::Diff { draft } if draft == "quick" => quick_came.send(()).unwrap(),
            _ => {}
        }
        echo(ask)
    };
    let answering = std::thread::spawn(move || answer_all(theirs, 4, answer, || {}));
    assert!(wait_until_ready(&mut ours).unwrap());
    let link = Link::open(ours).unwrap();
    let ask = |draft: &str| {
        let (link, draft) = (link.clone(), draft.to_owned());
        async move { link.ask(&Ask::Diff { draft }).await.unwrap() }
    };
    let long = "x".repeat(1 << 20);
    let (slow, quick, large) = tokio::join!(ask("slow"), ask("quick"), ask(&long));
    assert_eq!(slow, Answer::done(&"slow"));
    assert_eq!(quick, Answer::done(&"quick"));
    assert_eq!(large, Answer::done(&json!(long)));
    drop(link);
    tokio::task::spawn_blocking(move || answering.join().unwrap().unwrap()).await.unwrap();
}

#[test]
fn a_frame_that_is_too_long_or_no_question_ends_the_link() {
    for bytes in [&u32::MAX.to_be_bytes()[..], b"\0\0\0\x02{}", b"\0\0\0\x04null"] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let answering = std::thread::spawn(move || answer_all(theirs, 1, echo, || {}));
        assert!(wait_until_ready(&mut ours).unwrap());
        ours.write_all(bytes).unwrap();
        assert!(answering.join().unwrap().is_err());
    }
}

#[tokio::test]
async fn whoever_asks_one_that_is_gone_is_told_so() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let ending = std::thread::spawn(move || drop(theirs));
    ending.join().unwrap();
    assert!(!wait_until_ready(&mut ours).unwrap());
    let link = Link::open(ours).unwrap();
    link.lost().await;
    assert!(link.ask(&Ask::Drafts).await.is_err());
}
