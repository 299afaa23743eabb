//! The gateway's part of the configuration.
//!
//! Only the binary reads files and the environment; it fills in these structs. The field docs are
//! printed in the reference manual, so write them for users who edit `moothall.toml`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use moothall_core::MicroUsd;
use moothall_core::money::dollars_option;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connection and rate limits of one provider.
///
/// All fields are optional and replace the values of a built-in provider. A new `NAME` needs only a
/// `base_url`. API keys are never set here: see `moothall key set`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSettings {
    /// Base URL of the provider's API, such as `"http://127.0.0.1:8080/v1"`. Must not contain a
    /// user name, a password or a query; set API keys with `moothall key set`, and query parameters
    /// with `query`.
    pub base_url: Option<String>,
    /// Your resource, for a provider whose address contains it: `azure`, where the address is
    /// `https://RESOURCE.openai.azure.com/openai/v1`.
    pub resource: Option<String>,
    /// Your project, for a provider whose address contains it: `vertex`.
    pub project: Option<String>,
    /// Region of the provider's servers, such as `"eu-central-1"`: `bedrock`, `bedrock-claude` and
    /// `vertex`. It is also the region of AWS signatures.
    pub region: Option<String>,
    /// API format of the provider. Defaults to `openai-chat` for providers that are not built in.
    pub wire: Option<WireFormat>,
    /// How the API key is sent: `bearer` in the header `authorization`, `x-api-key` or `api-key` in
    /// the header of that name, `aws` as an AWS signature (or as `bearer` if the key is an Amazon
    /// Bedrock API key).
    pub auth: Option<AuthScheme>,
    /// Name of the environment variable that contains the API key, such as `"LAB_API_KEY"`; never
    /// the key itself. Defaults to the provider's usual variable, such as `OPENAI_API_KEY`; for a
    /// new provider, its name followed by `_API_KEY`.
    pub key_env: Option<String>,
    /// File that contains only the API key. You must own it, and no one else may access it (`chmod
    /// 600`). A relative path is resolved against the folder of the configuration file.
    #[schemars(extend("x-type" = "path"))]
    pub key_file: Option<PathBuf>,
    /// Command that prints the API key, such as `"op read op://Private/OpenAI/key"`. It is split
    /// into words and started without a shell, when the key is first needed and again when the
    /// provider rejects the key. A `moothall.toml` in the working directory cannot set it.
    pub key_command: Option<String>,
    /// Run `key_command` and `header_command` with `sh -c` instead of splitting them into words.
    pub key_command_shell: Option<bool>,
    /// Time limit of `key_command` and `header_command`, such as `"10s"`. 30 seconds if not set.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "Option<String>", extend("x-type" = "duration"))]
    pub key_command_timeout: Option<Duration>,
    /// Maximum requests per minute for each model of this provider.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Maximum tokens sent and received per minute for each model of this provider.
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Maximum concurrent requests for each model of this provider.
    pub concurrent: Option<NonZeroU32>,
    /// Time limit of one attempt, such as `"2m"`.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "Option<String>", extend("x-type" = "duration"))]
    pub timeout: Option<Duration>,
    /// Model to use if only the provider is given, by the provider's own name for it.
    pub default_model: Option<String>,
    /// Context window in tokens of this provider's models. Prompts are fitted to it.
    pub context: Option<NonZeroU32>,
    /// Maximum output tokens of this provider's models.
    pub max_output: Option<NonZeroU32>,
    /// Price of a million prompt tokens in dollars, such as `"0.20"`. Needs `price_output`. Without a
    /// price, a provider that is not built in is free if its server is on this machine.
    #[serde(with = "dollars_option")]
    #[schemars(with = "Option<String>", extend("x-type" = "dollars"))]
    pub price_input: Option<MicroUsd>,
    /// Price of a million output tokens in dollars, such as `"0.80"`.
    #[serde(with = "dollars_option")]
    #[schemars(with = "Option<String>", extend("x-type" = "dollars"))]
    pub price_output: Option<MicroUsd>,
    /// File with certificates in PEM format that are trusted for this provider, in addition to those
    /// of the system. A relative path is resolved against the folder of the configuration file.
    #[schemars(extend("x-type" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// Proxy for this provider, such as `"http://proxy.example.com:3128"`. Must not contain a
    /// password; a proxy that needs one goes into the variable `HTTPS_PROXY`. If not set, the proxy
    /// of the system is used, and none for a server on this machine.
    pub proxy: Option<String>,
    /// Headers added to every request, by name. Never a secret: use `header_env` or
    /// `header_command`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Secret headers, by name: the environment variable that contains the value, such as
    /// `"GATEWAY_TOKEN"`. A `moothall.toml` in the working directory cannot set it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub header_env: BTreeMap<String, String>,
    /// Secret headers, by name: the command that prints the value, like `key_command`. A
    /// `moothall.toml` in the working directory cannot set it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub header_command: BTreeMap<String, String>,
    /// Query parameters added to every request, by name, such as `api-version`. Never a secret.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
}

/// How an API key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuthScheme {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
    /// `api-key: KEY`.
    ApiKey,
    /// A signature made with AWS credentials, or `authorization: Bearer KEY` for an Amazon Bedrock
    /// API key.
    Aws,
}

/// The API format of a provider.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum WireFormat {
    /// OpenAI's `POST /chat/completions`, which most other providers support.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// Anthropic's `POST /v1/messages`.
    #[serde(rename = "anthropic-messages")]
    AnthropicMessages,
    /// Ollama's `POST /api/chat`, which sizes the context window to the request.
    #[serde(rename = "ollama-chat")]
    OllamaChat,
}

/// The `[retry]` section: retries after temporary failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Attempts after the first one, unless `outage_wait` applies. 0 disables retries.
    pub retries: u32,
    /// Delay before the first retry; it about doubles with each further one.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String", extend("x-type" = "duration"))]
    pub first_delay: Duration,
    /// Maximum delay between two attempts. A longer delay requested by the provider is respected up
    /// to five minutes.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String", extend("x-type" = "duration"))]
    pub max_delay: Duration,
    /// How long a call is retried if the provider has answered before and now refuses connections or
    /// is overloaded, such as `"5m"`. After that the run is paused and can be resumed.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String", extend("x-type" = "duration"))]
    pub outage_wait: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            outage_wait: Duration::from_secs(5 * 60),
        }
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
