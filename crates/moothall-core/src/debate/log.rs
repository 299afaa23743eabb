//! What was said in a debate: three conversations, one for each decision maker.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One message, in the shape that conversation files have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// `critic` or the id of a decision maker.
    pub role: String,
    /// The words.
    pub content: String,
    /// From 1.
    pub round: u32,
}

/// A conversation as the text of its file, `/workspace/logs/i1.json` in a guest.
pub fn log_json(entries: &[Entry]) -> String {
    let entry = |Entry { role, content, round }: &Entry| json!({"role": role, "content": content, "round": round});
    format!("{:#}", Value::Array(entries.iter().map(entry).collect()))
}

/// A conversation as a readable transcript.
pub fn transcript(entries: &[Entry]) -> String {
    let message = |entry: &Entry| {
        let who = if entry.role == "critic" {
            "CRITIC".to_owned()
        } else {
            format!("DECISION MAKER ({})", entry.role)
        };
        format!("**[Round {}] {who}:**\n{}", entry.round, entry.content)
    };
    entries.iter().map(message).collect::<Vec<_>>().join("\n\n---\n\n")
}
