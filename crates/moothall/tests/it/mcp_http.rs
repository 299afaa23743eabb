//! `moothall mcp` over HTTP. Numbers refer to the attacks in the specification.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::{PATIENCE, world};
use crate::world::{World, set_mode};

/// A listening server and its token.
struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(world: &World) -> Self {
        let arguments =
            ["mcp", "--workspace", "ws", "--http", "127.0.0.1:0", "--token-file", "token"];
        let mut child = world.command(&arguments).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let token = world.read("token").trim().to_owned();
        Self { child, address: address.to_owned(), token }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The headers of a well-behaved client.
    fn headers(&self, method: &str, name: Option<&str>) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = [
            ("host", self.address.as_str()),
            ("authorization", &format!("Bearer {}", self.token)),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("connection", "close"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        headers.extend(name.map(|name| ("mcp-name".to_owned(), name.to_owned())));
        headers
    }

    /// Sends a request; returns the status and the complete response.
    fn post(&self, headers: &[(String, String)], body: &[u8]) -> (u16, String) {
        let mut stream = self.connect();
        stream.write_all(&head(headers, body.len())).unwrap();
        // The server may close the connection before the whole body is sent.
        let _ = stream.write_all(body);
        answer(stream)
    }

    /// Calls a tool like a client of the modern era.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let headers = self.headers("tools/call", Some(tool));
        let (status, text) = self.post(&headers, call(tool, arguments).as_bytes());
        assert_eq!(status, 200, "{text}");
        message(&text)["result"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn head(headers: &[(String, String)], length: usize) -> Vec<u8> {
    let mut head = String::from("POST /mcp HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {length}\r\n\r\n"));
    head.into_bytes()
}

fn answer(mut stream: impl std::io::Read) -> (u16, String) {
    let mut bytes = Vec::new();
    // A connection reset after the response is not an error.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), text)
}

/// The last message of a response, either an event stream or one JSON value.
fn message(text: &str) -> Value {
    let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.rfind(Value::is_object).unwrap_or_else(|| panic!("{text}"))
}

fn call(tool: &str, arguments: &Value) -> String {
    request("tools/call", &json!({ "name": tool, "arguments": arguments }))
}

fn request(method: &str, params: &Value) -> String {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn with(headers: &[(String, String)], name: &str, value: Option<&str>) -> Vec<(String, String)> {
    let mut all: Vec<_> = headers.iter().filter(|(known, _)| known != name).cloned().collect();
    all.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    all
}

/// 85 to 91.
#[test]
fn mcp_over_http_requires_the_token_and_refuses_web_pages() {
    let world = world();
    let server = Server::start(&world);
    let mode = fs_err::metadata(world.path("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let good = server.headers("tools/list", None);
    let list = request("tools/list", &json!({}));
    let list = list.as_bytes();
    let (status, text) = server.post(&good, list);
    assert_eq!((status, message(&text)["result"]["tools"].as_array().unwrap().len()), (200, 10));

    let status = |headers: &[(String, String)], body: &[u8]| server.post(headers, body).0;
    // 85
    assert_eq!(status(&with(&good, "authorization", None), list), 401);
    for wrong in ["Bearer x", "Bearer ", "Basic eDp4", &server.token] {
        assert_eq!(status(&with(&good, "authorization", Some(wrong)), list), 401, "{wrong}");
    }
    // 86
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"] {
        assert_eq!(status(&with(&good, "origin", Some(origin)), list), 403, "{origin}");
    }
    // 87
    for host in ["evil.example", "127.0.0.1.evil.example:80", "localhost:1"] {
        assert_eq!(status(&with(&good, "host", Some(host)), list), 403, "{host}");
    }
    // 88
    assert_eq!(status(&with(&good, "mcp-method", Some("tools/call")), list), 400);
    let named = server.headers("tools/call", Some("draft_list"));
    assert_eq!(status(&named, call("draft_submit", &json!({})).as_bytes()), 400);
    // 89
    assert_eq!(status(&good, &vec![b' '; 9 << 20]), 413);
    // 90
    let deep = "[".repeat(100_000);
    assert!((400..500).contains(&status(&good, deep.as_bytes())));
    // 91
    let plain = with(&good, "content-type", Some("text/plain"));
    assert!((400..500).contains(&status(&plain, list)));
    // The server still works.
    assert_eq!(status(&good, list), 200);
}

/// 92: the server does not wait for an incomplete request, which has no effect.
#[test]
fn an_incomplete_mcp_request_is_not_waited_for() {
    let world = world();
    let server = Server::start(&world);
    let body = call("draft_request", &json!({ "source_path": "Makefile", "task_id": "slow" }));
    let headers = server.headers("tools/call", Some("draft_request"));
    let mut stream = server.connect();
    stream.write_all(&head(&headers, body.len())).unwrap();
    stream.write_all(&body.as_bytes()[..body.len() / 2]).unwrap();
    let begun = Instant::now();
    let (status, text) = answer(stream);
    assert_eq!(status, 408, "{text}");
    assert!(begun.elapsed() < PATIENCE);
    let listed = server.call("draft_list", &json!({}));
    assert_eq!(listed["structuredContent"]["drafts"], json!([]));
}

/// 93: a client that disconnects before its request is complete has no effect; a complete request
/// is carried out entirely.
#[test]
fn an_mcp_client_that_disconnects_leaves_nothing_half_done() {
    let world = world();
    let server = Server::start(&world);
    let asked = json!({ "source_path": "src/watchdog.py", "task_id": "t", });
    let draft = server.call("draft_request", &asked)["structuredContent"]["draft_id"].clone();
    let edit = json!({ "draft_id": draft, "old": "print(sys.argv)", "new": "print(1)" });
    server.call("draft_edit", &edit);
    let submit = json!({ "draft_id": draft, "change_summary": "x" });
    let headers = server.headers("tools/call", Some("draft_submit"));
    let body = call("draft_submit", &submit);

    let mut half = server.connect();
    half.write_all(&head(&headers, body.len())).unwrap();
    half.write_all(&body.as_bytes()[..body.len() - 1]).unwrap();
    drop(half);
    let status = server.call("draft_status", &json!({ "draft_id": draft }));
    assert_eq!(status["structuredContent"]["state"], "editing");

    let mut whole = server.connect();
    whole.write_all(&head(&headers, body.len())).unwrap();
    whole.write_all(body.as_bytes()).unwrap();
    drop(whole);
    let until = Instant::now() + PATIENCE;
    loop {
        let status = server.call("draft_status", &json!({ "draft_id": draft }));
        match status["structuredContent"]["state"].as_str().unwrap() {
            "applied" => break,
            // The server may notice the disconnect before it reads the request, or the request may
            // still be in progress. In the latter case this one is refused, and the state shows the
            // result of the first.
            "editing" if Instant::now() < until => {
                server.call("draft_submit", &submit);
            }
            "submitted" | "accepted" | "applying" if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => panic!("{other}"),
        }
    }
    assert!(world.read("ws/src/watchdog.py").contains("print(1)"));
    let verified = world.run(&["audit", "verify", "--workspace", "ws"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
}

#[test]
fn a_readable_token_file_or_a_public_mcp_address_is_refused() {
    let world = world();
    world.write("token", &"x".repeat(40));
    set_mode(&world.path("token"), 0o644);
    let flags = ["--http", "127.0.0.1:0", "--token-file", "token"];
    let ran = world.run(&[&["mcp", "--workspace", "ws"][..], &flags].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
    let ran = world.run(&["mcp", "--workspace", "ws", "--http", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn an_mcp_socket_is_private_and_can_be_reused_after_a_kill() {
    let world = world();
    for _ in 0..2 {
        let arguments = ["mcp", "--workspace", "ws", "--socket", "run/mcp.sock"];
        let mut child = world.command(&arguments).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let socket = world.path("run/mcp.sock");
        let mode = fs_err::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let body = request("tools/list", &json!({}));
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers = [
            ("host", "localhost"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/list"),
            ("connection", "close"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        stream.write_all(&head(&headers, body.len())).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let (status, text) = answer(stream);
        let tools = message(&text)["result"]["tools"].as_array().unwrap().len();
        assert_eq!((status, tools), (200, 10));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
