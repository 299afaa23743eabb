//! Prompt texts by revision.
//!
//! A run stores the revision it was started with. Replays compare request hashes, so a run of an
//! older version can only be resumed and verified with the requests of that version.

use serde::{Deserialize, Serialize};

use crate::own_texts::OwnTexts;
use crate::text::fill;

/// The prompts, output schemas and parsing rules of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub enum PromptRevision {
    /// Runs started before revisions were stored.
    V1,
    /// One schema per question with all bounds in it; missing scores are not replaced.
    #[default]
    V2,
}

impl PromptRevision {
    /// The revision for new runs.
    pub const CURRENT: Self = Self::V2;

    /// The revision of inputs without this field.
    pub(crate) fn unstored() -> Self {
        Self::V1
    }

    /// Whether the field is left out, as in inputs of older versions.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_unstored(&self) -> bool {
        *self == Self::V1
    }
}

/// A stored revision that this version does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown prompt revision {0}: the run was started by a newer version of moothall")]
pub struct UnknownRevision(u32);

impl TryFrom<u32> for PromptRevision {
    type Error = UnknownRevision;

    fn try_from(number: u32) -> Result<Self, UnknownRevision> {
        match number {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            other => Err(UnknownRevision(other)),
        }
    }
}

impl From<PromptRevision> for u32 {
    fn from(revision: PromptRevision) -> Self {
        match revision {
            PromptRevision::V1 => 1,
            PromptRevision::V2 => 2,
        }
    }
}

/// One prompt text in every revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptTemplate {
    pub(crate) name: &'static str,
    /// Its purpose; empty if users cannot replace it.
    pub(crate) purpose: &'static str,
    pub(crate) v1: &'static str,
    pub(crate) v2: &'static str,
}

/// Where the texts of a run come from: its revision, and the user's own texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptTexts<'a> {
    pub(crate) revision: PromptRevision,
    pub(crate) own: Option<&'a OwnTexts>,
}

impl From<PromptRevision> for PromptTexts<'_> {
    fn from(revision: PromptRevision) -> Self {
        Self { revision, own: None }
    }
}

impl PromptTemplate {
    /// The built-in text.
    pub(crate) fn built_in(self, revision: PromptRevision) -> &'static str {
        match revision {
            PromptRevision::V1 => self.v1,
            PromptRevision::V2 => self.v2,
        }
    }

    /// The user's own text, else the built-in one.
    pub(crate) fn text<'a>(self, texts: impl Into<PromptTexts<'a>>) -> &'a str {
        let PromptTexts { revision, own } = texts.into();
        own.and_then(|own| own.get(self.name)).unwrap_or_else(|| self.built_in(revision))
    }

    /// The text with each `{{name}}` replaced.
    pub(crate) fn fill<'a>(
        self,
        texts: impl Into<PromptTexts<'a>>,
        values: &[(&str, &str)],
    ) -> String {
        fill(self.text(texts), values)
    }
}

/// A [`PromptTemplate`] from `prompts/v1/NAME.txt` and `prompts/NAME.md` next to the calling file.
/// A purpose makes it replaceable; the module then lists it in its `TEMPLATES`.
macro_rules! template {
    ($name:literal $(, $purpose:literal)?) => {
        $crate::prompt_revision::PromptTemplate {
            name: $name,
            purpose: concat!("" $(, $purpose)?),
            v1: include_str!(concat!("prompts/v1/", $name, ".txt")),
            v2: include_str!(concat!("prompts/", $name, ".md")),
        }
    };
}

pub(crate) use template;
