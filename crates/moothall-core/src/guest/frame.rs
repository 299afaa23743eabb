//! Frames: four bytes of length, one byte of kind, then a message as JSON or a piece of data.
//!
//! Data does not travel inside JSON: base64 costs a third more bytes and, on an emulated CPU, most of
//! the time of a transfer.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes that one frame may have after its length.
pub const MAX_FRAME_BYTES: usize = 4 << 20;

/// The most bytes of one piece of data.
pub const MAX_DATA_BYTES: usize = 64 << 10;

const LENGTH_BYTES: usize = 4;
const MESSAGE: u8 = b'j';
const STDIN: u8 = b'0';
const STDOUT: u8 = b'1';
const STDERR: u8 = b'2';
const FILE: u8 = b'f';

/// What a piece of data belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// What the program reads.
    Stdin,
    /// What it prints.
    Stdout,
    /// What it prints on standard error.
    Stderr,
    /// A file on its way in or out.
    File,
}

/// One frame as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<M> {
    /// A message.
    Message(M),
    /// A piece of data.
    Data(Channel, Vec<u8>),
}

/// Why the other side cannot be listened to any longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// Longer than a frame may be, or shorter than it can be.
    #[error("a frame of {0} bytes was announced")]
    Length(u32),
    /// A kind that does not exist.
    #[error("a frame of the unknown kind {0:#04x} arrived")]
    Kind(u8),
    /// Not a message.
    #[error("a message cannot be read: {0}")]
    Message(String),
    /// A message that cannot be written, or is too long to be sent.
    #[error("a message cannot be sent: {0}")]
    Unsendable(String),
}

/// Takes bytes as they arrive and gives frames.
///
/// Nothing is allocated by a length that was told: the buffer holds only what has arrived, and at
/// most one frame and the piece that was pushed last. After a fault it gives nothing but that fault.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Where the first unread byte of the buffer is.
    at: usize,
    fault: Option<FrameFault>,
}

impl FrameReader {
    /// Takes what arrived.
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

    /// The next whole frame; `None` where more bytes must arrive first. Call it until it gives
    /// `None` before pushing more.
    #[expect(clippy::should_implement_trait, reason = "what it gives is for the caller to say")]
    pub fn next<M: DeserializeOwned>(&mut self) -> Result<Option<Frame<M>>, FrameFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        self.read().inspect_err(|fault| {
            self.fault = Some(fault.clone());
            self.buffer = Vec::new();
            self.at = 0;
        })
    }

    fn read<M: DeserializeOwned>(&mut self) -> Result<Option<Frame<M>>, FrameFault> {
        let unread = &self.buffer[self.at..];
        let Some((length, rest)) = unread.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let told = u32::from_be_bytes(*length);
        let length = usize::try_from(told).unwrap_or(usize::MAX);
        if length == 0 || length > MAX_FRAME_BYTES {
            return Err(FrameFault::Length(told));
        }
        // The kind is looked at before the rest has come: a long frame of data is refused early.
        let Some(&kind) = rest.first() else { return Ok(None) };
        let channel = match kind {
            MESSAGE => None,
            STDIN => Some(Channel::Stdin),
            STDOUT => Some(Channel::Stdout),
            STDERR => Some(Channel::Stderr),
            FILE => Some(Channel::File),
            other => return Err(FrameFault::Kind(other)),
        };
        if channel.is_some() && length > MAX_DATA_BYTES + 1 {
            return Err(FrameFault::Length(told));
        }
        let Some(body) = rest.get(1..length) else { return Ok(None) };
        let frame = match channel {
            Some(channel) => Frame::Data(channel, body.to_vec()),
            None => Frame::Message(
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
        .ok_or_else(|| FrameFault::Unsendable(format!("it has {} bytes", body.len())))?;
    to.extend_from_slice(&length.to_be_bytes());
    to.push(MESSAGE);
    to.extend_from_slice(&body);
    Ok(())
}

/// Appends data as frames of at most [`MAX_DATA_BYTES`]; no bytes make no frame.
pub fn write_data(to: &mut Vec<u8>, channel: Channel, bytes: &[u8]) {
    let kind = match channel {
        Channel::Stdin => STDIN,
        Channel::Stdout => STDOUT,
        Channel::Stderr => STDERR,
        Channel::File => FILE,
    };
    for piece in bytes.chunks(MAX_DATA_BYTES) {
        // A piece is at most 64 KiB, so its length fits.
        let length = u32::try_from(piece.len() + 1).unwrap_or(u32::MAX);
        to.extend_from_slice(&length.to_be_bytes());
        to.push(kind);
        to.extend_from_slice(piece);
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
