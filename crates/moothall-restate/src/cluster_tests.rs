use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A node that sends this response to every request; it hangs up if the response is empty.
async fn node(says: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(says.as_bytes()).await;
        }
    });
    url
}

/// An address that no process listens on.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const UNKNOWN: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

async fn started(urls: &[String]) -> Result<(), ClusterError> {
    let run_id = "01932b5c-7d4e-7a31-9c55-3f6f0e8a4b17".parse().unwrap();
    RestateIngress::new(&urls.join(",")).unwrap().start(RestateService::Consultation, &run_id).await
}

#[tokio::test]
async fn a_node_that_is_gone_or_hangs_up_is_no_reason_to_give_up() {
    started(&[nobody().await, node("").await, node(ACCEPTED).await]).await.unwrap();
}

#[tokio::test]
async fn only_a_request_that_no_node_can_have_heard_is_surely_not_done() {
    let gone = started(&[nobody().await, nobody().await]).await.unwrap_err();
    assert!(gone.nothing_happened(), "{gone:?}");
    let refused = started(&[node(UNKNOWN).await]).await.unwrap_err();
    assert!(refused.nothing_happened(), "{refused:?}");
    let broken_off = started(&[nobody().await, node("").await]).await.unwrap_err();
    assert!(!broken_off.nothing_happened(), "{broken_off:?}");
}
