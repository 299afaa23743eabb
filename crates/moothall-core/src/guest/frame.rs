//! Frames: a four-byte length, one byte for the kind, then a JSON message or a chunk of data.
//!
//! Data is not sent as JSON: base64 adds a third to the size and, on an emulated CPU, takes most of
//! the transfer time.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The maximum size of a frame, without its length field.
pub const MAX_FRAME_BYTES: usize = 4 << 20;

/// The maximum size of a data chunk.
pub const MAX_DATA_BYTES: usize = 64 << 10;

const LENGTH_BYTES: usize = 4;
const MESSAGE: u8 = b'j';
const STDIN: u8 = b'0';
const STDOUT: u8 = b'1';
const STDERR: u8 = b'2';
const FILE: u8 = b'f';

/// The stream a data chunk belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestStream {
    /// The program's standard input.
    Stdin,
    /// The program's standard output.
    Stdout,
    /// The program's standard error.
    Stderr,
    /// The content of a file, in either direction.
    File,
}

/// A frame that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestFrame<M> {
    /// A message.
    Message(M),
    /// A chunk of data.
    Data(GuestStream, Vec<u8>),
}

/// A protocol error; the connection cannot be used after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The length is zero or above the limit.
    #[error("invalid frame length: {0} bytes")]
    Length(u32),
    /// Unknown kind.
    #[error("unknown frame kind {0:#04x}")]
    Kind(u8),
    /// Invalid message.
    #[error("invalid message: {0}")]
    Message(String),
    /// A message that cannot be serialized or is too long.
    #[error("cannot send message: {0}")]
    Unsendable(String),
}

/// Parses frames from bytes as they arrive.
///
/// Memory is not allocated based on the announced length: the buffer holds only bytes that have
/// arrived, at most one frame plus the last chunk pushed. After a fault, every call returns that
/// fault.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Index of the first unread byte in the buffer.
    at: usize,
    fault: Option<FrameFault>,
}

impl FrameReader {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame, or `None` if more bytes are needed. Call it until it returns `None`
    /// before pushing more.
    #[expect(clippy::should_implement_trait, reason = "the caller chooses the message type")]
    pub fn next<M: DeserializeOwned>(&mut self) -> Result<Option<GuestFrame<M>>, FrameFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        self.read().inspect_err(|fault| {
            self.fault = Some(fault.clone());
            self.buffer = Vec::new();
            self.at = 0;
        })
    }

    fn read<M: DeserializeOwned>(&mut self) -> Result<Option<GuestFrame<M>>, FrameFault> {
        let unread = &self.buffer[self.at..];
        let Some((length, rest)) = unread.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let declared = u32::from_be_bytes(*length);
        let length = usize::try_from(declared).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_FRAME_BYTES {
            return Err(FrameFault::Length(declared));
        }
        // Check the kind before the rest has arrived, to reject an oversized data frame early.
        let Some(&kind) = rest.first() else { return Ok(None) };
        let channel = match kind {
            MESSAGE => None,
            STDIN => Some(GuestStream::Stdin),
            STDOUT => Some(GuestStream::Stdout),
            STDERR => Some(GuestStream::Stderr),
            FILE => Some(GuestStream::File),
            other => return Err(FrameFault::Kind(other)),
        };
        if channel.is_some() && length > MAX_DATA_BYTES + 1 {
            return Err(FrameFault::Length(declared));
        }
        let Some(body) = rest.get(1..length) else { return Ok(None) };
        let frame = match channel {
            Some(channel) => GuestFrame::Data(channel, body.to_vec()),
            None => GuestFrame::Message(
                serde_json::from_slice(body)
                    .map_err(|error| FrameFault::Message(error.to_string()))?,
            ),
        };
        self.at += LENGTH_BYTES + length;
        Ok(Some(frame))
    }
}

/// Appends a message as a frame.
pub fn write_message<M: Serialize>(to: &mut Vec<u8>, message: &M) -> Result<(), FrameFault> {
    let body =
        serde_json::to_vec(message).map_err(|error| FrameFault::Unsendable(error.to_string()))?;
    let length = u32::try_from(body.len() + 1)
        .ok()
        .filter(|_| body.len() < MAX_FRAME_BYTES)
        .ok_or_else(|| {
            FrameFault::Unsendable(format!(
                "it has {} bytes (limit: {MAX_FRAME_BYTES})",
                body.len()
            ))
        })?;
    to.extend_from_slice(&length.to_be_bytes());
    to.push(MESSAGE);
    to.extend_from_slice(&body);
    Ok(())
}

/// Appends data as frames of at most [`MAX_DATA_BYTES`]; writes nothing for empty input.
pub fn write_data(to: &mut Vec<u8>, channel: GuestStream, bytes: &[u8]) {
    let kind = match channel {
        GuestStream::Stdin => STDIN,
        GuestStream::Stdout => STDOUT,
        GuestStream::Stderr => STDERR,
        GuestStream::File => FILE,
    };
    for piece in bytes.chunks(MAX_DATA_BYTES) {
        // A chunk has at most 64 KiB, so its length fits.
        let length = u32::try_from(piece.len() + 1).unwrap_or(u32::MAX);
        to.extend_from_slice(&length.to_be_bytes());
        to.push(kind);
        to.extend_from_slice(piece);
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
