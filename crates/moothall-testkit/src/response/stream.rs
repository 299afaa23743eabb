//! Encodes a stream of events with chunked transfer encoding, one event per chunk, and tracks where
//! the first delta ends.

/// The size of a chunk has eight hexadecimal digits: it is written before the size is known and
/// then overwritten.
const CHUNK_HEAD: &[u8] = b"00000000\r\n";
const SIZE_DIGITS: usize = 8;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Number of bytes of an event that are sent before a cut: includes `data: {`, but nothing that
/// could be parsed.
const CUT_EVENT_BYTES: usize = 12;

/// Maximum length of the text in one event, in bytes.
const MAX_DELTA_CHARS: usize = 16;

/// Splits a text into deltas. A text of two or more characters has at least two, so "after the
/// first delta" is always before the end.
pub(crate) fn deltas(text: &str) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(2).clamp(1, MAX_DELTA_CHARS);
    let mut rest = text;
    std::iter::from_fn(move || {
        let (delta, tail) = rest.split_at(rest.ceil_char_boundary(size));
        rest = tail;
        (!delta.is_empty()).then_some(delta)
    })
}

pub(crate) struct EventStream {
    bytes: Vec<u8>,
    /// The end of the first delta. Before there is one, the end of the opening events.
    first_delta_end: usize,
    has_delta: bool,
}

impl EventStream {
    /// A stream with capacity for a text of this many bytes.
    pub(crate) fn for_text(bytes: usize) -> Self {
        // The envelope of a delta is about 200 bytes in the most verbose protocol.
        let capacity = (bytes / MAX_DELTA_CHARS + 6) * 256;
        Self { bytes: Vec::with_capacity(capacity), first_delta_end: 0, has_delta: false }
    }

    /// Adds an event before the text.
    pub(crate) fn opening(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.event(write);
        self.first_delta_end = self.bytes.len();
    }

    /// Adds an event with a piece of the text.
    pub(crate) fn delta(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.event(write);
        if !self.has_delta {
            self.has_delta = true;
            self.first_delta_end = self.bytes.len();
        }
    }

    /// Adds an event after the text, or between two pieces of it.
    pub(crate) fn closing(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.event(write);
    }

    /// The whole stream with its regular end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(LAST_CHUNK);
        self.bytes
    }

    /// The stream up to the end of its first delta, not terminated.
    pub(crate) fn cut_after_first_delta(mut self) -> Vec<u8> {
        self.bytes.truncate(self.first_delta_end);
        self.bytes
    }

    /// The stream up to the middle of the event after its first delta.
    pub(crate) fn cut_inside_the_event_after_first_delta(mut self) -> Vec<u8> {
        self.bytes.truncate(self.first_delta_end + CHUNK_HEAD.len() + CUT_EVENT_BYTES);
        self.bytes
    }

    /// The stream up to the end of its first delta, then other events, then a regular end.
    pub(crate) fn replace_after_first_delta(mut self, write: impl FnOnce(&mut Self)) -> Vec<u8> {
        self.bytes.truncate(self.first_delta_end);
        write(&mut self);
        self.finish()
    }

    fn event(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(CHUNK_HEAD);
        write(&mut self.bytes);
        let mut size = self.bytes.len() - start - CHUNK_HEAD.len();
        for digit in self.bytes.iter_mut().skip(start).take(SIZE_DIGITS).rev() {
            *digit = b"0123456789abcdef"[size % 16];
            size /= 16;
        }
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
