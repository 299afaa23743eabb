use super::*;

/// The response of the server to these bytes.
async fn said(recording: FilingRecording, request: &[u8]) -> String {
    let server = RecordingServer::start(recording).await.unwrap();
    let address = server.base().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    // The server may close the connection while we are still sending.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn status(recording: FilingRecording, request: &str) -> String {
    let answer = said(recording, request.as_bytes()).await;
    answer.lines().next().unwrap_or_default().to_owned()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

#[tokio::test]
async fn the_recording_server_returns_the_recorded_file() {
    let answer =
        said(FilingRecording::Bundled, get("/files/company_tickers.json").as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
    assert!(body.contains("HLXI"), "{body}");
}

#[tokio::test]
async fn the_recording_server_answers_only_known_paths_and_methods() {
    let missing = "HTTP/1.1 404 Not Found";
    for path in ["/", "/submissions/CIK0000320193.json", "/files/../Cargo.toml", "/etc/passwd"] {
        assert_eq!(status(FilingRecording::Bundled, &get(path)).await, missing, "{path}");
    }
    let post = "POST /files/company_tickers.json HTTP/1.1\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(status(FilingRecording::Bundled, post).await, "HTTP/1.1 405 Method Not Allowed");
    let broken = "HTTP/1.1 400 Bad Request";
    assert_eq!(status(FilingRecording::Bundled, "\u{0}\r\n\r\n").await, broken);
    assert_eq!(status(FilingRecording::Bundled, "GET /").await, broken);
    let long = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(20_000));
    assert_eq!(status(FilingRecording::Bundled, &long).await, broken);
}

#[tokio::test]
async fn the_recording_server_does_not_follow_links_out_of_the_directory() {
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("secret"), "secret").unwrap();
    for inner in ["companyfacts", "reference", "real"] {
        fs_err::create_dir(folder.path().join(inner)).unwrap();
    }
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
    };
    link(&outside.path().join("secret"), "reference/company_tickers.json");
    link(outside.path(), "submissions");
    fs_err::write(folder.path().join("real/tickers"), "{}").unwrap();
    link(&folder.path().join("real/tickers"), "reference/company_tickers_exchange.json");
    let recording = || FilingRecording::in_folder(folder.path()).unwrap();
    let missing = "HTTP/1.1 404 Not Found";
    fs_err::write(outside.path().join("CIK0000000001.json"), "secret").unwrap();
    for path in ["/files/company_tickers.json", "/submissions/CIK0000000001.json"] {
        assert_eq!(status(recording(), &get(path)).await, missing, "{path}");
    }
    let inside = status(recording(), &get("/files/company_tickers_exchange.json")).await;
    assert_eq!(inside, "HTTP/1.1 200 OK");
}

#[test]
fn a_directory_without_a_recording_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let refused = FilingRecording::in_folder(folder.path()).unwrap_err();
    assert!(refused.message.ends_with(" is not a recording of filings") && refused.hint.is_some());
    assert!(FilingRecording::in_folder(&folder.path().join("missing")).is_err());
}
