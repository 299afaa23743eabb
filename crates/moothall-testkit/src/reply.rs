//! What the pretended model says, and what the provider claims that it cost.

/// Token counts of one call. The three input counts do not overlap, as on the Anthropic wire; the
/// other two wires report their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens neither read from nor written to the cache.
    pub input: u64,
    /// Prompt tokens read from the cache. Ollama cannot say this.
    pub cache_read: u64,
    /// Prompt tokens written to the cache. Ollama cannot say this.
    pub cache_write: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Usage {
    /// Nothing at all. As a claim it is wrong: every real call has prompt tokens.
    pub const ZERO: Self = Self { input: 0, cache_read: 0, cache_write: 0, output: 0 };

    /// More than any model can read or write.
    pub const HUGE: Self =
        Self { input: 1_000_000_000_000, cache_read: 0, cache_write: 0, output: 1_000_000_000_000 };

    /// All prompt tokens, cached or not.
    pub fn prompt(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Prompt and answer together.
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

/// Why the pretended model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stop {
    /// It had said everything.
    #[default]
    End,
    /// It reached the limit of output tokens.
    MaxTokens,
    /// It declined; the text is its refusal.
    Refusal,
    /// A filter of the provider stopped it; the text is what came out before.
    ContentFilter,
}

/// What the answer says about its usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reported {
    /// What is billed.
    #[default]
    AsBilled,
    /// No usage at all.
    Nothing,
    /// Other numbers than those billed, such as [`Usage::ZERO`] or [`Usage::HUGE`].
    Instead(Usage),
}

/// One answer of the pretended model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text. An empty one is a fault that real models have.
    pub text: String,
    /// Why the model stopped.
    pub stop: Stop,
    /// What is billed. `None` counts a token per four bytes of prompt and text.
    pub usage: Option<Usage>,
    /// A context window that cut the prompt without a word, so that usage fills it exactly. Ignored
    /// when `usage` is given.
    pub truncated_to: Option<u64>,
    /// What the answer says about usage.
    pub reported: Reported,
    /// The model named in the answer. `None` repeats the one asked for.
    pub model: Option<String>,
}

impl Reply {
    /// A healthy answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            stop: Stop::End,
            usage: None,
            truncated_to: None,
            reported: Reported::AsBilled,
            model: None,
        }
    }

    /// What a call with a prompt of this many bytes is billed.
    pub(crate) fn billed(&self, prompt_bytes: usize) -> Usage {
        let estimate =
            Usage { input: tokens(prompt_bytes), output: tokens(self.text.len()), ..Usage::ZERO };
        match (self.usage, self.truncated_to) {
            (Some(usage), _) => usage,
            (None, Some(window)) => {
                Usage { input: window.saturating_sub(estimate.output), ..estimate }
            }
            (None, None) => estimate,
        }
    }

    /// What the answer says, given what is billed.
    pub(crate) fn claimed(&self, billed: Usage) -> Option<Usage> {
        match self.reported {
            Reported::AsBilled => Some(billed),
            Reported::Nothing => None,
            Reported::Instead(usage) => Some(usage),
        }
    }
}

/// Four bytes a token is near enough to the truth for prose.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}
