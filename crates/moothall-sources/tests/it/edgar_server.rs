//! A loopback server that gives scripted responses and records the requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The response to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Status, additional headers and body.
    Whole(u16, &'static [(&'static str, &'static str)], Vec<u8>),
    /// A body shorter than its announced length.
    Cut { announced: usize, body: Vec<u8> },
    /// A body of this size without an announced length.
    Endless { bytes: usize },
    /// The connection stays open without a response.
    Silence,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::Whole(200, &[], body.into())
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Whole(status, &[], b"no".to_vec())
    }
}

/// The path and `User-Agent` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) agent: String,
}

type Handler = dyn Fn(&str, usize) -> Answer + Send + Sync;

/// A running server. Stops with the test.
pub(crate) struct EdgarServer {
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for EdgarServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EdgarServer {
    /// Responds with `handler(path, n)` to the n-th request of a path, counted from 0.
    pub(crate) async fn start(
        handler: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (handler, log): (Arc<Handler>, _) = (Arc::new(handler), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&handler), Arc::clone(&log)));
            }
        });
        Self { base, asked, task }
    }

    /// Gives these responses in order, for any path; the last one repeats.
    pub(crate) async fn scripted(answers: Vec<Answer>) -> Self {
        Self::start(move |_, time| answers[time.min(answers.len() - 1)].clone()).await
    }

    /// Serves the files of a recording, with some responses replaced.
    pub(crate) async fn recording(
        folder: PathBuf,
        instead: BTreeMap<&'static str, Answer>,
    ) -> Self {
        Self::start(move |path, _| match instead.get(path) {
            Some(answer) => answer.clone(),
            None => match fs_err::read(recorded(&folder, path)) {
                Ok(bytes) => Answer::ok(bytes),
                Err(_) => Answer::status(404),
            },
        })
        .await
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn recorded(folder: &Path, path: &str) -> PathBuf {
    let (prefix, inner) = [
        ("/files/", "reference"),
        ("/submissions/", "submissions"),
        ("/api/xbrl/companyfacts/", "companyfacts"),
        ("/Archives/edgar/data/", "archives"),
    ]
    .into_iter()
    .find(|(prefix, _)| path.starts_with(prefix))
    .unwrap_or((path, "nothing"));
    folder.join(inner).join(&path[prefix.len()..])
}

async fn serve(mut stream: TcpStream, handler: Arc<Handler>, log: Arc<Mutex<Vec<Asked>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let agent = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("user-agent"))
        .map_or(String::new(), |(_, value)| value.to_owned());
    let time = {
        let mut log = log.lock().unwrap();
        let time = log.iter().filter(|asked| asked.path == path).count();
        log.push(Asked { path: path.clone(), agent });
        time
    };
    let (head, body) = match handler(&path, time) {
        Answer::Whole(status, headers, body) => {
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            (format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n", body.len()), body)
        }
        Answer::Cut { announced, body } => {
            (format!("HTTP/1.1 200 X\r\ncontent-length: {announced}\r\n"), body)
        }
        Answer::Endless { bytes } => ("HTTP/1.1 200 X\r\n".to_owned(), vec![b' '; bytes]),
        Answer::Silence => return std::future::pending().await,
    };
    let head = format!("{head}connection: close\r\n\r\n");
    // The client may close the connection early.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body).await;
    let _ = stream.shutdown().await;
}
