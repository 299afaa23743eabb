//! The reply of the fake model and the usage that the provider bills and reports.

/// Token counts of one call. The three input counts do not overlap, as in the Anthropic protocol;
/// the other two protocols report their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplyUsage {
    /// Prompt tokens neither read from nor written to the cache.
    pub input: u64,
    /// Prompt tokens read from the cache. Ollama cannot report this.
    pub cache_read: u64,
    /// Prompt tokens written to the cache. Ollama cannot report this.
    pub cache_write: u64,
    /// Tokens of the reply.
    pub output: u64,
}

impl ReplyUsage {
    /// Zero tokens. Never correct for a real call, which always has prompt tokens.
    pub const ZERO: Self = Self { input: 0, cache_read: 0, cache_write: 0, output: 0 };

    /// More tokens than any model can read or write.
    pub const HUGE: Self =
        Self { input: 1_000_000_000_000, cache_read: 0, cache_write: 0, output: 1_000_000_000_000 };

    /// All prompt tokens, cached or not.
    pub fn prompt(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Prompt and reply together.
    pub fn total(self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// The sum of two calls.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Why the fake model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplyStop {
    /// The reply is complete.
    #[default]
    End,
    /// The limit of output tokens was reached.
    MaxTokens,
    /// The model refused; the text is its refusal.
    Refusal,
    /// A content filter of the provider stopped the reply; the text is the part before that.
    ContentFilter,
}

/// The usage that the response reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageReport {
    /// The billed usage.
    #[default]
    AsBilled,
    /// No usage.
    Nothing,
    /// Numbers that differ from the billed ones, such as [`ReplyUsage::ZERO`] or [`ReplyUsage::HUGE`].
    Instead(ReplyUsage),
}

/// One reply of the fake model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeReply {
    /// The text. May be empty, which also happens with real models.
    pub text: String,
    /// Why the model stopped.
    pub stop: ReplyStop,
    /// The billed usage. `None` counts one token per four bytes of prompt and text.
    pub usage: Option<ReplyUsage>,
    /// A context window to which the prompt was cut without an error, so usage fills it exactly.
    /// Ignored if `usage` is set.
    pub truncated_to: Option<u64>,
    /// The usage that the response reports.
    pub reported: UsageReport,
    /// The model named in the response. `None` repeats the requested one.
    pub model: Option<String>,
}

impl FakeReply {
    /// A complete reply with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stop: ReplyStop::End,
            usage: None,
            truncated_to: None,
            reported: UsageReport::AsBilled,
            model: None,
        }
    }

    /// The billed usage of a call with a prompt of this many bytes.
    pub(crate) fn billed(&self, prompt_bytes: usize) -> ReplyUsage {
        let estimate = ReplyUsage {
            input: tokens(prompt_bytes),
            output: tokens(self.text.len()),
            ..ReplyUsage::ZERO
        };
        match (self.usage, self.truncated_to) {
            (Some(usage), _) => usage,
            (None, Some(window)) => {
                ReplyUsage { input: window.saturating_sub(estimate.output), ..estimate }
            }
            (None, None) => estimate,
        }
    }

    /// The reported usage, given the billed usage.
    pub(crate) fn claimed(&self, billed: ReplyUsage) -> Option<ReplyUsage> {
        match self.reported {
            UsageReport::AsBilled => Some(billed),
            UsageReport::Nothing => None,
            UsageReport::Instead(usage) => Some(usage),
        }
    }
}

/// Estimates tokens: four bytes per token is close enough for prose.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}
