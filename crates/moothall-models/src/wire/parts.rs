//! What more than one wire writes the same way.

use std::borrow::Cow;

use moothall_core::model::{Block, CacheFor, Effort, Role};
use serde::Serialize;

/// A block of text with its cache mark, as Anthropic writes it and OpenRouter passes it through.
#[derive(Debug, Serialize)]
pub(super) struct Part<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> From<&'a Block> for Part<'a> {
    fn from(block: &'a Block) -> Self {
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

impl From<CacheFor> for CacheControl {
    fn from(cache: CacheFor) -> Self {
        let ttl = match cache {
            CacheFor::FiveMinutes => None,
            CacheFor::OneHour => Some("1h"),
        };
        Self { kind: "ephemeral", ttl }
    }
}

/// Blocks as one text; most chat templates take a single system message.
pub(super) fn join(blocks: &[Block]) -> Cow<'_, str> {
    match blocks {
        [only] => Cow::Borrowed(&only.text),
        many => Cow::Owned(many.iter().map(|block| &*block.text).collect::<Vec<_>>().join("\n\n")),
    }
}

pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

pub(super) fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}
