//! The catalog's file format.

use std::collections::BTreeMap;

use moothall_core::evidence::CalendarDay;
use serde::Deserialize;

use super::price::{ModelPrices, TokenPrice};
use crate::settings::{AuthScheme, WireFormat};

/// Why a catalog file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The file is not TOML or does not match the format.
    #[error("cannot read the catalog: {0}")]
    Unreadable(String),
    /// The name of a model row is not `provider/name`.
    #[error("`{0}` is not a model name; expected provider/name")]
    BadModelName(String),
    /// A new provider has no address.
    #[error("provider `{0}` is not built in and has no `base_url`")]
    NoAddress(String),
    /// The address is not safe to send an API key to.
    #[error("invalid `base_url` of provider `{provider}`: {reason}")]
    BadAddress { provider: String, reason: &'static str },
    /// A part of the address has characters that an address cannot contain.
    #[error("`{setting}` of provider `{provider}` is not a name: use letters, digits and `-`")]
    BadAddressPart { provider: String, setting: &'static str },
    /// Both prices are needed.
    #[error("provider `{0}` has only one of `price_input` and `price_output`")]
    HalfAPrice(String),
    /// The concurrency limit is zero.
    #[error("provider `{0}` allows no concurrent calls")]
    Zero(String),
}

/// The JSON schemas a provider supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaForm {
    /// Any schema.
    #[default]
    Full,
    /// No ranges, lengths or patterns; all objects disallow additional properties.
    Subset,
    /// Like `Subset`; enforced only if every field is required.
    Strict,
}

pub(crate) const MAX_TOKENS: &str = "max_tokens";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CatalogFile {
    pub(crate) dated: Option<String>,
    #[serde(default)]
    pub(crate) provider: BTreeMap<String, ProviderRow>,
    #[serde(default)]
    pub(crate) model: BTreeMap<String, ModelRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderRow {
    pub(crate) wire: WireFormat,
    /// May contain `{resource}`, `{project}` and `{region}`, which the user sets.
    pub(crate) base_url: String,
    /// The region if the user sets none.
    pub(crate) region: Option<String>,
    pub(crate) auth: Option<AuthScheme>,
    /// Appended to the base URL for the cheapest request that needs a valid key.
    pub(crate) key_test_path: Option<String>,
    #[serde(default)]
    pub(crate) key_env: Vec<String>,
    pub(crate) default_model: Option<String>,
    #[serde(default)]
    pub(crate) free: bool,
    #[serde(default)]
    pub(crate) schema: SchemaForm,
    #[serde(default = "max_tokens")]
    pub(crate) max_tokens_field: String,
    #[serde(default)]
    pub(crate) cache_control_in_parts: bool,
    /// Whether usage in a stream must be requested; some providers refuse the field and always send
    /// usage.
    #[serde(default = "yes")]
    pub(crate) stream_options: bool,
    pub(crate) concurrent: Option<u32>,
    pub(crate) timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelRow {
    pub(crate) context: Option<u64>,
    pub(crate) max_output: Option<u32>,
    pub(crate) temperature: bool,
    pub(crate) effort: bool,
    pub(crate) structured: bool,
    pub(crate) cache_minimum: Option<u64>,
    pub(crate) price: Option<TokenPrice>,
    pub(crate) price_above: Option<LongPromptPrice>,
    /// The last day that its training data covers.
    pub(crate) knowledge_until: Option<CalendarDay>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongPromptPrice {
    prompt_tokens: u64,
    #[serde(flatten)]
    price: TokenPrice,
}

impl Default for ModelRow {
    /// Defaults that fit most models, so that unlisted models work.
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
            knowledge_until: None,
        }
    }
}

impl ModelRow {
    pub(crate) fn prices(&self) -> Option<ModelPrices> {
        let above = self.price_above.as_ref().map(|above| (above.prompt_tokens, above.price));
        self.price.map(|price| ModelPrices::new(price, above))
    }
}

impl CatalogFile {
    pub(crate) fn parse(text: &str) -> Result<Self, CatalogError> {
        toml::from_str(text).map_err(|error| CatalogError::Unreadable(error.to_string()))
    }
}

/// Validates an address to which API paths are appended and keys are sent.
pub(crate) fn checked_address(provider: &str, base_url: &str) -> Result<String, CatalogError> {
    let bad = |reason| CatalogError::BadAddress { provider: provider.to_owned(), reason };
    let url = reqwest::Url::parse(base_url).map_err(|_| bad("not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("expected https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(
            "it contains a user name or password; set API keys with `moothall key set`",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it contains a query or fragment"));
    }
    // Return the parsed form, so the validated URL is the one used.
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn yes() -> bool {
    true
}

fn max_tokens() -> String {
    MAX_TOKENS.to_owned()
}
