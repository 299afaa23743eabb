//! The three wires, told apart by the path of a request.

use serde::Serialize;

/// The protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI chat completions, `POST …/chat/completions`.
    OpenAi,
    /// Anthropic messages, `POST …/messages`.
    Anthropic,
    /// Ollama's native chat, `POST …/api/chat`.
    Ollama,
}

impl Wire {
    /// All wires, for tests that try each.
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Ollama];

    /// The part of a base URL that follows the authority.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Anthropic => "/v1",
            Self::Ollama => "",
        }
    }

    /// The wire that a request speaks, or `None` when no provider has such a path.
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

/// Appends a value as JSON.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    // Plain structs into memory do not fail. If they ever do, the error spoils the body and so
    // names itself in the test that reads it.
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        out.extend_from_slice(error.to_string().as_bytes());
    }
}
