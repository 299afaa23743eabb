use std::time::Duration;

use moothall_server::EventStreamOptions;
use reqwest::Client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scene::{RUN, Scene};

fn client() -> Client {
    // The connection is not encrypted, but the client requires a TLS provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().build().unwrap()
}

fn numbers(text: &str) -> Vec<u64> {
    text.lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_stream_reader_blocks_no_other_and_misses_no_event() {
    let scene = Scene::new(EventStreamOptions::default()).await;
    // More than fits into the socket buffers and the in-memory frames.
    scene.write(0..1_000, 400).await;
    let mut slow = TcpStream::connect(&scene.address).await.unwrap();
    let request = format!("GET /api/runs/{RUN}/events HTTP/1.0\r\nhost: {}\r\n\r\n", scene.address);
    slow.write_all(request.as_bytes()).await.unwrap();
    let quick = tokio::spawn(client().get(scene.events(0)).send());
    scene.write(1_000..6_000, 400).await;
    scene.finish().await;
    let text = tokio::time::timeout(Duration::from_secs(50), async {
        quick.await.unwrap().unwrap().text().await.unwrap()
    });
    let all: Vec<u64> = (1..=6_001).collect();
    assert_eq!(numbers(&text.await.expect("the quick reader is held up")), all);
    // The slow client reads long after the others, from the store.
    let mut late = Vec::new();
    slow.read_to_end(&mut late).await.unwrap();
    assert_eq!(numbers(&String::from_utf8(late).unwrap()), all);
}

#[tokio::test]
async fn a_stream_that_reaches_its_maximum_age_says_so_and_ends() {
    let max_age = Duration::from_millis(150);
    let scene = Scene::new(EventStreamOptions { max_age, ..EventStreamOptions::default() }).await;
    scene.write(0..3, 1).await;
    let text = client().get(scene.events(0)).send().await.unwrap().text().await.unwrap();
    assert_eq!(numbers(&text), [1, 2, 3]);
    assert!(text.ends_with("event: bye\ndata: {\"reason\":\"max_age\"}\n\n"), "{text}");
}

#[tokio::test]
async fn an_idle_stream_sends_heartbeats() {
    let heartbeat = Duration::from_millis(30);
    let scene = Scene::new(EventStreamOptions { heartbeat, ..EventStreamOptions::default() }).await;
    let mut stream = client().get(scene.events(0)).send().await.unwrap();
    let mut text = String::new();
    while text.matches(": hb\n\n").count() < 3 {
        let chunk = stream.chunk().await.unwrap().expect("the stream ends");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
}

#[tokio::test]
async fn server_that_ends_does_not_wait_for_open_streams() {
    let scene = Scene::new(EventStreamOptions::default()).await;
    scene.write(0..2, 1).await;
    let stream = client().get(scene.events(0)).send().await.unwrap();
    scene.closing.cancel();
    let text = stream.text().await.unwrap();
    assert!(text.ends_with("event: bye\ndata: {\"reason\":\"shutdown\"}\n\n"), "{text}");
    let ended = tokio::time::timeout(Duration::from_secs(5), scene.served).await;
    ended.expect("the server waits for somebody").unwrap();
}
