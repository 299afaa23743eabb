//! Parts shared by several API formats.

use std::borrow::Cow;

use moothall_core::model::{CacheDuration, PromptBlock, PromptRole, ReasoningEffort};
use serde::Serialize;

/// A text block with its cache marker, as defined by Anthropic and passed through by OpenRouter.
#[derive(Debug, Serialize)]
pub(crate) struct TextPart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> From<&'a PromptBlock> for TextPart<'a> {
    fn from(block: &'a PromptBlock) -> Self {
        let cache_control = block.cache.map(CacheControl::from);
        Self { kind: "text", text: &block.text, cache_control }
    }
}

#[derive(Debug, Clone, Copy, Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl From<CacheDuration> for CacheControl {
    fn from(cache: CacheDuration) -> Self {
        let ttl = match cache {
            CacheDuration::FiveMinutes => None,
            CacheDuration::OneHour => Some("1h"),
        };
        Self { kind: "ephemeral", ttl }
    }
}

/// Joins blocks into one text; most chat templates accept only a single system message.
pub(crate) fn join(blocks: &[PromptBlock]) -> Cow<'_, str> {
    match blocks {
        [only] => Cow::Borrowed(&only.text),
        many => Cow::Owned(many.iter().map(|block| &*block.text).collect::<Vec<_>>().join("\n\n")),
    }
}

pub(crate) fn role(role: PromptRole) -> &'static str {
    match role {
        PromptRole::User => "user",
        PromptRole::Assistant => "assistant",
    }
}

pub(crate) fn effort_word(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
    }
}
