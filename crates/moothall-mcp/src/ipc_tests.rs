use std::io::Write as _;
use std::os::unix::net::UnixStream;

use serde_json::json;

use super::{IpcClient, IpcRequest, IpcResponse, answer_all, wait_until_ready};

fn echo(ask: IpcRequest) -> IpcResponse {
    match ask {
        IpcRequest::Diff { draft } => IpcResponse::done(&draft),
        _ => IpcResponse::Broken { words: "not asked here".to_owned() },
    }
}

#[tokio::test]
async fn ipc_responses_reach_their_requests_in_any_order() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    // The first request is answered only after the second has arrived, so the answers are out of
    // order.
    let (quick_came, quick) = std::sync::mpsc::channel();
    let quick = std::sync::Mutex::new(quick);
    let answer = move |ask: IpcRequest| {
        match &ask {
            IpcRequest::Diff { draft } if draft == "slow" => quick.lock().unwrap().recv().unwrap(),
            IpcRequest::Diff { draft } if draft == "quick" => quick_came.send(()).unwrap(),
            _ => {}
        }
        echo(ask)
    };
    let answering = std::thread::spawn(move || answer_all(theirs, 4, answer, || {}));
    assert!(wait_until_ready(&mut ours).unwrap());
    let link = IpcClient::open(ours).unwrap();
    let ask = |draft: &str| {
        let (link, draft) = (link.clone(), draft.to_owned());
        async move { link.ask(&IpcRequest::Diff { draft }).await.unwrap() }
    };
    let long = "x".repeat(1 << 20);
    let (slow, quick, large) = tokio::join!(ask("slow"), ask("quick"), ask(&long));
    assert_eq!(slow, IpcResponse::done(&"slow"));
    assert_eq!(quick, IpcResponse::done(&"quick"));
    assert_eq!(large, IpcResponse::done(&json!(long)));
    drop(link);
    tokio::task::spawn_blocking(move || answering.join().unwrap().unwrap()).await.unwrap();
}

#[test]
fn an_invalid_ipc_frame_closes_the_connection() {
    for bytes in [&u32::MAX.to_be_bytes()[..], b"\0\0\0\x02{}", b"\0\0\0\x04null"] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let answering = std::thread::spawn(move || answer_all(theirs, 1, echo, || {}));
        assert!(wait_until_ready(&mut ours).unwrap());
        ours.write_all(bytes).unwrap();
        assert!(answering.join().unwrap().is_err());
    }
}

#[tokio::test]
async fn an_ipc_request_to_a_closed_peer_fails() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let ending = std::thread::spawn(move || drop(theirs));
    ending.join().unwrap();
    assert!(!wait_until_ready(&mut ours).unwrap());
    let link = IpcClient::open(ours).unwrap();
    link.disconnected().await;
    assert!(link.ask(&IpcRequest::Drafts).await.is_err());
}
