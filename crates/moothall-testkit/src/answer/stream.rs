//! A stream of events in the chunked transfer encoding, one event a chunk, that knows where its
//! first delta ends.

/// A chunk begins with its size in eight hexadecimal digits, so that it can be written before the
/// size is known and corrected after.
const CHUNK_HEAD: &[u8] = b"00000000\r\n";
const SIZE_DIGITS: usize = 8;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// How far a cut reaches into an event: past `data: {`, not past anything that could be parsed.
const TORN_EVENT: usize = 12;

/// The longest piece of text in one event.
const LONGEST_DELTA: usize = 16;

/// Cuts a text into deltas: at least two of them where it has two characters, so that "after the
/// first delta" is before the end.
pub(super) fn deltas(text: &str) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(2).clamp(1, LONGEST_DELTA);
    let mut rest = text;
    std::iter::from_fn(move || {
        let (delta, tail) = rest.split_at(rest.ceil_char_boundary(size));
        rest = tail;
        (!delta.is_empty()).then_some(delta)
    })
}

/// The encoded events.
pub(super) struct EventStream {
    bytes: Vec<u8>,
    /// The end of the first delta once there is one, before that the end of the opening events.
    first_delta_end: usize,
    has_delta: bool,
}

impl EventStream {
    /// A stream with room for a text of this many bytes.
    pub(super) fn for_text(bytes: usize) -> Self {
        // The envelope of a delta is about 200 bytes on the most talkative wire.
        let capacity = (bytes / LONGEST_DELTA + 6) * 256;
        Self { bytes: Vec::with_capacity(capacity), first_delta_end: 0, has_delta: false }
    }

    /// Adds an event that comes before any text.
    pub(super) fn opening(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.event(write);
        self.first_delta_end = self.bytes.len();
    }

    /// Adds an event with a piece of the text.
    pub(super) fn delta(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.event(write);
        if !self.has_delta {
            self.has_delta = true;
            self.first_delta_end = self.bytes.len();
        }
    }

    /// Adds an event that comes after, or between, the text.
    pub(super) fn closing(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.event(write);
    }

    /// The whole stream with its proper end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(LAST_CHUNK);
        self.bytes
    }

    /// The stream up to its first delta, without an end.
    pub(super) fn cut_after_first_delta(mut self) -> Vec<u8> {
        self.bytes.truncate(self.first_delta_end);
        self.bytes
    }

    /// The stream up to the middle of the event after its first delta.
    pub(super) fn cut_inside_the_event_after_first_delta(mut self) -> Vec<u8> {
        self.bytes.truncate(self.first_delta_end + CHUNK_HEAD.len() + TORN_EVENT);
        self.bytes
    }

    /// The stream up to its first delta, then other events, then a proper end.
    pub(super) fn replace_after_first_delta(mut self, write: impl FnOnce(&mut Self)) -> Vec<u8> {
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
