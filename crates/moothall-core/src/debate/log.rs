//! Message logs of a debate: one conversation per decision maker.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One message, in the format of the conversation files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebateLogEntry {
    /// `critic` or the id of a decision maker.
    pub role: String,
    /// The message text.
    pub content: String,
    /// The round, starting at 1.
    pub round: u32,
}

/// Formats a conversation as the content of its file, `/workspace/logs/i1.json` in a guest.
pub fn log_json(entries: &[DebateLogEntry]) -> String {
    let entry = |DebateLogEntry { role, content, round }: &DebateLogEntry| json!({"role": role, "content": content, "round": round});
    format!("{:#}", Value::Array(entries.iter().map(entry).collect()))
}

/// Formats a conversation as a readable transcript.
pub fn transcript(entries: &[DebateLogEntry]) -> String {
    let message = |entry: &DebateLogEntry| {
        let who = if entry.role == "critic" {
            "CRITIC".to_owned()
        } else {
            format!("DECISION MAKER ({})", entry.role)
        };
        format!("**[Round {}] {who}:**\n{}", entry.round, entry.content)
    };
    entries.iter().map(message).collect::<Vec<_>>().join("\n\n---\n\n")
}
