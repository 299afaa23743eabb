//! Requests to models.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::prompt_text::PromptText;
use super::reply::ModelReply;
use crate::{CanonicalJsonError, Sha256Hex, tokens_at_most, tokens_expected};

/// A model name as users write it: `provider/name`, such as `anthropic/claude-haiku-5-5`, or
/// `demo`. `demo/NAME` is the demo model under another name, to try several models in one run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(ts_rs::TS)]
#[ts(type = "string")]
pub struct ModelName {
    provider: Arc<str>,
    name: Arc<str>,
}

impl ModelName {
    /// The built-in demo model, which needs no API key and no network.
    pub const DEMO: &str = "demo";

    /// The provider of scripted judges, which answer in a benchmark only and call no server.
    pub const SCRIPTED_JUDGE: &str = "scripted-judge";

    /// The part before the first slash.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The part after the first slash: the provider's name for the model. May contain slashes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether answers are scripted: the built-in demo model, under any name, or a scripted judge.
    pub fn is_demo(&self) -> bool {
        &*self.provider == Self::DEMO || self.is_scripted_judge()
    }

    /// Whether this is a scripted judge of a benchmark.
    pub fn is_scripted_judge(&self) -> bool {
        &*self.provider == Self::SCRIPTED_JUDGE
    }
}

/// The text is not a valid model name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a model name; expected provider/name, such as anthropic/claude-haiku-5-5, or demo"
)]
pub struct InvalidModelName(String);

impl FromStr for ModelName {
    type Err = InvalidModelName;

    fn from_str(text: &str) -> Result<Self, InvalidModelName> {
        if text == Self::DEMO {
            return Ok(Self { provider: text.into(), name: text.into() });
        }
        let plain = |part: &str, extra: &[u8]| {
            !part.is_empty()
                && part.len() <= 120
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || extra.contains(&b))
        };
        match text.split_once('/') {
            Some((provider, name)) if plain(provider, b"-_") && plain(name, b"-_./:@+") => {
                Ok(Self { provider: provider.into(), name: name.into() })
            }
            _ => Err(InvalidModelName(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_demo() && &*self.name == Self::DEMO {
            f.write_str(Self::DEMO)
        } else {
            write!(f, "{}/{}", self.provider, self.name)
        }
    }
}

impl TryFrom<String> for ModelName {
    type Error = InvalidModelName;

    fn try_from(text: String) -> Result<Self, InvalidModelName> {
        text.parse()
    }
}

impl From<ModelName> for String {
    fn from(model: ModelName) -> Self {
        model.to_string()
    }
}

/// The purpose of a request. Never sent to a provider: it names traces, groups costs and tells the
/// demo model what to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[derive(ts_rs::TS)]
pub enum CallPurpose {
    /// A user's question (`moothall ask`).
    Ask,
    /// A small call that tests whether a model is reachable (`moothall models --check`).
    Probe,
    /// Write a program that solves a task (`moothall run`).
    Generate,
    /// Explain why a program did not solve its task (`moothall run`).
    Critique,
    /// Invent financial data (`moothall consult --source synthetic`).
    SynthesizeFinancials,
    /// Invent news (`moothall consult --source synthetic`).
    SynthesizeNews,
    /// Interpret the numbers: F1 (`moothall consult`).
    InferFinancial,
    /// Interpret the events and texts: F2 (`moothall consult`).
    InferTrend,
    /// Propose moves (`moothall consult`).
    Analyst,
    /// Criticize a move (`moothall consult`).
    Critic,
    /// Defend a move (`moothall consult`).
    DecisionMaker,
    /// Score a move after its debate (`moothall consult`).
    Score,
    /// Score m0, doing nothing, which is not debated (`moothall consult`).
    ScoreNothing,
    /// Score a move without a debate (`moothall consult --baseline`).
    ScoreBaseline,
    /// Score a case as a member of the blind panel (`moothall consult --verdict full`).
    PanelScore,
    /// State chances about later filings as a member of the panel (`forecasts` in `[verdict]`).
    Forecast,
    /// Choose and change files (`moothall edit`).
    Edit,
    /// Review a draft before the gate decides (`[review] model` in a policy).
    Review,
}

/// One call to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// The model to call.
    pub model: ModelName,
    /// Models to call instead if it is unavailable, in order of preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelName>,
    /// What the call is for.
    pub purpose: CallPurpose,
    /// System prompt, most widely shared blocks first, because providers cache by prefix.
    pub system: Vec<PromptBlock>,
    /// The conversation so far, oldest first.
    pub turns: Vec<PromptTurn>,
    /// Limit on output tokens, including reasoning.
    pub max_tokens: u32,
    /// Sent only to models that support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Reasoning effort; sent only to models that support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// JSON schema of the reply, if it must be JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<OutputSchema>,
    /// Time limit of one attempt. Defaults to the gateway's timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A block of prompt text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptBlock {
    /// Shared between requests, because hundreds of pending calls contain the same evidence.
    pub text: PromptText,
    /// Asks the provider to cache everything up to the end of this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDuration>,
}

impl PromptBlock {
    /// A block without a cache breakpoint.
    pub fn new(text: impl Into<PromptText>) -> Self {
        Self { text: text.into(), cache: None }
    }

    fn hashed(&self) -> HashedBlock {
        HashedBlock { cache: self.cache, sha256: self.text.sha256() }
    }

    /// Makes the end of this block a cache breakpoint.
    #[must_use]
    pub fn cached(self, cache: CacheDuration) -> Self {
        Self { cache: Some(cache), ..self }
    }
}

/// How long a provider keeps a cached prefix after its last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheDuration {
    /// The default; cheaper to write.
    FiveMinutes,
    /// More expensive to write; for prompts reused over a longer time.
    OneHour,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptTurn {
    /// Its author.
    pub role: PromptRole,
    /// Its text.
    pub block: PromptBlock,
}

impl PromptTurn {
    fn hashed(&self) -> HashedTurn {
        HashedTurn { block: self.block.hashed(), role: self.role }
    }

    /// A message to the model.
    pub fn user(text: impl Into<PromptText>) -> Self {
        Self { role: PromptRole::User, block: PromptBlock::new(text) }
    }

    /// An earlier reply of the model.
    pub fn assistant(text: impl Into<PromptText>) -> Self {
        Self { role: PromptRole::Assistant, block: PromptBlock::new(text) }
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Sampling temperature in thousandths, so that requests hash without floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Temperature(u16);

impl TryFrom<u16> for Temperature {
    type Error = &'static str;

    fn try_from(thousandths: u16) -> Result<Self, Self::Error> {
        Self::from_thousandths(thousandths).ok_or("temperature must be at most 2000 thousandths")
    }
}

impl From<Temperature> for u16 {
    fn from(temperature: Temperature) -> Self {
        temperature.0
    }
}

impl Temperature {
    /// Deterministic sampling: always the most likely token.
    pub const ZERO: Self = Self(0);

    /// From 0 to 2000 thousandths, the range providers share.
    pub fn from_thousandths(thousandths: u16) -> Option<Self> {
        (thousandths <= 2000).then_some(Self(thousandths))
    }

    /// The decimal number used in provider APIs.
    pub fn as_decimal(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// How much a reasoning model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningEffort {
    /// The lowest effort.
    Low,
    /// The provider's medium effort.
    Medium,
    /// Slow, thorough and expensive.
    High,
}

/// A JSON schema with its exact text. Models answer in the order of its fields, and its hash covers
/// these bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedSchema")]
pub struct OutputSchema {
    name: Arc<str>,
    text: Arc<str>,
}

/// An unvalidated schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedSchema {
    name: String,
    text: String,
}

impl TryFrom<UncheckedSchema> for OutputSchema {
    type Error = InvalidSchema;

    fn try_from(written: UncheckedSchema) -> Result<Self, InvalidSchema> {
        Self::parse(&written.name, &written.text)
    }
}

/// The text is not a valid output schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSchema {
    /// The text is not JSON.
    #[error("the schema is not JSON: {0}")]
    NotJson(String),
    /// Providers accept only objects.
    #[error("the schema is not a JSON object")]
    NotAnObject,
}

impl OutputSchema {
    /// Parses a schema and stores it in compact form.
    pub fn parse(name: &str, text: &str) -> Result<Self, InvalidSchema> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| InvalidSchema::NotJson(error.to_string()))?;
        if !value.is_object() {
            return Err(InvalidSchema::NotAnObject);
        }
        Ok(Self::compact(name, &value))
    }

    /// Generates the schema of a Rust type.
    pub fn of<T: JsonSchema>(name: &str) -> Self {
        Self::compact(name, schemars::schema_for!(T).as_value())
    }

    /// The schema of an object.
    pub fn of_object(name: &str, schema: Map<String, Value>) -> Self {
        Self::compact(name, &Value::Object(schema))
    }

    fn compact(name: &str, value: &Value) -> Self {
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .take(60)
            .collect();
        Self { name: name.into(), text: value.to_string().into() }
    }

    /// A short name, which providers require.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema as compact JSON, with fields in their original order.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Allowance for tokens that providers add to a prompt: chat templates and instructions for
/// structured output. The longest seen are well below one hundred tokens.
const HIDDEN_TEMPLATE_TOKENS: u64 = 512;

impl ModelRequest {
    /// Creates a request with a single question and default settings.
    pub fn ask(model: ModelName, question: impl Into<PromptText>, max_tokens: u32) -> Self {
        Self {
            model,
            fallbacks: Vec::new(),
            purpose: CallPurpose::Ask,
            system: Vec::new(),
            turns: vec![PromptTurn::user(question)],
            max_tokens,
            temperature: None,
            effort: None,
            schema: None,
            timeout_ms: None,
        }
    }

    /// Hashes everything the provider sees, and the fallbacks; purpose and timeout are left out. Texts and the schema
    /// are included by their hashes, and the hash of a shared text is computed only once.
    pub fn hash(&self) -> Result<Sha256Hex, CanonicalJsonError> {
        let text = serde_json::to_string(&self.hashed())
            .map_err(|error| CanonicalJsonError::Serialise(error.to_string()))?;
        Ok(Sha256Hex::of(text.as_bytes()))
    }

    fn hashed(&self) -> HashedRequest<'_> {
        HashedRequest {
            effort: self.effort,
            fallbacks: &self.fallbacks,
            max_tokens: self.max_tokens,
            model: &self.model,
            schema: self.schema.as_ref().map(|schema| HashedSchema {
                name: &schema.name,
                sha256: Sha256Hex::of(schema.text.as_bytes()),
            }),
            system: self.system.iter().map(PromptBlock::hashed).collect(),
            temperature: self.temperature,
            turns: self.turns.iter().map(PromptTurn::hashed).collect(),
        }
    }

    /// The model to call and its fallbacks.
    pub fn candidates(&self) -> impl Iterator<Item = &ModelName> {
        std::iter::once(&self.model).chain(&self.fallbacks)
    }

    /// The model that gave this reply.
    pub fn answered_by<'a>(&'a self, reply: &'a ModelReply) -> &'a ModelName {
        reply.fallback.as_ref().map_or(&self.model, |fallback| &fallback.model)
    }

    /// All texts that count as prompt tokens.
    pub fn prompt_texts(&self) -> impl Iterator<Item = &str> {
        let schema = self.schema.iter().map(OutputSchema::text);
        self.blocks().map(|block| &*block.text).chain(schema)
    }

    /// Upper bound on the prompt tokens, for budget reservations.
    pub fn prompt_tokens_at_most(&self) -> u64 {
        let framing = HIDDEN_TEMPLATE_TOKENS + 16 * self.blocks().count() as u64;
        self.prompt_texts().map(tokens_at_most).sum::<u64>() + framing
    }

    /// Estimated prompt tokens.
    pub fn prompt_tokens_expected(&self) -> u64 {
        let blocks = self.blocks().map(|block| block.text.tokens_expected()).sum::<u64>();
        let schema = self.schema.as_ref().map_or(0, |schema| tokens_expected(schema.text()));
        blocks + schema + self.framing_tokens()
    }

    /// All blocks, system prompt first.
    pub fn blocks(&self) -> impl Iterator<Item = &PromptBlock> {
        self.system.iter().chain(self.turns.iter().map(|turn| &turn.block))
    }

    /// Tokens added by a chat template: role markers around each message and a fixed header
    /// (llama.cpp's default system text is the longest seen).
    fn framing_tokens(&self) -> u64 {
        24 + 8 * self.blocks().count() as u64
    }
}

/// The hashed form of a request: everything the provider sees, with texts replaced by their hashes.
/// The fields are in canonical JSON order, so no tree has to be built and sorted for each call.
#[derive(Serialize)]
struct HashedRequest<'a> {
    effort: Option<ReasoningEffort>,
    /// Left out if empty, so that requests without fallbacks keep their hash.
    #[serde(skip_serializing_if = "<[ModelName]>::is_empty")]
    fallbacks: &'a [ModelName],
    max_tokens: u32,
    model: &'a ModelName,
    schema: Option<HashedSchema<'a>>,
    system: Vec<HashedBlock>,
    temperature: Option<Temperature>,
    turns: Vec<HashedTurn>,
}

#[derive(Serialize)]
struct HashedSchema<'a> {
    name: &'a str,
    sha256: Sha256Hex,
}

#[derive(Serialize)]
struct HashedBlock {
    cache: Option<CacheDuration>,
    sha256: Sha256Hex,
}

#[derive(Serialize)]
struct HashedTurn {
    block: HashedBlock,
    role: PromptRole,
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
