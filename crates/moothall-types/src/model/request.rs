//! The one request type.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text::PromptText;
use crate::{NotCanonical, Sha256Hex, tokens_at_most, tokens_expected};

/// A model as users write it: `provider/name`, such as `anthropic/claude-haiku-5-5`, or `demo`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[derive(ts_rs::TS)]
#[ts(type = "string")]
pub struct ModelName {
    provider: Arc<str>,
    name: Arc<str>,
}

impl ModelName {
    /// The built-in demonstration model, which needs no key and no network.
    pub const DEMO: &str = "demo";

    /// The part before the first slash.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The part after it, as the provider knows the model; it may contain slashes itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this is the built-in demonstration model.
    pub fn is_demo(&self) -> bool {
        &*self.provider == Self::DEMO
    }
}

/// A text that does not name a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not name a model; write provider/name, such as anthropic/claude-haiku-5-5, or demo"
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
            Some((provider, name))
                if plain(provider, b"-_") && plain(name, b"-_./:@+") && provider != Self::DEMO =>
            {
                Ok(Self { provider: provider.into(), name: name.into() })
            }
            _ => Err(InvalidModelName(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_demo() {
            f.write_str(&self.name)
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

/// For whom a request speaks. It never reaches a provider: it names traces, sums cost by role, and
/// tells the demonstration model what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[derive(ts_rs::TS)]
pub enum Purpose {
    /// A question of the user's own (`moothall ask`).
    Ask,
    /// One small call that shows whether a model can be reached (`moothall models --check`).
    Probe,
    /// Writing a program that solves a task (`moothall run`).
    Generate,
    /// Saying why a program did not solve its task (`moothall run`).
    Critique,
    /// Making up financial data (`moothall consult --source synthetic`).
    SynthesizeFinancials,
    /// Making up news (`moothall consult --source synthetic`).
    SynthesizeNews,
    /// Saying what the numbers mean: F1 (`moothall consult`).
    InferFinancial,
    /// Saying what the events and texts mean: F2 (`moothall consult`).
    InferTrend,
    /// Proposing moves (`moothall consult`).
    Analyst,
    /// Attacking a move (`moothall consult`).
    Critic,
    /// Defending a move (`moothall consult`).
    DecisionMaker,
    /// Scoring a move after its debate (`moothall consult`).
    Score,
    /// Scoring m0, doing nothing, which is not debated (`moothall consult`).
    ScoreNothing,
    /// Scoring a move without a debate (`moothall consult --baseline`).
    ScoreBaseline,
    /// Choosing files and changing them (`moothall edit`).
    Edit,
    /// Looking at a draft before the gate judges it (`[review] model` of a policy).
    Review,
}

/// One call to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequest {
    /// Which model answers.
    pub model: ModelName,
    /// For whom it speaks.
    pub purpose: Purpose,
    /// Instructions, most shared first: providers cache by prefix.
    pub system: Vec<Block>,
    /// The conversation so far, oldest first.
    pub turns: Vec<Turn>,
    /// The most tokens the answer may have, thinking included.
    pub max_tokens: u32,
    /// Sent only to models that take one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// How much a thinking model thinks; sent only to models that take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The JSON the answer must be, where it must be JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<OutputSchema>,
    /// How long one try may take. The gateway has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A piece of prompt text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Shared, because hundreds of waiting calls carry the same evidence.
    pub text: PromptText,
    /// Asks the provider to cache everything up to the end of this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheFor>,
}

impl Block {
    /// Text that is not a cache breakpoint.
    pub fn new(text: impl Into<PromptText>) -> Self {
        Self { text: text.into(), cache: None }
    }

    fn hashed(&self) -> HashedBlock {
        HashedBlock { cache: self.cache, sha256: self.text.sha256() }
    }

    /// Makes the end of this block a cache breakpoint.
    #[must_use]
    pub fn cached(self, cache: CacheFor) -> Self {
        Self { cache: Some(cache), ..self }
    }
}

/// How long a provider keeps a cached prefix after its last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheFor {
    /// The usual and cheaper one.
    FiveMinutes,
    /// Costs more to write; for steps that recur slowly.
    OneHour,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub block: Block,
}

impl Turn {
    fn hashed(&self) -> HashedTurn {
        HashedTurn { block: self.block.hashed(), role: self.role }
    }

    /// Something said to the model.
    pub fn user(text: impl Into<PromptText>) -> Self {
        Self { role: Role::User, block: Block::new(text) }
    }

    /// Something the model said before.
    pub fn assistant(text: impl Into<PromptText>) -> Self {
        Self { role: Role::Assistant, block: Block::new(text) }
    }
}

/// Who says a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Whoever the model answers.
    User,
    /// The model itself, earlier.
    Assistant,
}

/// Sampling temperature in thousandths, so that requests hash without floating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Temperature(u16);

impl TryFrom<u16> for Temperature {
    type Error = &'static str;

    fn try_from(thousandths: u16) -> Result<Self, Self::Error> {
        Self::from_thousandths(thousandths).ok_or("a temperature is at most 2000 thousandths")
    }
}

impl From<Temperature> for u16 {
    fn from(temperature: Temperature) -> Self {
        temperature.0
    }
}

impl Temperature {
    /// Always the likeliest word.
    pub const ZERO: Self = Self(0);

    /// From 0 to 2000 thousandths, the range providers share.
    pub fn from_thousandths(thousandths: u16) -> Option<Self> {
        (thousandths <= 2000).then_some(Self(thousandths))
    }

    /// As the decimal that wires carry.
    pub fn as_decimal(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// How much a thinking model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// The least the model allows.
    Low,
    /// The provider's middle.
    Medium,
    /// Slow, thorough, expensive.
    High,
}

/// A JSON schema with its exact text: the order of fields is the order in which models answer, and
/// the hash is of these bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenSchema")]
pub struct OutputSchema {
    name: Arc<str>,
    text: Arc<str>,
}

/// A schema as it stands in a file, before anyone looked at it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSchema {
    name: String,
    text: String,
}

impl TryFrom<WrittenSchema> for OutputSchema {
    type Error = InvalidSchema;

    fn try_from(written: WrittenSchema) -> Result<Self, InvalidSchema> {
        Self::parse(&written.name, &written.text)
    }
}

/// A text that cannot be an output schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSchema {
    /// The text is not JSON.
    #[error("the schema is not JSON: {0}")]
    NotJson(String),
    /// Providers accept objects only.
    #[error("the schema is not a JSON object")]
    NotAnObject,
}

impl OutputSchema {
    /// Takes a schema as written, in compact form.
    pub fn parse(name: &str, text: &str) -> Result<Self, InvalidSchema> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| InvalidSchema::NotJson(error.to_string()))?;
        if !value.is_object() {
            return Err(InvalidSchema::NotAnObject);
        }
        Ok(Self::compact(name, &value))
    }

    /// The schema of one of our own types.
    pub fn of<T: JsonSchema>(name: &str) -> Self {
        Self::compact(name, schemars::schema_for!(T).as_value())
    }

    fn compact(name: &str, value: &Value) -> Self {
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .take(60)
            .collect();
        Self { name: name.into(), text: value.to_string().into() }
    }

    /// A short name that providers want for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema's JSON, compact, fields in the order they were written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Room for what a provider puts before the prompt without telling: chat templates, instructions for
/// structured output. The longest seen are well below a hundred tokens.
const HIDDEN_TEMPLATE_TOKENS: u64 = 512;

impl ModelRequest {
    /// A question with nothing but its text.
    pub fn ask(model: ModelName, question: impl Into<PromptText>, max_tokens: u32) -> Self {
        Self {
            model,
            purpose: Purpose::Ask,
            system: Vec::new(),
            turns: vec![Turn::user(question)],
            max_tokens,
            temperature: None,
            effort: None,
            schema: None,
            timeout_ms: None,
        }
    }

    /// The hash of what the provider is asked. Purpose and timeout are ours and do not count; texts
    /// and the schema count by the hashes of their bytes, which are computed once for all requests
    /// that share them.
    pub fn hash(&self) -> Result<Sha256Hex, NotCanonical> {
        let text = serde_json::to_string(&self.hashed())
            .map_err(|error| NotCanonical::Serialise(error.to_string()))?;
        Ok(Sha256Hex::of(text.as_bytes()))
    }

    fn hashed(&self) -> Hashed<'_> {
        Hashed {
            effort: self.effort,
            max_tokens: self.max_tokens,
            model: &self.model,
            schema: self.schema.as_ref().map(|schema| HashedSchema {
                name: &schema.name,
                sha256: Sha256Hex::of(schema.text.as_bytes()),
            }),
            system: self.system.iter().map(Block::hashed).collect(),
            temperature: self.temperature,
            turns: self.turns.iter().map(Turn::hashed).collect(),
        }
    }

    /// Every piece of text that becomes prompt tokens.
    pub fn prompt_texts(&self) -> impl Iterator<Item = &str> {
        let schema = self.schema.iter().map(OutputSchema::text);
        self.blocks().map(|block| &*block.text).chain(schema)
    }

    /// A prompt size that is never too small, for reservations.
    pub fn prompt_tokens_at_most(&self) -> u64 {
        let framing = HIDDEN_TEMPLATE_TOKENS + 16 * self.blocks().count() as u64;
        self.prompt_texts().map(tokens_at_most).sum::<u64>() + framing
    }

    /// The prompt size to expect.
    pub fn prompt_tokens_expected(&self) -> u64 {
        let blocks = self.blocks().map(|block| block.text.tokens_expected()).sum::<u64>();
        let schema = self.schema.as_ref().map_or(0, |schema| tokens_expected(schema.text()));
        blocks + schema + self.framing_tokens()
    }

    /// Every block, instructions first.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.system.iter().chain(self.turns.iter().map(|turn| &turn.block))
    }

    /// What a chat template adds: role markers around each message and a fixed head (llama.cpp's
    /// default system text is the longest seen).
    fn framing_tokens(&self) -> u64 {
        24 + 8 * self.blocks().count() as u64
    }
}

/// What a request's hash is of: everything that the provider sees, texts by their hashes. Its fields
/// stand in the order of canonical JSON, so that no tree has to be built and sorted for every call.
#[derive(Serialize)]
struct Hashed<'a> {
    effort: Option<Effort>,
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
    cache: Option<CacheFor>,
    sha256: Sha256Hex,
}

#[derive(Serialize)]
struct HashedTurn {
    block: HashedBlock,
    role: Role,
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
