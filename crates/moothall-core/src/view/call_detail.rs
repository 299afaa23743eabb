//! One model call in full: its prompt, rebuilt from the journal, and its answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::ModelCall;
use crate::EffectResult;
use crate::gate::hide_secrets;
use crate::model::{ModelRequest, PromptRole, StopReason};

/// A call with its prompt and answer. Credentials in both are hidden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CallDetail {
    /// The call.
    pub call: ModelCall,
    /// The prompt; absent if it cannot be rebuilt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub prompt: Option<CallPrompt>,
    /// Why the prompt is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub prompt_problem: Option<String>,
    /// The answer, as the model gave it; absent if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub answer: Option<String>,
    /// Whether the answer reached its length limit.
    pub truncated: bool,
    /// The number of credentials hidden in the prompt and the answer.
    pub hidden_secrets: u64,
}

/// The prompt of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CallPrompt {
    /// The messages, in order: the system prompt in its parts, then the conversation.
    pub messages: Vec<CallMessage>,
    /// The limit on output tokens.
    pub max_tokens: u32,
    /// The name of the JSON schema that the answer must match, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub schema: Option<String>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ts_rs::TS)]
pub struct CallMessage {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub text: String,
}

impl CallDetail {
    /// Combines a call with its request and its journaled result. `request` has the reason if the
    /// request cannot be rebuilt.
    pub fn of(
        call: ModelCall,
        request: Result<&ModelRequest, String>,
        result: Option<&EffectResult>,
    ) -> Self {
        let mut hidden_secrets: u64 = 0;
        let mut hide = |text: &str| {
            let (text, hidden) = hide_secrets(text);
            hidden_secrets = hidden_secrets.saturating_add(hidden);
            text
        };
        let (answer, truncated) = match result {
            Some(EffectResult::ModelReplied(reply)) => {
                (Some(hide(&reply.text)), reply.stop == StopReason::MaxTokens)
            }
            _ => (None, false),
        };
        let (prompt, prompt_problem) = match request {
            Ok(request) => (Some(CallPrompt::of(request, &mut hide)), None),
            Err(problem) => (None, Some(problem)),
        };
        Self { call, prompt, prompt_problem, answer, truncated, hidden_secrets }
    }
}

impl CallPrompt {
    fn of(request: &ModelRequest, hide: &mut impl FnMut(&str) -> String) -> Self {
        let mut message =
            |role: &str, text: &str| CallMessage { role: role.to_owned(), text: hide(text) };
        let mut messages = Vec::new();
        for block in &request.system {
            messages.push(message("system", &block.text));
        }
        for turn in &request.turns {
            let role = match turn.role {
                PromptRole::User => "user",
                PromptRole::Assistant => "assistant",
            };
            messages.push(message(role, &turn.block.text));
        }
        let schema = request.schema.as_ref().map(|schema| schema.name().to_owned());
        Self { messages, max_tokens: request.max_tokens, schema }
    }
}
