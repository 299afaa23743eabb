//! Connections without a request or with an incomplete one.

use std::time::{Duration, Instant};

use moothall_server::{ConnectionLimits, EventStreamOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::scene::{RUN, Scene};

const PATIENCE: Duration = Duration::from_secs(20);

async fn open(scene: &Scene, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&scene.address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    stream
}

/// Reads until the server closes the connection.
async fn read_all(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset closes a connection as well.
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes));
    let _ = read.await.expect("the server keeps the connection open");
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn get(scene: &Scene, path: &str) -> String {
    let address = &scene.address;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    read_all(open(scene, request.as_bytes()).await).await
}

/// Regression: a connection without a complete header stayed open as long as its client wanted.
#[tokio::test]
async fn connection_without_a_complete_header_is_closed_in_time() {
    let header_within = Duration::from_millis(300);
    let limits = ConnectionLimits { header_within, ..ConnectionLimits::default() };
    let scene = Scene::with_limits(EventStreamOptions::default(), limits).await;
    let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let silent: [&[u8]; 5] =
        [b"", b"P", b"GET / HT", b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n", http2];
    for sent in silent {
        let began = Instant::now();
        read_all(open(&scene, sent).await).await;
        assert!(began.elapsed() >= header_within, "{}", String::from_utf8_lossy(sent));
    }
    // A stream has sent its request and stays open.
    let stream = open(&scene, format!("GET /api/runs/{RUN}/events HTTP/1.1\r\n").as_bytes()).await;
    let mut stream = stream;
    let rest = format!("host: {}\r\n\r\n", scene.address);
    stream.write_all(rest.as_bytes()).await.unwrap();
    tokio::time::sleep(header_within * 2).await;
    scene.write(0..1, 1).await;
    scene.finish().await;
    let mut text = String::new();
    while !text.contains("run_finished") {
        let mut bytes = [0; 4096];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "the stream ends: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
}

#[tokio::test]
async fn half_open_connections_do_not_lock_out_other_clients() {
    let limits = ConnectionLimits { total: 8, waiting: 4, ..ConnectionLimits::default() };
    let scene = Scene::with_limits(EventStreamOptions::default(), limits).await;
    let mut half_open = Vec::new();
    for _ in 0..40 {
        half_open.push(open(&scene, b"GET / HTTP/1.1\r\nhost: ").await);
    }
    for _ in 0..12 {
        let answer = get(&scene, "/healthz").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The newest connections are still open; the others were closed.
    let mut open = 0;
    for stream in half_open {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(20), async {
            stream.readable().await.unwrap();
            stream.try_read(&mut byte)
        });
        open += usize::from(read.await.is_err());
    }
    assert!(open <= 4, "{open}");
}

#[tokio::test]
async fn shutdown_completes_responses_and_waits_for_no_half_open_connection() {
    let scene = Scene::new(EventStreamOptions::default()).await;
    let half = open(&scene, b"GET / HTTP/1.1\r\nhost: ").await;
    let silent = open(&scene, b"").await;
    let request = format!("GET /api/runs/{RUN}/events HTTP/1.1\r\nhost: {}\r\n\r\n", scene.address);
    let mut stream = open(&scene, request.as_bytes()).await;
    let mut text = String::new();
    while !text.contains("event: hello") {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    scene.closing.cancel();
    let rest = read_all(stream).await;
    assert!(rest.contains("event: bye"), "{rest}");
    tokio::time::timeout(Duration::from_secs(5), scene.served).await.unwrap().unwrap();
    drop((half, silent));
}
