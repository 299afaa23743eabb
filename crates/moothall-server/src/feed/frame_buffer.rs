//! In-memory buffer of a run's newest event frames.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Limits on the events and bytes held for each followed run. A consultation has about 2,600 events
/// and 0.7 MB.
pub(crate) const MAX_FRAMES: usize = 4096;
const MAX_BYTES: usize = 1 << 20;

/// Frames of consecutive events.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// Sequence number of the last event, even if its frame has been dropped.
    end: u64,
}

impl FrameBuffer {
    /// Creates an empty buffer; the next event has the sequence number `end + 1`.
    pub(crate) fn after(end: u64) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, end }
    }

    /// Sequence number of the last event.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Adds the event that follows the last one, and drops the oldest frames beyond the limits.
    pub(crate) fn push(&mut self, seq: u64, frame: Bytes) {
        self.end = seq;
        self.bytes = self.bytes.saturating_add(frame.len());
        self.frames.push_back(frame);
        while self.frames.len() > MAX_FRAMES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.len());
        }
    }

    /// Returns up to `most` frames after a cursor as one buffer, with the sequence number of the
    /// last one; `None` if the next frame is not held.
    pub(crate) fn after_cursor(&self, after: u64, most: usize) -> Option<(u64, Bytes)> {
        let first = self.end.checked_sub(self.frames.len() as u64)?;
        let skip = usize::try_from(after.checked_sub(first)?).ok()?;
        let held = self.frames.len().checked_sub(skip)?;
        let count = held.min(most);
        match count {
            0 => None,
            // The common case, one new event, needs no copy.
            1 => Some((after.saturating_add(1), self.frames.get(skip)?.clone())),
            _ => {
                let frames = self.frames.iter().skip(skip).take(count);
                let mut joined = BytesMut::with_capacity(frames.clone().map(Bytes::len).sum());
                frames.for_each(|frame| joined.extend_from_slice(frame));
                Some((after.saturating_add(count as u64), joined.freeze()))
            }
        }
    }
}

#[cfg(test)]
#[path = "frame_buffer_tests.rs"]
mod tests;
