//! Prompt text shared by many requests.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::{Sha256Hex, tokens_expected};

/// A shared piece of prompt text. Cloning is cheap, and its hash and token count are computed only
/// once: a debate sends the same evidence hundreds of times.
#[derive(Clone)]
pub struct PromptText(Arc<SharedText>);

struct SharedText {
    text: Box<str>,
    sha256: OnceLock<Sha256Hex>,
    tokens: OnceLock<u64>,
}

impl PromptText {
    /// The hash of the text.
    pub fn sha256(&self) -> Sha256Hex {
        *self.0.sha256.get_or_init(|| Sha256Hex::of(self.0.text.as_bytes()))
    }

    /// The estimated token count, see [`tokens_expected`].
    pub fn tokens_expected(&self) -> u64 {
        *self.0.tokens.get_or_init(|| tokens_expected(self))
    }
}

impl Deref for PromptText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl From<Box<str>> for PromptText {
    fn from(text: Box<str>) -> Self {
        Self(Arc::new(SharedText { text, sha256: OnceLock::new(), tokens: OnceLock::new() }))
    }
}

impl From<String> for PromptText {
    fn from(text: String) -> Self {
        text.into_boxed_str().into()
    }
}

impl From<&str> for PromptText {
    fn from(text: &str) -> Self {
        Box::<str>::from(text).into()
    }
}

impl PartialEq for PromptText {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Eq for PromptText {}

impl fmt::Debug for PromptText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for PromptText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl Serialize for PromptText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for PromptText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(String::deserialize(deserializer)?.into())
    }
}

impl Default for PromptText {
    fn default() -> Self {
        "".into()
    }
}
