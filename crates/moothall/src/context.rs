//! From configuration to a gateway: the catalog, the keys, the model to ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moothall_core::ErrorCode;
use moothall_core::MicroUsd;
use moothall_core::model::ModelName;
use moothall_models::catalog::Provider;
use moothall_models::{Budget, Catalog, Gateway, GatewayOptions, RecordingMode, Turnstile};
use toml::{Table, Value};

use crate::config::{self, FoundBy, Loaded, Origin};
use crate::error::CliError;
use crate::keys::{KeySource, Keyring};

/// The provider that answers where nothing else is said.
const USUAL_PROVIDER: &str = "anthropic";

/// What every command that may call a model needs.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) loaded: Loaded,
    pub(crate) catalog: Catalog,
    pub(crate) keys: Keyring,
    /// The configuration file that was named.
    pub(crate) config_file: Option<PathBuf>,
    /// Where others ask the same providers.
    pub(crate) turnstile: Option<Arc<dyn Turnstile>>,
}

impl Context {
    /// Reads configuration, catalog and keys. `flags` stand above everything else.
    pub(crate) fn load(config_file: Option<&Path>, flags: Table) -> Result<Self, CliError> {
        let loaded = config::load(config_file, flags)?;
        let config = &loaded.resolved.config;
        let mut catalog = Catalog::built_in().map_err(|error| {
            CliError::failed("the built-in model table is broken").with_source(error)
        })?;
        if let Some(path) = &config.catalog {
            let text = fs_err::read_to_string(path)
                .map_err(|error| CliError::usage("cannot read the catalog").with_source(error))?;
            catalog.add(&text).map_err(|error| {
                CliError::usage(format!("{} is not a catalog", path.display()))
                    .with_source(error)
                    .with_hint("the form is explained in the book under Models and prices")
            })?;
        }
        catalog.configure(&config.provider).map_err(|error| {
            CliError::usage("the [provider] sections cannot be used").with_source(error)
        })?;
        let keys = Keyring::load(
            &loaded.environment,
            &loaded.dotenv,
            &loaded.places.keys_file(),
            &catalog,
            &config.provider,
        )?;
        let config_file = config_file.map(Path::to_owned);
        Ok(Self { loaded, catalog, keys, config_file, turnstile: None })
    }

    /// The budget of one run.
    pub(crate) fn budget(&self) -> Budget {
        let section = &self.loaded.resolved.config.budget;
        Budget { usd: section.usd, tokens: section.tokens }
    }

    /// The model to ask: the one that was named, else the configured one, else the default of the
    /// provider whose key is present.
    pub(crate) fn model(&self, named: Option<&ModelName>) -> Result<ModelName, CliError> {
        if let Some(model) = named {
            return Ok(model.clone());
        }
        if let Some(configured) = &self.loaded.resolved.config.model {
            return configured.parse().map_err(|error: moothall_core::model::InvalidModelName| {
                CliError::usage(error.to_string())
            });
        }
        let with_keys: Vec<&str> = self.keys.providers().collect();
        match with_keys.as_slice() {
            [] => Err(CliError::usage("no model is chosen and no API key is set")
                .with_hint(format!(
                    "{}; or try `--model demo`, which needs no key",
                    self.keys.hint(USUAL_PROVIDER).unwrap_or("set ANTHROPIC_API_KEY")
                ))
                .with_code(ErrorCode::KeyMissing)),
            [only] => self.default_model(only),
            several if several.contains(&USUAL_PROVIDER) => self.default_model(USUAL_PROVIDER),
            several => Err(CliError::usage(format!(
                "no model is chosen, and there are keys for {}",
                several.join(", ")
            ))
            .with_hint("name one with `--model provider/name`, or set `model` in moothall.toml")),
        }
    }

    fn default_model(&self, provider: &str) -> Result<ModelName, CliError> {
        let model =
            self.catalog.provider(provider).and_then(|provider| provider.default_model.as_deref());
        let named = model.and_then(|model| format!("{provider}/{model}").parse().ok());
        named.ok_or_else(|| {
            CliError::usage(format!("there is a key for {provider}, but no model is chosen"))
                .with_hint(format!("name one with `--model {provider}/…`, or set `provider.{provider}.default_model`"))
        })
    }

    /// A gateway that can ask `model`, or why it cannot.
    pub(crate) fn gateway(
        &self,
        model: &ModelName,
        recording: RecordingMode,
    ) -> Result<Gateway, CliError> {
        self.gateway_for(&[model], recording)
    }

    /// A gateway that can ask all of these, or why it cannot.
    pub(crate) fn gateway_for(
        &self,
        models: &[&ModelName],
        recording: RecordingMode,
    ) -> Result<Gateway, CliError> {
        if !matches!(recording, RecordingMode::Replay(_)) {
            let asked = models.iter().filter(|model| !model.is_demo());
            asked.into_iter().try_for_each(|model| self.check_reachable(model))?;
        }
        // Only keys that may go where their provider is; a workflow may ask more than one.
        let checked = self.catalog.providers().filter(|own| self.refuse_stray_key(own).is_ok());
        let keys: BTreeMap<_, _> = checked
            .filter_map(|own| Some((own.name.clone(), self.keys.get(&own.name)?.clone())))
            .collect();
        let retry = self.loaded.resolved.config.retry.clone();
        let options = GatewayOptions { catalog: self.catalog.clone(), keys, retry, recording };
        Ok(match &self.turnstile {
            Some(turnstile) => Gateway::behind(options, Arc::clone(turnstile)),
            None => Gateway::new(options),
        })
    }

    fn check_reachable(&self, model: &ModelName) -> Result<(), CliError> {
        let name = model.provider();
        let Some(provider) = self.catalog.provider(name) else {
            let names: Vec<&str> =
                self.catalog.providers().map(|provider| provider.name.as_str()).collect();
            return Err(CliError::usage(format!("there is no provider called `{name}`"))
                .with_hint(format!(
                    "known providers: {}; a server of your own needs `--base-url`, or [provider.{name}] with a `base_url`",
                    names.join(", ")
                )));
        };
        if provider.needs_key() && self.keys.get(name).is_none() {
            let hint = self.keys.hint(name).unwrap_or("set its environment variable");
            return Err(CliError::usage(format!("there is no API key for {name}"))
                .with_hint(format!("{hint}; or try `--model demo`, which needs no key"))
                .with_code(ErrorCode::KeyMissing));
        }
        self.refuse_stray_key(provider)
    }

    /// Refuses a model whose server is chosen by the moothall.toml of the working folder: for questions
    /// whose answer protects the user from that folder.
    pub(crate) fn refuse_stray_provider(&self, model: &ModelName) -> Result<(), CliError> {
        let from_folder =
            self.loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
        let keys = ["catalog".to_owned(), format!("provider.{}.base_url", model.provider())];
        let theirs = |key: &String| {
            matches!(self.loaded.resolved.origin(key), Origin::File { .. } | Origin::DotEnv { .. })
        };
        if from_folder && keys.iter().any(theirs) {
            return Err(CliError::usage(format!(
                "the moothall.toml in this folder decides which server answers for `{model}`"
            ))
            .with_hint("if you trust it, name it: `--config moothall.toml`"));
        }
        Ok(())
    }

    /// A moothall.toml that merely lies in the working folder may come from a stranger. It may
    /// configure much, but it may not choose where a key of the user's goes.
    fn refuse_stray_key(&self, provider: &Provider) -> Result<(), CliError> {
        let name = provider.name.as_str();
        let from_folder =
            self.loaded.places.used().is_some_and(|used| used.by == FoundBy::WorkingFolder);
        // First, because the rest reads the built-in table, and this is asked for every provider.
        if !from_folder {
            return Ok(());
        }
        let origin = |key: &str| self.loaded.resolved.origin(key);
        // A catalog that the folder brings can move a provider as well as a section can.
        let built_in = Catalog::built_in().ok();
        let usual = built_in.as_ref().and_then(|catalog| catalog.provider(name));
        let catalog_is_theirs =
            matches!(origin("catalog"), Origin::File { .. } | Origin::DotEnv { .. });
        let set_there = |key: &str, unusual: bool| match origin(&format!("provider.{name}.{key}")) {
            Origin::File { .. } | Origin::DotEnv { .. } => true,
            Origin::Default => catalog_is_theirs && unusual,
            Origin::Environment { .. } | Origin::Flag => false,
        };
        let other_address = usual.is_none_or(|usual| usual.base_url != provider.base_url);
        let other_variable = usual.is_none_or(|usual| usual.key_env != provider.key_env);
        let source = match self.keys.source(name) {
            Some(source @ (KeySource::Environment(_) | KeySource::KeyFile(_))) => source,
            // It came with the folder, so the folder may say where it goes.
            Some(KeySource::DotEnv(_)) | None => return Ok(()),
        };
        if set_there("base_url", other_address)
            || set_there("key_env", other_variable)
            || set_there("key_file", false)
        {
            return Err(CliError::usage(format!(
                "the moothall.toml in this folder decides where your key for {name} goes: {source} to {}",
                provider.base_url
            ))
            .with_hint("if you trust it, name it: `--config moothall.toml`"));
        }
        Ok(())
    }
}

/// Flags that stand for configuration keys, as the configuration layers take them.
#[derive(Debug, Default)]
pub(crate) struct Flags(Table);

impl Flags {
    /// Sets a key such as `budget.usd`, given as its path.
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

    /// Sets the address of the named model's provider. `naming` is the flag that names the model.
    pub(crate) fn set_base_url(
        &mut self,
        model: Option<&ModelName>,
        naming: &str,
        base_url: &str,
    ) -> Result<(), CliError> {
        let model = model.ok_or_else(|| {
            CliError::usage(format!("`--base-url` needs a model after `{naming}`")).with_hint(
                format!(
                    "for example `{naming} openai/my-model --base-url http://127.0.0.1:8080/v1`"
                ),
            )
        })?;
        if model.is_demo() {
            return Err(CliError::usage(
                "`demo` asks nobody, so `--base-url` has no meaning for it",
            ));
        }
        self.set(&["provider", model.provider(), "base_url"], base_url);
        Ok(())
    }

    /// What every command that asks models may be told: its limits, and the address of the provider
    /// of the model that `--model` names.
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
