//! The dated table of providers and models, and what users add to it.

mod price;
mod rows;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use moothall_core::model::ModelName;

pub use self::price::{Price, Prices};
pub use self::rows::{CatalogError, SchemaForm};
use self::rows::{ModelRow, ProviderRow, Table};
use crate::settings::{ProviderSettings, Wire};

const BUILT_IN: &str = include_str!("catalog/catalog.toml");

/// How long one try may take where nothing else is said: long answers of thinking models take
/// minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(180);

/// Calls at once to one model where nothing else is said.
const DEFAULT_CONCURRENT: u32 = 8;

/// Providers and models with all layers merged: built-in rows, the user's rows, the user's
/// settings.
#[derive(Debug, Clone)]
pub struct Catalog {
    dated: String,
    providers: BTreeMap<String, Provider>,
    models: BTreeMap<String, ModelRow>,
}

/// One provider, ready to be spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// Its name in `provider/model`.
    pub name: String,
    /// Which language it speaks.
    pub wire: Wire,
    /// What the wire's paths are added to.
    pub base_url: String,
    /// Whether the address is the user's own instead of the built-in one; then a key is sent if
    /// there is one, but none is demanded.
    pub own_address: bool,
    /// Environment variables that may hold its key, best first.
    pub key_env: Vec<String>,
    /// The model that is asked when only the provider is known.
    pub default_model: Option<String>,
    /// What it costs nothing to ask: it runs on the user's machine.
    pub free: bool,
    /// Which JSON schemas its decoder takes.
    pub schema: SchemaForm,
    /// The name of the field that limits the answer, on the OpenAI wire.
    pub max_tokens_field: String,
    /// Whether cache breakpoints go into message parts, on the OpenAI wire.
    pub cache_control_in_parts: bool,
    /// How hard it may be pressed.
    pub limits: Limits,
    /// How long one try may take.
    pub timeout: Duration,
}

/// How hard one model of a provider may be pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests started in any minute.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens in any minute.
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Calls under way at once.
    pub concurrent: NonZeroU32,
}

/// What is known about one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCard {
    /// The model.
    pub model: ModelName,
    /// Its window in tokens, where known.
    pub context: Option<u64>,
    /// The longest answer, where known.
    pub max_output: Option<u32>,
    /// Whether it takes a temperature.
    pub temperature: bool,
    /// Whether it takes an effort.
    pub effort: bool,
    /// Whether the provider can hold it to a JSON schema.
    pub structured: bool,
    /// The shortest prefix that is cached, where known.
    pub cache_minimum: Option<u64>,
    /// What it costs; absent where unknown.
    pub prices: Option<Prices>,
    /// Whether the table has a row for it.
    pub listed: bool,
}

impl Catalog {
    /// The built-in table.
    pub fn built_in() -> Result<Self, CatalogError> {
        let mut catalog =
            Self { dated: String::new(), providers: BTreeMap::new(), models: BTreeMap::new() };
        catalog.add(BUILT_IN)?;
        Ok(catalog)
    }

    /// Adds the rows of a table in the same form; rows with the same name are replaced.
    pub fn add(&mut self, text: &str) -> Result<(), CatalogError> {
        let table = Table::parse(text)?;
        if let Some(dated) = table.dated {
            self.dated = dated;
        }
        for (name, row) in table.provider {
            let provider = Provider::from_row(&name, row)?;
            self.providers.insert(name, provider);
        }
        for (name, row) in table.model {
            let model: ModelName =
                name.parse().map_err(|_| CatalogError::BadModelName(name.clone()))?;
            self.models.insert(model.to_string(), row);
        }
        Ok(())
    }

    /// Applies the user's `[provider.NAME]` sections. A new name with an address defines a
    /// provider.
    pub fn configure(
        &mut self,
        settings: &BTreeMap<String, ProviderSettings>,
    ) -> Result<(), CatalogError> {
        for (name, own) in settings {
            let mut provider = match (self.providers.get(name).cloned(), &own.base_url) {
                (Some(provider), _) => provider,
                (None, Some(base_url)) => Provider::compatible(name, base_url),
                (None, None) => return Err(CatalogError::NoAddress(name.clone())),
            };
            provider.apply(own)?;
            self.providers.insert(name.clone(), provider);
        }
        Ok(())
    }

    /// The date of the newest rows.
    pub fn dated(&self) -> &str {
        &self.dated
    }

    /// All providers by name.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values()
    }

    /// One provider.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name)
    }

    /// Cards of all listed models of a provider, by name.
    pub fn models_of(&self, provider: &str) -> Vec<ModelCard> {
        let names = self.models.keys().filter_map(|name| name.parse::<ModelName>().ok());
        names.filter(|model| model.provider() == provider).map(|model| self.card(&model)).collect()
    }

    /// What is known about a model. An unlisted one gets the most careful assumptions and no price.
    pub fn card(&self, model: &ModelName) -> ModelCard {
        if model.is_demo() {
            return ModelCard::demo(model);
        }
        let free = self.provider(model.provider()).is_some_and(|provider| provider.free);
        let row = self.models.get(&model.to_string());
        let listed = row.is_some();
        let row = row.cloned().unwrap_or_default();
        ModelCard {
            model: model.clone(),
            context: row.context,
            max_output: row.max_output,
            temperature: row.temperature,
            effort: row.effort,
            structured: row.structured,
            cache_minimum: row.cache_minimum,
            prices: row.prices().or_else(|| free.then(Prices::free)),
            listed,
        }
    }
}

impl ModelCard {
    fn demo(model: &ModelName) -> Self {
        Self {
            model: model.clone(),
            context: None,
            max_output: None,
            temperature: true,
            effort: true,
            structured: true,
            cache_minimum: None,
            prices: Some(Prices::free()),
            listed: true,
        }
    }
}

impl Provider {
    fn from_row(name: &str, row: ProviderRow) -> Result<Self, CatalogError> {
        let concurrent = NonZeroU32::new(row.concurrent.unwrap_or(DEFAULT_CONCURRENT))
            .ok_or_else(|| CatalogError::Zero(name.to_owned()))?;
        Ok(Self {
            name: name.to_owned(),
            wire: row.wire,
            base_url: rows::checked_address(name, &row.base_url)?,
            own_address: false,
            key_env: row.key_env,
            default_model: row.default_model,
            free: row.free,
            schema: row.schema,
            max_tokens_field: row.max_tokens_field,
            cache_control_in_parts: row.cache_control_in_parts,
            limits: Limits { requests_per_minute: None, tokens_per_minute: None, concurrent },
            timeout: row.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
        })
    }

    /// A provider that is known by its address alone and speaks the OpenAI wire, as most servers
    /// do.
    fn compatible(name: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            wire: Wire::OpenAiChat,
            base_url: base_url.to_owned(),
            own_address: true,
            key_env: vec![key_variable_of(name)],
            default_model: None,
            free: false,
            schema: SchemaForm::Full,
            max_tokens_field: rows::MAX_TOKENS.to_owned(),
            cache_control_in_parts: false,
            limits: Limits {
                requests_per_minute: None,
                tokens_per_minute: None,
                concurrent: NonZeroU32::MIN.saturating_add(DEFAULT_CONCURRENT - 1),
            },
            timeout: DEFAULT_TIMEOUT,
        }
    }

    fn apply(&mut self, own: &ProviderSettings) -> Result<(), CatalogError> {
        if let Some(base_url) = &own.base_url {
            self.base_url = rows::checked_address(&self.name, base_url)?;
            self.own_address = true;
            // A server that is only compatible may enforce more than the original or less; the
            // plain form is understood by all.
            self.schema = SchemaForm::Full;
        }
        if let Some(wire) = own.wire {
            self.wire = wire;
        }
        if let Some(key_env) = &own.key_env {
            self.key_env = vec![key_env.clone()];
        }
        if let Some(timeout) = own.timeout {
            self.timeout = timeout;
        }
        self.default_model = own.default_model.clone().or_else(|| self.default_model.take());
        self.limits = Limits {
            requests_per_minute: own.requests_per_minute.or(self.limits.requests_per_minute),
            tokens_per_minute: own.tokens_per_minute.or(self.limits.tokens_per_minute),
            concurrent: own.concurrent.unwrap_or(self.limits.concurrent),
        };
        Ok(())
    }

    /// Whether calls without a key are pointless.
    pub fn needs_key(&self) -> bool {
        !self.key_env.is_empty() && !self.own_address && !self.free
    }
}

/// The variable that holds the key of a provider which names no other.
pub fn key_variable_of(provider: &str) -> String {
    format!("{}_API_KEY", provider.to_ascii_uppercase().replace('-', "_"))
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
