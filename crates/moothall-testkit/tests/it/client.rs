//! A client that records everything it reads, however the connection ends.

use std::{io, time::Duration};

use moothall_testkit::{FakeProvider, ProviderProtocol};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Long enough for a busy machine, short enough to end a hanging test.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Unary,
    Streamed,
}

/// Every protocol in every mode.
pub(crate) fn every_way() -> impl Iterator<Item = (ProviderProtocol, Mode)> {
    ProviderProtocol::ALL.into_iter().flat_map(|wire| [(wire, Mode::Unary), (wire, Mode::Streamed)])
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

/// Whether the body matches the length that its head announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Whole,
    Cut,
}

/// Everything that the server sent.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) raw: Vec<u8>,
    pub(crate) end: End,
}

impl Answer {
    #[track_caller]
    fn split(&self) -> (&str, &[u8]) {
        let end = self.raw.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        (std::str::from_utf8(&self.raw[..end]).unwrap(), &self.raw[end..])
    }

    #[track_caller]
    pub(crate) fn status(&self) -> u16 {
        self.split().0.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.split().0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The decoded body.
    #[track_caller]
    pub(crate) fn body(&self) -> (String, Body) {
        let (_, mut rest) = self.split();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        if let Some(length) = self.header("content-length") {
            let length: usize = length.parse().unwrap();
            return (text(rest), if rest.len() == length { Body::Whole } else { Body::Cut });
        }
        assert_eq!(self.header("transfer-encoding"), Some("chunked"));
        let mut decoded = Vec::new();
        loop {
            let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else {
                return (text(&decoded), Body::Cut);
            };
            let size =
                usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            rest = &rest[line + 2..];
            if size == 0 {
                assert_eq!(rest, b"\r\n", "nothing follows the last chunk");
                return (text(&decoded), Body::Whole);
            }
            if rest.len() < size + 2 {
                decoded.extend_from_slice(rest);
                return (text(&decoded), Body::Cut);
            }
            decoded.extend_from_slice(&rest[..size]);
            rest = &rest[size + 2..];
        }
    }

    /// The body as one JSON value; panics if it is incomplete.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let (text, body) = self.body();
        assert_eq!(body, Body::Whole);
        serde_json::from_str(&text).unwrap()
    }

    /// The JSON of each complete event or line of a stream; `[DONE]` becomes a string.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let (text, _) = self.body();
        text.split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
            .map(|line| line.strip_prefix("data: ").unwrap_or(line))
            .filter(|line| !line.is_empty() && !line.starts_with("event: "))
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line)))
            .collect()
    }

    /// The text of all deltas, or of the unary response.
    #[track_caller]
    pub(crate) fn text(&self, wire: ProviderProtocol, mode: Mode) -> String {
        let events = match mode {
            Mode::Unary => vec![self.json()],
            Mode::Streamed => self.events(),
        };
        let piece = |event: &Value| {
            let pointers: &[&str] = match (wire, mode) {
                (ProviderProtocol::OpenAi, Mode::Unary) => {
                    &["/choices/0/message/content", "/choices/0/message/refusal"]
                }
                (ProviderProtocol::OpenAi, Mode::Streamed) => {
                    &["/choices/0/delta/content", "/choices/0/delta/refusal"]
                }
                (ProviderProtocol::Anthropic, Mode::Unary) => &["/content/0/text"],
                (ProviderProtocol::Anthropic, Mode::Streamed) => &["/delta/text"],
                (ProviderProtocol::Ollama, _) => &["/message/content"],
            };
            pointers.iter().find_map(|pointer| Some(event.pointer(pointer)?.as_str()?.to_owned()))
        };
        events.iter().filter_map(piece).collect()
    }
}

/// The body of a call.
pub(crate) fn question(wire: ProviderProtocol, mode: Mode) -> Value {
    let stream = mode == Mode::Streamed;
    let messages = json!([{"role": "user", "content": "What is the meaning of all this?"}]);
    match wire {
        ProviderProtocol::OpenAi if stream => {
            json!({"model": "m-1", "messages": messages, "stream": true, "stream_options": {"include_usage": true}})
        }
        ProviderProtocol::OpenAi | ProviderProtocol::Ollama => {
            json!({"model": "m-1", "messages": messages, "stream": stream})
        }
        ProviderProtocol::Anthropic => {
            json!({"model": "m-1", "system": "Be brief.", "messages": messages, "max_tokens": 64, "stream": stream})
        }
    }
}

/// The bytes of a request, with `connection: close` if it is the last on its connection.
pub(crate) fn request(path: &str, body: &str, last: bool) -> Vec<u8> {
    let connection = if last { "connection: close\r\n" } else { "" };
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: fake\r\n{connection}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn path(wire: ProviderProtocol) -> &'static str {
    match wire {
        ProviderProtocol::OpenAi => "/v1/chat/completions",
        ProviderProtocol::Anthropic => "/v1/messages",
        ProviderProtocol::Ollama => "/api/chat",
    }
}

/// Sends bytes on a new connection and reads until it ends.
pub(crate) async fn send(server: &FakeProvider, bytes: &[u8]) -> Answer {
    let exchange = async {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut raw = Vec::new();
        let end = match stream.read_to_end(&mut raw).await {
            Ok(_) => End::Closed,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => End::Reset,
            Err(error) => panic!("{error}"),
        };
        Answer { raw, end }
    };
    tokio::time::timeout(PATIENCE, exchange).await.expect("an answer in time")
}

/// Makes one call on a new connection.
pub(crate) async fn ask(server: &FakeProvider, wire: ProviderProtocol, mode: Mode) -> Answer {
    send(server, &request(path(wire), &question(wire, mode).to_string(), true)).await
}

/// Makes one call to a new server with this behaviour.
pub(crate) async fn ask_once(
    behaviour: impl Into<moothall_testkit::ProviderBehaviour>,
    wire: ProviderProtocol,
    mode: Mode,
) -> (Answer, moothall_testkit::ProviderStats) {
    let server = FakeProvider::start().await.unwrap();
    server.always(behaviour);
    let answer = ask(&server, wire, mode).await;
    (answer, server.stats())
}

/// Waits for a condition that another task makes true.
pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it happened in time");
}
