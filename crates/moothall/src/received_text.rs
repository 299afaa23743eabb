//! How much models have sent of the answers that are under way, for the line that shows progress.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moothall_models::ReplyListener;

/// A token of English text or code, on average.
const BYTES_PER_TOKEN: u64 = 4;

/// Prompts of this size take a local model seconds to read.
pub(crate) const LARGE_PROMPT_TOKENS: u64 = 2000;

/// The size of a prompt, as a part of a line. `None` if it is small.
pub(crate) fn large_prompt(tokens: u64) -> Option<String> {
    (tokens >= LARGE_PROMPT_TOKENS).then(|| format!("prompt tokens: about {tokens}"))
}

/// Cheap to clone; clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedText(Arc<CallCounts>);

/// The calls that are under way.
#[derive(Debug, Default)]
struct CallCounts {
    /// Received from all of them.
    bytes: AtomicU64,
    next_id: AtomicU64,
    calls: Mutex<BTreeMap<u64, OpenCall>>,
}

#[derive(Debug)]
struct OpenCall {
    prompt_tokens: u64,
    since: Instant,
}

impl CallCounts {
    fn calls(&self) -> MutexGuard<'_, BTreeMap<u64, OpenCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReceivedText {
    /// Counts the text of one call until the listener is dropped.
    pub(crate) fn listener(&self, prompt_tokens: u64) -> Box<dyn ReplyListener> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.0.calls().insert(id, OpenCall { prompt_tokens, since: Instant::now() });
        Box::new(CallListener { counts: Arc::clone(&self.0), bytes: 0, id })
    }

    /// The number of tokens, as a part of a line. `None` before the first one.
    pub(crate) fn label(&self) -> Option<String> {
        match self.0.bytes.load(Ordering::Relaxed) {
            0 => None,
            bytes => Some(format!("tokens received: about {}", bytes.div_ceil(BYTES_PER_TOKEN))),
        }
    }

    /// Same as [`Self::label`], and the size of the largest prompt before the first token.
    pub(crate) fn label_with_prompt(&self) -> Option<String> {
        // Not the sum: most calls may wait for others to end.
        let largest = || self.0.calls().values().map(|call| call.prompt_tokens).max();
        self.label().or_else(|| large_prompt(largest()?))
    }

    /// How long the oldest call has been under way, if there is one.
    pub(crate) fn longest_wait(&self) -> Option<Duration> {
        self.0.calls().values().map(|call| call.since.elapsed()).max()
    }
}

#[derive(Debug)]
struct CallListener {
    counts: Arc<CallCounts>,
    bytes: u64,
    id: u64,
}

impl ReplyListener for CallListener {
    fn text(&mut self, piece: &str) {
        let bytes = piece.len() as u64;
        self.bytes += bytes;
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn restart(&mut self) {
        self.counts.bytes.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for CallListener {
    fn drop(&mut self) {
        self.restart();
        self.counts.calls().remove(&self.id);
    }
}

#[cfg(test)]
#[path = "received_text_tests.rs"]
mod tests;
