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
async fn the_next_node_is_tried_if_one_is_down_or_disconnects() {
    started(&[nobody().await, node("").await, node(ACCEPTED).await]).await.unwrap();
}

#[tokio::test]
async fn a_start_request_surely_failed_only_if_no_node_received_it() {
    let gone = started(&[nobody().await, nobody().await]).await.unwrap_err();
    assert!(gone.had_no_effect(), "{gone:?}");
    let refused = started(&[node(UNKNOWN).await]).await.unwrap_err();
    assert!(refused.had_no_effect(), "{refused:?}");
    let broken_off = started(&[nobody().await, node("").await]).await.unwrap_err();
    assert!(!broken_off.had_no_effect(), "{broken_off:?}");
}
