//! The table as it stands in files.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::price::{Price, Prices};
use crate::settings::Wire;

/// Why a table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Not TOML, or not the keys and types of a table.
    #[error("the table cannot be read: {0}")]
    Unreadable(String),
    /// A model row whose name is not `provider/name`.
    #[error("`{0}` does not name a model; write provider/name")]
    BadModelName(String),
    /// A new provider without an address.
    #[error("provider `{0}` is not built in and has no base_url")]
    NoAddress(String),
    /// An address we will not send a key to.
    #[error("the base_url of provider `{provider}` cannot be used: {reason}")]
    BadAddress {
        /// Whose address.
        provider: String,
        /// Why.
        reason: &'static str,
    },
    /// A limit of nothing at all.
    #[error("provider `{0}` allows no concurrent calls")]
    Zero(String),
}

/// Which JSON schemas a provider's decoder takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaForm {
    /// Any schema.
    #[default]
    Full,
    /// No ranges, lengths or patterns; every object closed.
    Subset,
    /// As `Subset`, and held to it only where every field is required.
    Strict,
}

pub(super) const MAX_TOKENS: &str = "max_tokens";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) dated: Option<String>,
    #[serde(default)]
    pub(super) provider: BTreeMap<String, ProviderRow>,
    #[serde(default)]
    pub(super) model: BTreeMap<String, ModelRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderRow {
    pub(super) wire: Wire,
    pub(super) base_url: String,
    #[serde(default)]
    pub(super) key_env: Vec<String>,
    pub(super) default_model: Option<String>,
    #[serde(default)]
    pub(super) free: bool,
    #[serde(default)]
    pub(super) schema: SchemaForm,
    #[serde(default = "max_tokens")]
    pub(super) max_tokens_field: String,
    #[serde(default)]
    pub(super) cache_control_in_parts: bool,
    pub(super) concurrent: Option<u32>,
    pub(super) timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelRow {
    pub(super) context: Option<u64>,
    pub(super) max_output: Option<u32>,
    pub(super) temperature: bool,
    pub(super) effort: bool,
    pub(super) structured: bool,
    pub(super) cache_minimum: Option<u64>,
    pub(super) price: Option<Price>,
    pub(super) price_above: Option<PriceAbove>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceAbove {
    prompt_tokens: u64,
    #[serde(flatten)]
    price: Price,
}

impl Default for ModelRow {
    /// What holds for most models, so that an unlisted one works.
    fn default() -> Self {
        Self {
            context: None,
            max_output: None,
            temperature: true,
            effort: false,
            structured: true,
            cache_minimum: None,
            price: None,
            price_above: None,
        }
    }
}

impl ModelRow {
    pub(super) fn prices(&self) -> Option<Prices> {
        let above = self.price_above.as_ref().map(|above| (above.prompt_tokens, above.price));
        self.price.map(|price| Prices::new(price, above))
    }
}

impl Table {
    pub(super) fn parse(text: &str) -> Result<Self, CatalogError> {
        toml::from_str(text).map_err(|error| CatalogError::Unreadable(error.to_string()))
    }
}

/// An address that paths can be added to and keys may be sent to.
pub(super) fn checked_address(provider: &str, base_url: &str) -> Result<String, CatalogError> {
    let bad = |reason| CatalogError::BadAddress { provider: provider.to_owned(), reason };
    let url = reqwest::Url::parse(base_url).map_err(|_| bad("it is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("it must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "it holds a user name or password; keys come from the environment or a key file",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it holds a query or fragment"));
    }
    // As the parser understood it, so that what was looked at is what is used.
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn max_tokens() -> String {
    MAX_TOKENS.to_owned()
}
