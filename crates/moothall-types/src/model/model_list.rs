//! A model and its fallbacks.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::request::{InvalidModelName, ModelName};

/// A model, and the models to use when it is unavailable, in order of preference. A user writes
/// `openai/gpt-5-mini,anthropic/claude-haiku-5-5`, or a list in a file. A single model is stored as
/// plain text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "ModelChoice", into = "ModelChoice")]
pub struct ModelList {
    first: ModelName,
    fallbacks: Vec<ModelName>,
}

/// Why models cannot be a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModelList {
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidModelName),
    /// The list is empty.
    #[error("the list of models is empty")]
    Empty,
    /// Too many models.
    #[error("too many models in one list: {0} (limit: {limit})", limit = ModelList::MAX_MODELS)]
    TooMany(usize),
    /// A model is in the list twice.
    #[error("`{0}` is in the list twice")]
    Repeated(ModelName),
    /// Scripted answers would replace real ones, or the other way round.
    #[error("the demo model and `{0}` cannot replace each other")]
    MixesDemo(ModelName),
}

/// Models as users write them in a file or request, not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a model such as \"openai/gpt-5-mini\", or a list of models"
)]
#[derive(ts_rs::TS)]
pub enum ModelChoice {
    /// One model, or several separated by commas.
    One(String),
    /// Several models in order of preference.
    Several(Vec<String>),
}

impl ModelChoice {
    /// Checks the models.
    pub fn parse(&self) -> Result<ModelList, InvalidModelList> {
        match self {
            Self::One(text) => text.parse(),
            Self::Several(names) => ModelList::parse(names),
        }
    }

    /// Whether it names no model.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::One(text) => text.is_empty(),
            Self::Several(names) => names.is_empty(),
        }
    }
}

impl ModelList {
    /// Maximum length, so that a call to unavailable models ends.
    pub const MAX_MODELS: usize = 4;

    /// Checks a list in order of preference.
    pub fn new(models: Vec<ModelName>) -> Result<Self, InvalidModelList> {
        if models.len() > Self::MAX_MODELS {
            return Err(InvalidModelList::TooMany(models.len()));
        }
        for (at, model) in models.iter().enumerate() {
            if models.iter().take(at).any(|earlier| earlier == model) {
                return Err(InvalidModelList::Repeated(model.clone()));
            }
        }
        let has_demo = models.iter().any(ModelName::is_demo);
        if let Some(real) = models.iter().find(|model| has_demo && !model.is_demo()) {
            return Err(InvalidModelList::MixesDemo(real.clone()));
        }
        let mut models = models.into_iter();
        let first = models.next().ok_or(InvalidModelList::Empty)?;
        Ok(Self { first, fallbacks: models.collect() })
    }

    /// Checks a list of names.
    pub fn parse<Name: AsRef<str>>(
        names: impl IntoIterator<Item = Name>,
    ) -> Result<Self, InvalidModelList> {
        let parse = |name: Name| name.as_ref().trim().parse::<ModelName>();
        Self::new(names.into_iter().map(parse).collect::<Result<_, _>>()?)
    }

    /// The preferred model.
    pub fn first(&self) -> &ModelName {
        &self.first
    }

    /// The models that replace it, in order of preference.
    pub fn fallbacks(&self) -> &[ModelName] {
        &self.fallbacks
    }

    /// All models, the preferred one first.
    pub fn iter(&self) -> impl Iterator<Item = &ModelName> {
        std::iter::once(&self.first).chain(&self.fallbacks)
    }
}

impl From<ModelName> for ModelList {
    fn from(first: ModelName) -> Self {
        Self { first, fallbacks: Vec::new() }
    }
}

impl FromStr for ModelList {
    type Err = InvalidModelList;

    fn from_str(text: &str) -> Result<Self, InvalidModelList> {
        Self::parse(text.split(','))
    }
}

/// For people: `openai/gpt-5-mini or anthropic/claude-haiku-5-5`.
impl fmt::Display for ModelList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.fallbacks.iter().try_for_each(|model| write!(f, " or {model}"))
    }
}

impl TryFrom<ModelChoice> for ModelList {
    type Error = InvalidModelList;

    fn try_from(text: ModelChoice) -> Result<Self, InvalidModelList> {
        text.parse()
    }
}

impl From<ModelList> for ModelChoice {
    fn from(models: ModelList) -> Self {
        match models.fallbacks.as_slice() {
            [] => Self::One(models.first.to_string()),
            _ => Self::Several(models.iter().map(ToString::to_string).collect()),
        }
    }
}

#[cfg(test)]
#[path = "model_list_tests.rs"]
mod tests;
