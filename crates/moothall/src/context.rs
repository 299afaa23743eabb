//! Builds a model gateway from the configuration: catalog, API keys, default model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moothall_core::ErrorCode;
use moothall_core::MicroUsd;
use moothall_core::model::{InvalidModelList, ModelChoice, ModelList, ModelName};
use moothall_models::catalog::ModelProvider;
use moothall_models::{
    Budget, Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode,
    ScriptedJudgeBackend, SharedLimiter,
};
use toml::{Table, Value};

use crate::config::{self, ConfigFileSource, ConfigOrigin, LoadedConfig};
use crate::debate_image::ProgressNotice;
use crate::error::CliError;
use crate::keys::{ApiKeyring, KeySource};
use crate::process_resources;

/// Settings of a provider that start programs or read secrets. An untrusted file cannot set them.
const TRUSTED_ONLY: [&str; 3] = ["key_command", "header_command", "header_env"];

/// Settings of a provider that decide where a key is sent.
const REDIRECTING: [&str; 7] =
    ["resource", "project", "region", "headers", "query", "ca_file", "proxy"];

/// The default provider.
const DEFAULT_PROVIDER: &str = "anthropic";

/// Everything a command needs to call models.
#[derive(Debug)]
pub(crate) struct CommandContext {
    pub(crate) loaded: LoadedConfig,
    pub(crate) catalog: Catalog,
    pub(crate) keys: ApiKeyring,
    /// The file passed with `--config`.
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) connections: ProviderConnections,
    /// Limiter shared with other processes that call the same providers.
    pub(crate) limiter: Option<Arc<dyn SharedLimiter>>,
    /// Reports long preparations.
    pub(crate) progress: ProgressNotice,
    /// Scripted judges of a benchmark.
    pub(crate) judges: Option<Arc<ScriptedJudgeBackend>>,
}

impl CommandContext {
    /// Reads configuration, catalog and keys. `flags` have the highest precedence.
    pub(crate) fn load(config_file: Option<&Path>, flags: Table) -> Result<Self, CliError> {
        let loaded = config::load(config_file, flags)?;
        let config = &loaded.resolved.config;
        let mut catalog = Catalog::built_in().map_err(|error| {
            CliError::failed("the built-in model catalog is invalid").with_source(error)
        })?;
        if let Some(path) = &config.catalog {
            let text = fs_err::read_to_string(path)
                .map_err(|error| CliError::usage("cannot read the catalog").with_source(error))?;
            catalog.add(&text).map_err(|error| {
                CliError::usage(format!("{} is not a valid catalog", path.display()))
                    .with_source(error)
                    .with_hint("see \"Models and prices\" in the documentation for the format")
            })?;
        }
        catalog
            .configure(&config.provider)
            .map_err(|error| CliError::usage("invalid [provider] sections").with_source(error))?;
        let keys = ApiKeyring::load(
            &loaded.environment,
            &loaded.dotenv,
            &loaded.locations.keys_file(),
            &catalog,
            &config.provider,
            &untrusted_providers(&loaded),
        )?;
        let config_file = config_file.map(Path::to_owned);
        let connections = process_resources::connections();
        let progress = ProgressNotice::default();
        Ok(Self {
            loaded,
            catalog,
            keys,
            config_file,
            connections,
            limiter: None,
            progress,
            judges: None,
        })
    }

    pub(crate) fn budget(&self) -> Budget {
        let section = &self.loaded.resolved.config.budget;
        Budget { usd: section.usd, tokens: section.tokens }
    }

    /// The model to use, with its fallbacks: the named one, else the configured one, else the default of the provider
    /// whose key is available.
    pub(crate) fn model(&self, named: Option<&ModelList>) -> Result<ModelList, CliError> {
        if let Some(models) = named {
            return Ok(models.clone());
        }
        if let Some(configured) = &self.loaded.resolved.config.model {
            return parse_models(configured);
        }
        let has_address = |name: &&str| {
            self.catalog.provider(name).is_some_and(|provider| provider.missing.is_none())
        };
        let with_keys: Vec<&str> = self.keys.selecting_providers().filter(has_address).collect();
        match with_keys.as_slice() {
            [] => Err(CliError::usage("no model is selected and no API key is set")
                .with_hint(format!(
                    "{}; or try `--model demo`, which needs no key",
                    self.keys.hint(DEFAULT_PROVIDER).unwrap_or("set ANTHROPIC_API_KEY")
                ))
                .with_code(ErrorCode::KeyMissing)),
            [only] => self.default_model(only).map(ModelList::from),
            several if several.contains(&DEFAULT_PROVIDER) => {
                self.default_model(DEFAULT_PROVIDER).map(ModelList::from)
            }
            several => Err(CliError::usage(format!(
                "no model is selected, and there are API keys for {}",
                several.join(", ")
            ))
            .with_hint("pass `--model provider/name`, or set `model` in moothall.toml")),
        }
    }

    /// The model for an estimate, which needs no key.
    pub(crate) fn model_for_estimate(&self) -> Option<ModelList> {
        let default = || self.default_model(DEFAULT_PROVIDER).map(ModelList::from);
        self.model(None).or_else(|_| default()).ok()
    }

    /// The default models of other large providers, to compare with `model`.
    pub(crate) fn alternatives_to(&self, model: &ModelName) -> Vec<ModelName> {
        let others = ["anthropic", "openai", "google"].into_iter();
        let others = others.filter(|provider| *provider != model.provider());
        others.filter_map(|provider| self.default_model(provider).ok()).take(2).collect()
    }

    fn default_model(&self, provider: &str) -> Result<ModelName, CliError> {
        let model =
            self.catalog.provider(provider).and_then(|provider| provider.default_model.as_deref());
        let named = model.and_then(|model| format!("{provider}/{model}").parse().ok());
        named.ok_or_else(|| {
            CliError::usage(format!("there is an API key for {provider}, but no model is selected"))
                .with_hint(format!(
                    "pass `--model {provider}/…`, or set `provider.{provider}.default_model`"
                ))
        })
    }

    /// A gateway for `model`. Fails if the provider is unknown or its key is missing.
    pub(crate) fn gateway(
        &self,
        model: &ModelName,
        recording: RecordingMode,
    ) -> Result<Gateway, CliError> {
        self.gateway_for(&[model], recording)
    }

    /// A gateway for a model and its fallbacks. A fallback without a key would fail when it is
    /// needed, so it is an error too.
    pub(crate) fn gateway_of(
        &self,
        models: &ModelList,
        recording: RecordingMode,
    ) -> Result<Gateway, CliError> {
        self.gateway_for(&models.iter().collect::<Vec<_>>(), recording)
    }

    /// A gateway for all of these models.
    pub(crate) fn gateway_for(
        &self,
        models: &[&ModelName],
        recording: RecordingMode,
    ) -> Result<Gateway, CliError> {
        if self.judges.is_none() && models.iter().any(|model| model.is_scripted_judge()) {
            return Err(CliError::usage("scripted judges answer in a benchmark only")
                .with_hint("choose another model, or run `moothall eval`")
                .with_code(ErrorCode::BadModel));
        }
        if !matches!(recording, RecordingMode::Replay(_)) {
            let asked = models.iter().filter(|model| !model.is_demo());
            asked.into_iter().try_for_each(|model| self.check_reachable(model))?;
        }
        // A workflow may call several providers; keys that must not be sent to a provider's URL are
        // left out.
        let checked = self
            .catalog
            .providers()
            .filter(|provider| self.refuse_redirected_key(provider).is_ok());
        let keys: BTreeMap<_, _> = checked
            .map(|provider| (provider.name.clone(), self.keys.secrets(&provider.name)))
            .collect();
        let retry = self.loaded.resolved.config.retry.clone();
        let (catalog, connections) = (self.catalog.clone(), self.connections.clone());
        let options = GatewayOptions { catalog, keys, retry, recording, connections };
        let gateway = match &self.limiter {
            Some(limiter) => Gateway::with_shared_limiter(options, Arc::clone(limiter)),
            None => Gateway::new(options),
        };
        Ok(match &self.judges {
            Some(judges) => gateway.with_backend(ModelName::SCRIPTED_JUDGE, judges.clone()),
            None => gateway,
        })
    }

    fn check_reachable(&self, model: &ModelName) -> Result<(), CliError> {
        let provider = self.known_provider(model.provider())?;
        self.check_provider(provider)
    }

    /// Rejects a provider that cannot be called with these settings and keys.
    pub(crate) fn check_provider(&self, provider: &ModelProvider) -> Result<(), CliError> {
        let name = provider.name.as_str();
        // First, because untrusted settings are the reason for a missing key.
        self.refuse_redirected_key(provider)?;
        if let Some(missing) = provider.missing {
            return Err(CliError::usage(format!("the address of {name} is incomplete")).with_hint(
                format!(
                    "set `{missing}` in [provider.{name}] of moothall.toml: {}",
                    provider.base_url
                ),
            ));
        }
        if let Some(problem) = self.keys.problem(name) {
            return Err(CliError::usage(problem).with_code(ErrorCode::KeyMissing));
        }
        if provider.needs_key() && self.keys.get(name).is_none() {
            let hint = self.keys.hint(name).unwrap_or("set its environment variable");
            return Err(CliError::usage(format!("no API key for {name}"))
                .with_hint(format!("{hint}; or try `--model demo`, which needs no key"))
                .with_code(ErrorCode::KeyMissing));
        }
        Ok(())
    }

    pub(crate) fn known_provider(&self, name: &str) -> Result<&ModelProvider, CliError> {
        self.catalog.provider(name).ok_or_else(|| {
            let names: Vec<&str> =
                self.catalog.providers().map(|provider| provider.name.as_str()).collect();
            CliError::usage(format!("unknown provider `{name}`"))
                .with_hint(format!(
                    "known providers: {}; for your own server, pass `--base-url` or set `base_url` in [provider.{name}]",
                    names.join(", ")
                ))
        })
    }

    /// Rejects a model that its provider does not have, as far as the catalog knows. A member's
    /// model may be called late in a run, when a misspelled name has already cost money. Own servers
    /// may have any model.
    pub(crate) fn refuse_unknown_model(&self, model: &ModelName) -> Result<(), CliError> {
        if model.is_demo() || self.catalog.card(model).listed {
            return Ok(());
        }
        let provider = self.known_provider(model.provider())?;
        let own = self.loaded.resolved.config.provider.get(&provider.name);
        let is_own_server = own.is_some_and(|own| own.base_url.is_some());
        let names: Vec<String> = self
            .catalog
            .models_of(&provider.name)
            .iter()
            .map(|card| card.model.to_string())
            .collect();
        if provider.free || is_own_server || provider.has_deployments() || names.is_empty() {
            return Ok(());
        }
        Err(CliError::usage(format!("unknown model `{model}`"))
            .with_hint(format!(
                "models of {}: {}; add others to a catalog file (see `catalog` in the settings)",
                provider.name,
                names.join(", ")
            ))
            .with_code(ErrorCode::BadModel))
    }

    /// Rejects a model whose server is set by the `moothall.toml` in the working directory. For
    /// questions whose answer protects the user from that directory.
    pub(crate) fn refuse_untrusted_provider(&self, model: &ModelName) -> Result<(), CliError> {
        let from_folder = self
            .loaded
            .locations
            .used()
            .is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
        let keys = ["catalog".to_owned(), format!("provider.{}.base_url", model.provider())];
        let is_from_file = |key: &String| {
            matches!(
                self.loaded.resolved.origin(key),
                ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. }
            )
        };
        let is_redirected = |setting: &&str| {
            let key = format!("provider.{}.{setting}", model.provider());
            self.loaded.is_set_by_untrusted_file(&key)
        };
        let is_redirected = REDIRECTING.iter().any(is_redirected);
        if is_redirected || (from_folder && keys.iter().any(is_from_file)) {
            return Err(CliError::usage(format!(
                "the untrusted moothall.toml in the working directory sets the server for `{model}`"
            ))
            .with_hint("if you trust it, pass `--config moothall.toml`"));
        }
        Ok(())
    }

    /// A `moothall.toml` in the working directory is untrusted: it must not redirect the user's API
    /// keys.
    fn refuse_redirected_key(&self, provider: &ModelProvider) -> Result<(), CliError> {
        let name = provider.name.as_str();
        let from_folder = self
            .loaded
            .locations
            .used()
            .is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
        // Checked first, because the rest parses the built-in catalog and this runs for every
        // provider.
        if !from_folder {
            return Ok(());
        }
        for setting in TRUSTED_ONLY {
            let key = format!("provider.{name}.{setting}");
            if self.loaded.is_set_by_untrusted_file(&key) {
                return Err(CliError::usage(format!(
                    "the untrusted moothall.toml in the working directory sets `{key}`"
                ))
                .with_hint("if you trust it, pass `--config moothall.toml`"));
            }
        }
        let origin = |key: &str| self.loaded.resolved.origin(key);
        // A catalog from the working directory can also redirect a provider.
        let built_in = Catalog::built_in().ok();
        let built_in_provider = built_in.as_ref().and_then(|catalog| catalog.provider(name));
        let catalog_is_untrusted =
            matches!(origin("catalog"), ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. });
        let is_set_by_file =
            |key: &str, unusual: bool| match origin(&format!("provider.{name}.{key}")) {
                ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. } => true,
                ConfigOrigin::Default => catalog_is_untrusted && unusual,
                ConfigOrigin::Environment { .. } | ConfigOrigin::Flag => false,
            };
        let other_address = built_in_provider
            .is_none_or(|built_in_provider| built_in_provider.base_url != provider.base_url);
        let other_variable = built_in_provider
            .is_none_or(|built_in_provider| built_in_provider.key_env != provider.key_env);
        let source = match self.keys.source(name) {
            // The key came from the same directory, which may decide where to send it.
            Some(KeySource::DotEnv(_)) | None => return Ok(()),
            Some(source) => source,
        };
        if is_set_by_file("base_url", other_address)
            || is_set_by_file("key_env", other_variable)
            || is_set_by_file("key_file", false)
            || REDIRECTING.iter().any(|setting| {
                self.loaded.is_set_by_untrusted_file(&format!("provider.{name}.{setting}"))
            })
        {
            return Err(CliError::usage(format!(
                "the untrusted moothall.toml in the working directory redirects your API key for {name}: {source} to {}",
                provider.base_url
            ))
            .with_hint("if you trust it, pass `--config moothall.toml`"));
        }
        Ok(())
    }
}

/// Models of the configuration or of a request.
pub(crate) fn parse_models(models: &ModelChoice) -> Result<ModelList, CliError> {
    models.parse().map_err(|error: InvalidModelList| {
        CliError::usage(error.to_string()).with_code(ErrorCode::BadModel)
    })
}

/// The providers for which an untrusted file sets what only the user may set.
fn untrusted_providers(loaded: &LoadedConfig) -> BTreeSet<String> {
    let is_untrusted = |name: &&String| {
        let set =
            |setting: &&str| loaded.is_set_by_untrusted_file(&format!("provider.{name}.{setting}"));
        TRUSTED_ONLY.iter().any(set)
    };
    loaded.resolved.config.provider.keys().filter(is_untrusted).cloned().collect()
}

/// Command-line flags as configuration keys, for the flags layer.
#[derive(Debug, Default)]
pub(crate) struct ConfigFlags(Table);

impl ConfigFlags {
    /// Sets a key such as `budget.usd`, given as path segments.
    pub(crate) fn set(&mut self, path: &[&str], value: impl Into<Value>) {
        let Some((last, sections)) = path.split_last() else { return };
        let mut table = &mut self.0;
        for section in sections {
            let entry = table.entry(*section).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = entry else { return };
            table = inner;
        }
        table.insert((*last).to_owned(), value.into());
    }

    /// Sets the base URL of the model's provider. `naming` is the flag that selects the model.
    pub(crate) fn set_base_url(
        &mut self,
        model: Option<&ModelName>,
        naming: &str,
        base_url: &str,
    ) -> Result<(), CliError> {
        let model = model.ok_or_else(|| {
            CliError::usage(format!("`--base-url` requires a model in `{naming}`")).with_hint(
                format!(
                    "for example `{naming} openai/my-model --base-url http://127.0.0.1:8080/v1`"
                ),
            )
        })?;
        if model.is_demo() {
            return Err(CliError::usage(
                "`--base-url` has no effect for the `demo` model, which calls no server",
            )
            .with_hint("choose another model, or omit `--base-url`"));
        }
        self.set(&["provider", model.provider(), "base_url"], base_url);
        Ok(())
    }

    /// The flags shared by all commands that call models: budgets, and the base URL for the
    /// provider of `--model`.
    pub(crate) fn of_calls(
        usd: Option<MicroUsd>,
        tokens: Option<u64>,
        base_url: Option<&str>,
        model: Option<&ModelName>,
    ) -> Result<Table, CliError> {
        let mut flags = Self::default();
        if let Some(usd) = usd {
            flags.set(&["budget", "usd"], usd.decimal());
        }
        if let Some(tokens) = tokens {
            let tokens = i64::try_from(tokens)
                .map_err(|_| CliError::usage("--budget-tokens is too large"))?;
            flags.set(&["budget", "tokens"], tokens);
        }
        if let Some(base_url) = base_url {
            flags.set_base_url(model, "--model", base_url)?;
        }
        Ok(flags.into_table())
    }

    pub(crate) fn into_table(self) -> Table {
        self.0
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
