//! The newest events of a run as bytes.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The most events, and the most bytes of them, that are held for a run that somebody follows. A
/// consultation has about 2,600 events and 0.7 MB.
pub(super) const MOST_FRAMES: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

/// Frames of consecutive events.
#[derive(Debug)]
pub(super) struct Tail {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the last one, whether it is held or not.
    end: u64,
}

impl Tail {
    /// Nothing yet; the next event is the one after this.
    pub(super) fn after(end: u64) -> Self {
        Self { frames: VecDeque::new(), bytes: 0, end }
    }

    /// The number of the last event.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds the event that follows the last one.
    pub(super) fn push(&mut self, seq: u64, frame: Bytes) {
        self.end = seq;
        self.bytes = self.bytes.saturating_add(frame.len());
        self.frames.push_back(frame);
        while self.frames.len() > MOST_FRAMES || self.bytes > MOST_BYTES {
            let Some(oldest) = self.frames.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.len());
        }
    }

    /// At most `most` frames after a cursor in one piece, and the number of the last one. Nothing
    /// where the next one is not held.
    pub(super) fn after_cursor(&self, after: u64, most: usize) -> Option<(u64, Bytes)> {
        let first = self.end.checked_sub(self.frames.len() as u64)?;
        let skip = usize::try_from(after.checked_sub(first)?).ok()?;
        let held = self.frames.len().checked_sub(skip)?;
        let count = held.min(most);
        match count {
            0 => None,
            // The common case: one new event, which is copied for nobody.
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
#[path = "tail_tests.rs"]
mod tests;
