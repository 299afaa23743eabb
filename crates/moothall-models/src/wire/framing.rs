//! Cutting a byte stream into messages: lines, or the `data` of server-sent events.
//!
//! By hand because the crates for it work on async streams and hide where a limit belongs; this is
//! a page without I/O.

use moothall_core::model::{FailureKind, ModelFailure};

use super::MAX_BODY_BYTES;

#[derive(Debug)]
pub(super) struct Framing {
    kind: Kind,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were handed out already.
    taken: usize,
    /// Bytes of the buffer that are known to hold no line end.
    searched: usize,
}

#[derive(Debug)]
enum Kind {
    Lines,
    /// The `data` lines of the event that is not complete yet.
    ServerSentEvents {
        data: Option<Vec<u8>>,
    },
}

impl Framing {
    pub(super) fn lines() -> Self {
        Self::new(Kind::Lines)
    }

    pub(super) fn server_sent_events() -> Self {
        Self::new(Kind::ServerSentEvents { data: None })
    }

    fn new(kind: Kind) -> Self {
        Self { kind, buffer: Vec::new(), taken: 0, searched: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ModelFailure> {
        // What was handed out is dropped once per push, not once per line: a large chunk of small
        // lines stays linear.
        self.buffer.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        let pending = match &self.kind {
            Kind::ServerSentEvents { data: Some(data) } => data.len(),
            Kind::Lines | Kind::ServerSentEvents { data: None } => 0,
        };
        if self.buffer.len() + bytes.len() + pending > MAX_BODY_BYTES {
            return Err(ModelFailure::new(
                FailureKind::Malformed,
                "a line of the stream has no end",
            ));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next complete message, as bytes: whether they are text is for the JSON reader to say.
    pub(super) fn next_message(&mut self) -> Option<Vec<u8>> {
        loop {
            let line = self.next_line()?;
            match &mut self.kind {
                Kind::Lines if line.trim_ascii().is_empty() => {}
                Kind::Lines => return Some(line),
                Kind::ServerSentEvents { data } if line.is_empty() => {
                    // Some servers keep a connection alive with events that say nothing.
                    if let Some(data) = data.take().filter(|data| !data.trim_ascii().is_empty()) {
                        return Some(data);
                    }
                }
                Kind::ServerSentEvents { data } => {
                    // `event:`, `id:` and comment lines say nothing that the data does not say too.
                    if let Some(value) = line.strip_prefix(b"data:") {
                        let value = value.strip_prefix(b" ").unwrap_or(value);
                        match data {
                            Some(data) => {
                                data.push(b'\n');
                                data.extend_from_slice(value);
                            }
                            None => *data = Some(value.to_owned()),
                        }
                    }
                }
            }
        }
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let from = self.searched.max(self.taken);
        let Some(end) =
            self.buffer[from..].iter().position(|&byte| byte == b'\n').map(|at| from + at)
        else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = &self.buffer[self.taken..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_owned();
        self.taken = end + 1;
        self.searched = end + 1;
        Some(line)
    }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
