//! How much models have sent of the answers that are under way, for the line that shows progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Sums over the calls that are under way.
#[derive(Debug, Default)]
struct CallCounts {
    bytes: AtomicU64,
    prompt_tokens: AtomicU64,
}

impl ReceivedText {
    /// Counts the text of one call until the listener is dropped.
    pub(crate) fn listener(&self, prompt_tokens: u64) -> Box<dyn ReplyListener> {
        self.0.prompt_tokens.fetch_add(prompt_tokens, Ordering::Relaxed);
        Box::new(CallListener { counts: Arc::clone(&self.0), bytes: 0, prompt_tokens })
    }

    /// The number of tokens, as a part of a line. `None` before the first one.
    pub(crate) fn label(&self) -> Option<String> {
        match self.0.bytes.load(Ordering::Relaxed) {
            0 => None,
            bytes => Some(format!("tokens received: about {}", bytes.div_ceil(BYTES_PER_TOKEN))),
        }
    }

    /// Same as [`Self::label`], and the size of a large prompt before the first token.
    pub(crate) fn label_with_prompt(&self) -> Option<String> {
        self.label().or_else(|| large_prompt(self.0.prompt_tokens.load(Ordering::Relaxed)))
    }
}

#[derive(Debug)]
struct CallListener {
    counts: Arc<CallCounts>,
    bytes: u64,
    prompt_tokens: u64,
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
        self.counts.prompt_tokens.fetch_sub(self.prompt_tokens, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "received_text_tests.rs"]
mod tests;
