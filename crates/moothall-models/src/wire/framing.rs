//! Splits a byte stream into messages: lines, or the `data` of server-sent events.
//!
//! Hand-written because existing crates work on async streams and leave no place for a size limit;
//! this needs one page and no I/O.

use moothall_core::model::{FailureKind, ModelFailure};

use super::MAX_BODY_BYTES;

#[derive(Debug)]
pub(crate) struct MessageFramer {
    kind: FramingKind,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were already returned.
    taken: usize,
    /// Bytes of the buffer known to contain no line end.
    searched: usize,
}

#[derive(Debug)]
enum FramingKind {
    Lines,
    /// The `data` lines of an incomplete event.
    ServerSentEvents {
        data: Option<Vec<u8>>,
    },
}

impl MessageFramer {
    pub(crate) fn lines() -> Self {
        Self::new(FramingKind::Lines)
    }

    pub(crate) fn server_sent_events() -> Self {
        Self::new(FramingKind::ServerSentEvents { data: None })
    }

    fn new(kind: FramingKind) -> Self {
        Self { kind, buffer: Vec::new(), taken: 0, searched: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ModelFailure> {
        // Drop returned bytes once per push, not once per line, so a large chunk of small
        // lines takes linear time.
        self.buffer.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        let pending = match &self.kind {
            FramingKind::ServerSentEvents { data: Some(data) } => data.len(),
            FramingKind::Lines | FramingKind::ServerSentEvents { data: None } => 0,
        };
        if self.buffer.len() + bytes.len() + pending > MAX_BODY_BYTES {
            return Err(ModelFailure::new(
                FailureKind::Malformed,
                format!("the provider sent a line longer than {} MiB", MAX_BODY_BYTES >> 20),
            ));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next complete message. Not checked for valid UTF-8; the JSON parser does that.
    pub(crate) fn next_message(&mut self) -> Option<Vec<u8>> {
        loop {
            let line = self.next_line()?;
            match &mut self.kind {
                FramingKind::Lines if line.trim_ascii().is_empty() => {}
                FramingKind::Lines => return Some(line),
                FramingKind::ServerSentEvents { data } if line.is_empty() => {
                    // Some servers send empty events to keep a connection alive.
                    if let Some(data) = data.take().filter(|data| !data.trim_ascii().is_empty()) {
                        return Some(data);
                    }
                }
                FramingKind::ServerSentEvents { data } => {
                    // `event:`, `id:` and comment lines add nothing to the data.
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
