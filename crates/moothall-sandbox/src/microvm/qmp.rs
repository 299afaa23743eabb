//! A QMP client with the few commands that are needed here.
//!
//! A guest that compromised QEMU controls this connection, so lines are bounded and every exchange
//! has a deadline.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::SandboxError;

/// Time limit for one command. The slowest part is starting QEMU on a busy host.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum line length. QEMU's greeting has 100 bytes.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Maximum number of messages read while waiting for one reply.
const MAX_MESSAGES: u32 = 1_000;

/// An established QMP connection.
#[derive(Debug)]
pub(crate) struct QmpClient {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// Last reported migration status.
    migration: Option<String>,
}

/// One message from QEMU.
#[derive(Debug, Deserialize)]
struct QmpMessage {
    #[serde(rename = "QMP")]
    greeting: Option<Value>,
    #[serde(rename = "return")]
    answer: Option<Value>,
    error: Option<QmpError>,
    event: Option<String>,
    data: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct QmpError {
    desc: String,
}

impl QmpClient {
    /// Waits for QEMU's greeting and negotiates capabilities.
    pub(crate) async fn greet(stream: UnixStream) -> Result<Self, SandboxError> {
        let mut qmp = Self { stream, buffer: Vec::new(), migration: None };
        let greeting = async {
            match qmp.read_message().await? {
                QmpMessage { greeting: Some(_), .. } => Ok(()),
                _ => Err(protocol_error("no greeting")),
            }
        };
        timeout(COMMAND_TIMEOUT, greeting).await.map_err(|_| timed_out())??;
        qmp.execute("qmp_capabilities", json!({})).await?;
        // Memory that is shared with a template is left out of its state.
        let capabilities = ["x-ignore-shared", "events"]
            .map(|capability| json!({ "capability": capability, "state": true }));
        qmp.execute("migrate-set-capabilities", json!({ "capabilities": capabilities })).await?;
        Ok(qmp)
    }

    /// Sends a command and waits for its reply.
    pub(crate) async fn execute(
        &mut self,
        command: &str,
        arguments: Value,
    ) -> Result<Value, SandboxError> {
        let command = encode_command(command, arguments);
        let exchange = async {
            self.stream.write_all(command.as_bytes()).await.map_err(SandboxError::Lost)?;
            self.read_reply().await
        };
        timeout(COMMAND_TIMEOUT, exchange).await.map_err(|_| timed_out())?
    }

    /// Passes an open file to QEMU under a name.
    pub(crate) async fn send_file(
        &mut self,
        name: &str,
        file: BorrowedFd<'_>,
    ) -> Result<(), SandboxError> {
        let command = encode_command("getfd", json!({ "fdname": name }));
        let exchange = async {
            let sent = self
                .stream
                .async_io(Interest::WRITABLE, || send_with_file(&self.stream, &command, file))
                .await
                .map_err(SandboxError::Lost)?;
            // The file was sent with the first byte.
            let rest = command.as_bytes().get(sent..).unwrap_or_default();
            self.stream.write_all(rest).await.map_err(SandboxError::Lost)?;
            self.read_reply().await.map(|_| ())
        };
        timeout(COMMAND_TIMEOUT, exchange).await.map_err(|_| timed_out())?
    }

    /// Waits until the running migration has finished.
    pub(crate) async fn wait_for_migration(&mut self) -> Result<(), SandboxError> {
        let finished = async {
            for _ in 0..MAX_MESSAGES {
                match self.migration.as_deref() {
                    Some("completed") => return Ok(()),
                    Some(status @ ("failed" | "cancelled")) => {
                        return Err(SandboxError::Start {
                            engine: "QEMU".to_owned(),
                            problem: format!("migration of the template state {status}"),
                        });
                    }
                    _ => self.event().await?,
                }
            }
            Err(protocol_error("migration did not finish"))
        };
        timeout(COMMAND_TIMEOUT, finished).await.map_err(|_| timed_out())?
    }

    async fn event(&mut self) -> Result<(), SandboxError> {
        let line = self.read_message().await?;
        self.handle_message(line).map(|_| ())
    }

    async fn read_reply(&mut self) -> Result<Value, SandboxError> {
        for _ in 0..MAX_MESSAGES {
            let line = self.read_message().await?;
            if let Some(answer) = self.handle_message(line)? {
                return Ok(answer);
            }
        }
        Err(protocol_error("too many events"))
    }

    /// Handles a message: returns a reply, or records an event.
    fn handle_message(&mut self, line: QmpMessage) -> Result<Option<Value>, SandboxError> {
        if let Some(problem) = line.error {
            let problem = problem.desc.chars().filter(|c| !c.is_control()).take(300).collect();
            return Err(SandboxError::Start { engine: "QEMU".to_owned(), problem });
        }
        if line.event.as_deref() == Some("MIGRATION") {
            let status = line.data.as_ref().and_then(|data| data.get("status"));
            self.migration = status.and_then(Value::as_str).map(ToOwned::to_owned);
        }
        Ok(line.answer)
    }

    async fn read_message(&mut self) -> Result<QmpMessage, SandboxError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|_| protocol_error("invalid JSON"));
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(protocol_error("line too long"));
            }
            let read = self.stream.read_buf(&mut self.buffer).await.map_err(SandboxError::Lost)?;
            if read == 0 {
                return Err(SandboxError::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

fn encode_command(command: &str, arguments: Value) -> String {
    format!("{}\n", json!({ "execute": command, "arguments": arguments }))
}

fn send_with_file(stream: &UnixStream, command: &str, file: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let command = [IoSlice::new(command.as_bytes())];
    Ok(rustix::net::sendmsg(stream.as_fd(), &command, &mut control, SendFlags::NOSIGNAL)?)
}

fn timed_out() -> SandboxError {
    SandboxError::NotReady { what: "QEMU", waited: COMMAND_TIMEOUT }
}

fn protocol_error(what: &str) -> SandboxError {
    SandboxError::Start {
        engine: "QEMU".to_owned(),
        problem: format!("QMP protocol error: {what}"),
    }
}

#[cfg(test)]
#[path = "qmp_tests.rs"]
mod tests;
