//! The three protocols, identified by the request path.

use serde::Serialize;

/// The protocol of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderProtocol {
    /// OpenAI chat completions, `POST …/chat/completions`.
    OpenAi,
    /// Anthropic messages, `POST …/messages`.
    Anthropic,
    /// Ollama's native chat, `POST …/api/chat`.
    Ollama,
}

impl ProviderProtocol {
    /// All protocols, for tests that cover each.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Ollama];

    /// The part of a base URL that follows the authority.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Anthropic => "/v1",
            Self::Ollama => "",
        }
    }

    /// The protocol of a request; `None` if the path belongs to no provider.
    pub(crate) fn of_request(method: &str, target: &str) -> Option<Self> {
        if method != "POST" {
            return None;
        }
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        if path.ends_with("/chat/completions") {
            Some(Self::OpenAi)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/api/chat") {
            Some(Self::Ollama)
        } else {
            None
        }
    }
}

pub(crate) fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Serializing plain structs into memory does not fail. If it ever does, the error message
    // corrupts the body and is visible in the test that reads it.
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        out.extend_from_slice(error.to_string().as_bytes());
    }
}
