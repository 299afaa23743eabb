//! The part of the configuration that the gateway needs, as finished structs.
//!
//! Only the binary reads files and the environment; it fills these and hands them over. The field
//! docs are printed in the reference manual, so they are written for a person who edits
//! `moothall.toml`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one provider is reached, and how hard it may be pressed.
///
/// Everything is optional: a built-in provider brings its own values, and what is set here replaces
/// them one by one. A new `NAME` needs only a `base_url`. API keys are never written here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSettings {
    /// Address that the wire's paths are added to, such as `"http://127.0.0.1:8080/v1"`. It must
    /// hold no user name, password or query: keys have their own place.
    pub base_url: Option<String>,
    /// Language that the provider speaks. A provider that is not built in speaks `openai-chat`
    /// unless told otherwise.
    pub wire: Option<Wire>,
    /// Name of the environment variable that holds the API key, such as `"LAB_API_KEY"`. The key
    /// itself does not belong here. Without it the usual variable of the provider is read, such as
    /// `OPENAI_API_KEY`; for a new provider that is its name followed by `_API_KEY`.
    pub key_env: Option<String>,
    /// File that holds nothing but the API key. It must belong to you and be closed to everyone
    /// else (`chmod 600`). A relative path starts at the folder of the configuration file.
    #[schemars(extend("x-type" = "path"))]
    pub key_file: Option<PathBuf>,
    /// Requests started in one minute, at most, for each model of this provider.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens sent and received in one minute, at most, for each model of this provider.
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Requests under way at the same time, at most, for each model of this provider.
    pub concurrent: Option<NonZeroU32>,
    /// How long one attempt may take, such as `"2m"`.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "Option<String>", extend("x-type" = "duration"))]
    pub timeout: Option<Duration>,
    /// Model that is asked when this provider is chosen without a model, by the name the provider
    /// gives it.
    pub default_model: Option<String>,
}

/// The language that a provider speaks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Wire {
    /// `POST /chat/completions` as OpenAI defined it and most others copied it.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// `POST /v1/messages` of Anthropic.
    #[serde(rename = "anthropic-messages")]
    AnthropicMessages,
    /// `POST /api/chat` of Ollama, which sizes the context window to the request.
    #[serde(rename = "ollama-chat")]
    OllamaChat,
}

/// The `[retry]` section: what happens after a failure that may pass by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Attempts after the first one. 0 gives up at once.
    pub retries: u32,
    /// Wait before the first retry; each further one waits about twice as long.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String", extend("x-type" = "duration"))]
    pub first_delay: Duration,
    /// The longest wait between two attempts; a provider that asks for more gets it, up to five
    /// minutes.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String", extend("x-type" = "duration"))]
    pub max_delay: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
