//! The catalog of providers and models, including user-defined ones.

mod address;
mod catalog_file;
mod price;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use moothall_core::evidence::CalendarDay;
use moothall_core::model::ModelName;
use reqwest::Url;

use self::address::AddressTemplate;
pub use self::catalog_file::{CatalogError, SchemaForm};
use self::catalog_file::{CatalogFile, ModelRow, ProviderRow};
pub use self::price::{ModelPrices, TokenPrice};
use crate::connection::is_loopback;
use crate::settings::{AuthScheme, ProviderSettings, WireFormat};
use crate::wire;

const BUILT_IN: &str = include_str!("catalog/catalog.toml");

/// Default time limit of one attempt. Long replies of reasoning models take minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(180);

/// Default limit of concurrent calls to one model.
const DEFAULT_CONCURRENT: u32 = 8;

/// Providers and models, merged from the built-in rows, the user's rows and the user's settings.
#[derive(Debug, Clone)]
pub struct Catalog {
    dated: String,
    providers: BTreeMap<String, ModelProvider>,
    models: BTreeMap<String, ModelRow>,
}

/// A configured provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    /// Its name in `provider/model`.
    pub name: String,
    /// Its API format.
    pub wire: WireFormat,
    /// The base of its API paths.
    pub base_url: String,
    /// The setting without which the address is incomplete, such as `resource`.
    pub missing: Option<&'static str>,
    /// The region of its servers, for AWS signatures.
    pub region: Option<String>,
    /// How the API key is sent.
    pub auth: AuthScheme,
    /// Appended to the base URL for the cheapest request that needs a valid key.
    pub key_test_path: Option<String>,
    pub connection: ConnectionOptions,
    /// Whether the user set the address. A key is then sent if there is one, but not required.
    pub own_address: bool,
    /// Environment variables for its API key, in order of preference.
    pub key_env: Vec<String>,
    /// The model used if only the provider is given.
    pub default_model: Option<String>,
    /// Whether calls cost nothing because it runs on the user's machine.
    pub free: bool,
    /// The JSON schemas it supports.
    pub schema: SchemaForm,
    /// The request field that limits output tokens, for the OpenAI API format.
    pub max_tokens_field: String,
    /// Whether cache breakpoints are set in message parts, for the OpenAI API format.
    pub cache_control_in_parts: bool,
    /// Whether usage in a stream must be requested, for the OpenAI API format.
    pub stream_options: bool,
    pub limits: ProviderLimits,
    /// Time limit of one attempt.
    pub timeout: Duration,
    /// What the user states about its models.
    pub stated: StatedModel,
    template: AddressTemplate,
}

/// How requests to a provider differ from those of its API format. Without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionOptions {
    pub headers: BTreeMap<String, String>,
    pub query: BTreeMap<String, String>,
    /// Certificates that are trusted in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    pub proxy: Option<String>,
}

/// Properties of a provider's models that the user has set. They replace those of the catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatedModel {
    pub context: Option<u64>,
    pub max_output: Option<u32>,
    pub prices: Option<ModelPrices>,
}

/// Rate limits of one model of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderLimits {
    pub requests_per_minute: Option<NonZeroU32>,
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Concurrent calls.
    pub concurrent: NonZeroU32,
}

/// The capabilities and prices of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCard {
    pub model: ModelName,
    /// The context window in tokens, if known.
    pub context: Option<u64>,
    /// The output token limit, if known.
    pub max_output: Option<u32>,
    /// Whether it accepts a temperature.
    pub temperature: bool,
    /// Whether it accepts a reasoning effort.
    pub effort: bool,
    /// Whether the provider can enforce a JSON schema.
    pub structured: bool,
    /// Minimum length of a cached prefix, if known.
    pub cache_minimum: Option<u64>,
    /// `None` if unknown.
    pub prices: Option<ModelPrices>,
    /// Whether the catalog has a row for it.
    pub listed: bool,
}

impl Catalog {
    /// The built-in catalog.
    pub fn built_in() -> Result<Self, CatalogError> {
        let mut catalog =
            Self { dated: String::new(), providers: BTreeMap::new(), models: BTreeMap::new() };
        catalog.add(BUILT_IN)?;
        Ok(catalog)
    }

    /// Adds rows in the catalog's TOML format; rows with the same name are replaced.
    pub fn add(&mut self, text: &str) -> Result<(), CatalogError> {
        let table = CatalogFile::parse(text)?;
        if let Some(dated) = table.dated {
            self.dated = dated;
        }
        for (name, row) in table.provider {
            let provider = ModelProvider::from_row(&name, row)?;
            self.providers.insert(name, provider);
        }
        for (name, row) in table.model {
            let model: ModelName =
                name.parse().map_err(|_| CatalogError::BadModelName(name.clone()))?;
            self.models.insert(model.to_string(), row);
        }
        Ok(())
    }

    /// Applies the user's `[provider.NAME]` sections. A new name with a `base_url` defines a
    /// provider.
    pub fn configure(
        &mut self,
        settings: &BTreeMap<String, ProviderSettings>,
    ) -> Result<(), CatalogError> {
        for (name, own) in settings {
            let mut provider = match (self.providers.get(name).cloned(), &own.base_url) {
                (Some(provider), _) => provider,
                (None, Some(base_url)) => ModelProvider::compatible(name, base_url),
                (None, None) => return Err(CatalogError::NoAddress(name.clone())),
            };
            provider.apply(own)?;
            self.providers.insert(name.clone(), provider);
        }
        Ok(())
    }

    pub fn dated(&self) -> &str {
        &self.dated
    }

    /// All providers, sorted by name.
    pub fn providers(&self) -> impl Iterator<Item = &ModelProvider> {
        self.providers.values()
    }

    pub fn provider(&self, name: &str) -> Option<&ModelProvider> {
        self.providers.get(name)
    }

    /// The listed models of a provider, sorted by name.
    pub fn models_of(&self, provider: &str) -> Vec<ModelCard> {
        let names = self.models.keys().filter_map(|name| name.parse::<ModelName>().ok());
        names.filter(|model| model.provider() == provider).map(|model| self.card(&model)).collect()
    }

    /// The last day that a model's training data covers, if the catalog states it.
    pub fn knowledge_until(&self, model: &ModelName) -> Option<CalendarDay> {
        self.models.get(&model.to_string())?.knowledge_until
    }

    /// The card of a model. Unlisted models get conservative defaults, and no price unless their
    /// provider is free.
    pub fn card(&self, model: &ModelName) -> ModelCard {
        if model.is_demo() {
            return ModelCard::demo(model);
        }
        let provider = self.provider(model.provider());
        let free = provider.is_some_and(|provider| provider.free);
        let stated = provider.map(|provider| provider.stated).unwrap_or_default();
        let row = self.models.get(&model.to_string());
        let listed = row.is_some();
        let row = row.cloned().unwrap_or_default();
        ModelCard {
            model: model.clone(),
            context: stated.context.or(row.context),
            max_output: stated.max_output.or(row.max_output),
            temperature: row.temperature,
            effort: row.effort,
            structured: row.structured,
            cache_minimum: row.cache_minimum,
            prices: stated.prices.or_else(|| row.prices()).or_else(|| free.then(ModelPrices::free)),
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
            prices: Some(ModelPrices::free()),
            listed: true,
        }
    }
}

impl ModelProvider {
    fn from_row(name: &str, row: ProviderRow) -> Result<Self, CatalogError> {
        let concurrent = NonZeroU32::new(row.concurrent.unwrap_or(DEFAULT_CONCURRENT))
            .ok_or_else(|| CatalogError::Zero(name.to_owned()))?;
        let template = AddressTemplate::new(name, &row.base_url, row.region)?;
        Ok(Self {
            name: name.to_owned(),
            wire: row.wire,
            base_url: template.address(),
            missing: template.missing(),
            region: template.region().map(str::to_owned),
            auth: row.auth.unwrap_or_else(|| wire::endpoint(row.wire).auth),
            key_test_path: row.key_test_path,
            connection: ConnectionOptions::default(),
            own_address: false,
            key_env: row.key_env,
            default_model: row.default_model,
            free: row.free,
            schema: row.schema,
            max_tokens_field: row.max_tokens_field,
            cache_control_in_parts: row.cache_control_in_parts,
            stream_options: row.stream_options,
            limits: ProviderLimits {
                requests_per_minute: None,
                tokens_per_minute: None,
                concurrent,
            },
            timeout: row.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
            stated: StatedModel::default(),
            template,
        })
    }

    /// A user-defined provider, assumed to use the OpenAI API format like most servers, and to be
    /// free on this machine.
    pub(crate) fn compatible(name: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            wire: WireFormat::OpenAiChat,
            base_url: base_url.to_owned(),
            missing: None,
            region: None,
            auth: AuthScheme::Bearer,
            key_test_path: Some("/models".to_owned()),
            connection: ConnectionOptions::default(),
            own_address: true,
            key_env: vec![key_variable_of(name)],
            default_model: None,
            free: is_loopback_address(base_url),
            schema: SchemaForm::Full,
            max_tokens_field: catalog_file::MAX_TOKENS.to_owned(),
            cache_control_in_parts: false,
            stream_options: true,
            limits: ProviderLimits {
                requests_per_minute: None,
                tokens_per_minute: None,
                concurrent: NonZeroU32::MIN.saturating_add(DEFAULT_CONCURRENT - 1),
            },
            timeout: DEFAULT_TIMEOUT,
            stated: StatedModel::default(),
            template: AddressTemplate::default(),
        }
    }

    /// Whether its address is a loopback address.
    pub fn is_on_this_machine(&self) -> bool {
        is_loopback_address(&self.base_url)
    }

    fn apply(&mut self, own: &ProviderSettings) -> Result<(), CatalogError> {
        self.template.set(&self.name, own)?;
        self.base_url = self.template.address_or(&self.base_url);
        self.missing = self.template.missing();
        if let Some(base_url) = &own.base_url {
            self.base_url = catalog_file::checked_address(&self.name, base_url)?;
            self.missing = None;
            // Customers of some providers have their own addresses; it is the same service.
            if !self.template.has_parts() {
                self.own_address = true;
                // A compatible server may enforce more or less than the original; all of them
                // accept the full form.
                self.schema = SchemaForm::Full;
            }
        }
        self.region = self.template.region().map(str::to_owned);
        if let Some(wire) = own.wire {
            self.wire = wire;
            self.auth = wire::endpoint(wire).auth;
        }
        self.auth = own.auth.unwrap_or(self.auth);
        self.connection = ConnectionOptions {
            headers: own.headers.clone(),
            query: own.query.clone(),
            ca_file: own.ca_file.clone(),
            proxy: own.proxy.clone(),
        };
        if let Some(key_env) = &own.key_env {
            self.key_env = vec![key_env.clone()];
        }
        if let Some(timeout) = own.timeout {
            self.timeout = timeout;
        }
        self.default_model = own.default_model.clone().or_else(|| self.default_model.take());
        self.limits = ProviderLimits {
            requests_per_minute: own.requests_per_minute.or(self.limits.requests_per_minute),
            tokens_per_minute: own.tokens_per_minute.or(self.limits.tokens_per_minute),
            concurrent: own.concurrent.unwrap_or(self.limits.concurrent),
        };
        self.stated = StatedModel {
            context: own.context.map(|context| u64::from(context.get())),
            max_output: own.max_output.map(NonZeroU32::get),
            prices: match (own.price_input, own.price_output) {
                (Some(input), Some(output)) => {
                    let price = TokenPrice { input, output, ..TokenPrice::default() };
                    Some(ModelPrices::new(price, None))
                }
                (None, None) => None,
                _ => return Err(CatalogError::HalfAPrice(self.name.clone())),
            },
        };
        Ok(())
    }

    /// Whether customers name the models themselves, so that the catalog cannot list them.
    pub fn has_deployments(&self) -> bool {
        self.template.has_resource()
    }

    /// Whether calls fail without an API key.
    pub fn needs_key(&self) -> bool {
        !self.key_env.is_empty() && !self.own_address && !self.free
    }
}

fn is_loopback_address(base_url: &str) -> bool {
    Url::parse(base_url).is_ok_and(|url| is_loopback(&url))
}

/// The default environment variable for a provider's API key.
pub fn key_variable_of(provider: &str) -> String {
    format!("{}_API_KEY", provider.to_ascii_uppercase().replace('-', "_"))
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
