//! API keys: from variables, `.env`, a command, files that only their owner can read, or the
//! keychain of the system. Keys are never printed.

mod key_program;
mod keychain;
mod keys_file;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use moothall_models::catalog::ModelProvider;
use moothall_models::settings::{AuthScheme, ProviderSettings};
use moothall_models::{
    ApiKey, AwsCredentials, Catalog, KeyResolver as _, KeySupply, ProviderSecrets,
};

use self::key_program::KeyProgram;
use self::keychain::KeychainResolver;
use self::keys_file::{StoredKey, read_keys_file, read_private_file, write_keys_file};
use crate::config::EnvVars;
use crate::error::CliError;
use crate::process_resources;

/// The usual variable for a provider's API key.
pub(crate) fn default_key_variable(provider: &str) -> String {
    let built_in = Catalog::built_in().ok();
    let known = built_in.as_ref().and_then(|catalog| catalog.provider(provider)?.key_env.first());
    known.cloned().unwrap_or_else(|| moothall_models::catalog::key_variable_of(provider))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A variable of the process.
    Environment(String),
    /// A variable of the `.env` file.
    DotEnv(String),
    /// The `key_command` of the provider.
    Command,
    /// `keys.toml`, or the `key_file` of the provider.
    KeyFile(PathBuf),
    /// The keychain of the system.
    Keychain,
    /// General AWS credentials in variables. They do not select a model, because they are usually
    /// there for another purpose.
    AwsVariables,
}

impl KeySource {
    /// The kind of source, for scripts.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Environment(_) | Self::AwsVariables => "environment",
            Self::DotEnv(_) => "dotenv",
            Self::Command => "key_command",
            Self::KeyFile(_) => "file",
            Self::Keychain => "keychain",
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => f.write_str(name),
            Self::DotEnv(name) => write!(f, "{name} in .env"),
            Self::Command => f.write_str("key_command"),
            Self::KeyFile(path) => path.display().fmt(f),
            Self::Keychain => f.write_str("the keychain"),
            Self::AwsVariables => f.write_str(AWS_KEY_ID),
        }
    }
}

const AWS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";

/// Stored secrets of `[notify.target.NAME]` have this prefix, which no provider has.
pub(crate) const NOTIFY_PREFIX: &str = "notify.";

/// The name under which the password of a receiver of notices is stored.
pub(crate) fn notify_secret(target: &str) -> String {
    format!("{NOTIFY_PREFIX}{target}")
}

/// A secret that `moothall key set` stored under this name. Errors never quote it.
pub(crate) async fn stored_secret(keys_file: &Path, name: &str) -> Result<Option<String>, String> {
    let mut stored = read_keys_file(keys_file).map_err(|error| error.to_string())?;
    match stored.remove(name) {
        None => Ok(None),
        Some(StoredKey::Text(secret)) => Ok(Some(secret.expose().to_owned())),
        Some(StoredKey::Keychain) => {
            let resolver = KeychainResolver { provider: name.to_owned() };
            let secret = resolver.resolve().await.map_err(|failure| failure.detail)?;
            Ok(Some(secret.expose().to_owned()))
        }
    }
}

/// API keys by provider.
#[derive(Debug)]
pub struct ApiKeyring {
    keys: BTreeMap<String, (KeySupply, KeySource)>,
    headers: BTreeMap<String, BTreeMap<String, KeySupply>>,
    hints: BTreeMap<String, String>,
    /// Settings of a provider that cannot be used, and why.
    problems: BTreeMap<String, String>,
}

impl ApiKeyring {
    /// Looks up the key of every known provider, in this order: environment, `.env`, the provider's
    /// `key_command` and `key_file`, `keys.toml` and the keychain it refers to, and for AWS general
    /// credentials in variables. Commands and keychain are used only when a call needs the key.
    ///
    /// Commands and secret headers of the providers in `untrusted` are ignored. Missing files are
    /// ignored. A file that other users can read, or a malformed key, is an error; errors never
    /// quote the key.
    pub fn load(
        environment: &EnvVars,
        dotenv: &EnvVars,
        keys_file: &Path,
        catalog: &Catalog,
        settings: &BTreeMap<String, ProviderSettings>,
        untrusted: &BTreeSet<String>,
    ) -> Result<Self, CliError> {
        let mut from_keys_file = read_keys_file(keys_file)?;
        let mut keyring = Self {
            keys: BTreeMap::new(),
            headers: BTreeMap::new(),
            hints: BTreeMap::new(),
            problems: BTreeMap::new(),
        };
        for provider in catalog.providers() {
            let name = provider.name.as_str();
            let settings = settings.get(name);
            let trusted = settings.filter(|_| !untrusted.contains(name));
            keyring.hints.insert(name.to_owned(), hint(name, &provider.key_env, settings));
            let stored = from_keys_file.remove(name);
            let mut key = from_variables(&provider.key_env, environment, dotenv)?;
            if key.is_none() {
                key = from_command(provider, trusted, catalog)?;
            }
            if key.is_none() {
                key = from_key_file(settings)?;
            }
            key = key.or_else(|| {
                stored.map(|stored| match stored {
                    StoredKey::Text(key) => (key.into(), KeySource::KeyFile(keys_file.to_owned())),
                    StoredKey::Keychain => (from_keychain(name), KeySource::Keychain),
                })
            });
            if provider.auth == AuthScheme::Aws {
                key = key.or_else(|| from_aws_variables(environment));
            }
            keyring.keys.extend(key.map(|key| (name.to_owned(), key)));
            if let Some(settings) = trusted {
                keyring.load_headers(name, settings, environment, dotenv, catalog)?;
            }
        }
        // Passwords of mail servers.
        from_keys_file.retain(|name, _| !name.starts_with(NOTIFY_PREFIX));
        // Keys without a provider are probably misspelt names.
        if let Some(stray) = from_keys_file.keys().next() {
            let known: Vec<_> =
                catalog.providers().map(|provider| provider.name.as_str()).collect();
            let message =
                format!("{} has a key for the unknown provider `{stray}`", keys_file.display());
            return Err(CliError::usage(message)
                .with_hint(format!("known providers: {}", known.join(", "))));
        }
        Ok(keyring)
    }

    fn load_headers(
        &mut self,
        provider: &str,
        settings: &ProviderSettings,
        environment: &EnvVars,
        dotenv: &EnvVars,
        catalog: &Catalog,
    ) -> Result<(), CliError> {
        let mut headers = BTreeMap::new();
        for (header, variable) in &settings.header_env {
            let names = std::slice::from_ref(variable);
            match from_variables(names, environment, dotenv)? {
                Some((value, _)) => {
                    headers.insert(header.clone(), value);
                }
                None => {
                    let problem = format!(
                        "`{variable}` is not set, which the header `{header}` of {provider} needs"
                    );
                    self.problems.insert(provider.to_owned(), problem);
                }
            }
        }
        for (header, command) in &settings.header_command {
            let setting = format!("provider.{provider}.header_command.{header}");
            let program = KeyProgram::new(setting, command, settings, key_variables(catalog))?;
            headers.insert(header.clone(), shared_supply(program));
        }
        if !headers.is_empty() {
            self.headers.insert(provider.to_owned(), headers);
        }
        Ok(())
    }

    /// The key and the secret headers of a provider.
    pub(crate) fn secrets(&self, provider: &str) -> ProviderSecrets {
        ProviderSecrets {
            key: self.get(provider).cloned(),
            headers: self.headers.get(provider).cloned().unwrap_or_default(),
        }
    }

    /// Why the settings of a provider cannot be used.
    pub(crate) fn problem(&self, provider: &str) -> Option<&str> {
        self.problems.get(provider).map(String::as_str)
    }

    /// The providers whose key selects their default model.
    pub(crate) fn selecting_providers(&self) -> impl Iterator<Item = &str> {
        let selects = |source: &KeySource| *source != KeySource::AwsVariables;
        self.keys.iter().filter(move |(_, (_, source))| selects(source)).map(|(name, _)| &**name)
    }

    pub fn get(&self, provider: &str) -> Option<&KeySupply> {
        self.keys.get(provider).map(|(key, _)| key)
    }

    pub fn source(&self, provider: &str) -> Option<&KeySource> {
        self.keys.get(provider).map(|(_, source)| source)
    }

    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// How to set the key of a known provider.
    pub fn hint(&self, provider: &str) -> Option<&str> {
        self.hints.get(provider).map(String::as_str)
    }
}

fn hint(provider: &str, variables: &[String], settings: Option<&ProviderSettings>) -> String {
    let mut ways = vec![format!("run `moothall key set {provider}`")];
    ways.extend(variables.first().map(|variable| format!("set `{variable}`")));
    if let Some(key_file) = settings.and_then(|settings| settings.key_file.as_ref()) {
        ways.push(format!("put the key in {}", key_file.display()));
    }
    ways.join(", or ")
}

fn from_variables(
    variables: &[String],
    environment: &EnvVars,
    dotenv: &EnvVars,
) -> Result<Option<(KeySupply, KeySource)>, CliError> {
    for variable in variables {
        if let Some(key) =
            to_secret(environment.get(variable).unwrap_or_default(), &format!("`{variable}`"))?
        {
            return Ok(Some((key.into(), KeySource::Environment(variable.clone()))));
        }
    }
    for variable in variables {
        if let Some(key) = to_secret(
            dotenv.get(variable).unwrap_or_default(),
            &format!("`{variable}` in the `.env` file"),
        )? {
            return Ok(Some((key.into(), KeySource::DotEnv(variable.clone()))));
        }
    }
    Ok(None)
}

fn from_command(
    provider: &ModelProvider,
    settings: Option<&ProviderSettings>,
    catalog: &Catalog,
) -> Result<Option<(KeySupply, KeySource)>, CliError> {
    let Some((settings, command)) =
        settings.and_then(|settings| Some((settings, settings.key_command.as_ref()?)))
    else {
        return Ok(None);
    };
    let setting = format!("provider.{}.key_command", provider.name);
    let program = KeyProgram::new(setting, command, settings, key_variables(catalog))?;
    Ok(Some((shared_supply(program), KeySource::Command)))
}

/// Shared by the process, so that a server does not start the program for every run.
fn shared_supply(program: KeyProgram) -> KeySupply {
    process_resources::key_supply(program.id(), || KeySupply::fetched_by(program))
}

fn from_keychain(provider: &str) -> KeySupply {
    let resolver = KeychainResolver { provider: provider.to_owned() };
    let id = format!("{resolver:?}");
    process_resources::key_supply(id, || KeySupply::fetched_by(resolver))
}

/// The variables with keys of all providers.
fn key_variables(catalog: &Catalog) -> Vec<String> {
    catalog.providers().flat_map(|provider| provider.key_env.iter().cloned()).collect()
}

fn from_aws_variables(environment: &EnvVars) -> Option<(KeySupply, KeySource)> {
    let credentials = AwsCredentials::new(
        environment.get(AWS_KEY_ID)?.to_owned(),
        environment.get("AWS_SECRET_ACCESS_KEY")?.to_owned(),
        environment.get("AWS_SESSION_TOKEN").map(str::to_owned),
    );
    Some((credentials.into_key().into(), KeySource::AwsVariables))
}

fn from_key_file(
    settings: Option<&ProviderSettings>,
) -> Result<Option<(KeySupply, KeySource)>, CliError> {
    let Some(path) = settings.and_then(|settings| settings.key_file.as_ref()) else {
        return Ok(None);
    };
    let Some(text) = read_private_file(path)? else { return Ok(None) };
    let key = to_secret(&text, &path.display().to_string())?;
    Ok(key.map(|key| (key.into(), KeySource::KeyFile(path.clone()))))
}

/// Where `moothall key set` has put a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyStorage {
    Keychain,
    File,
}

/// Which place to use for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyStorageChoice {
    /// The keychain if one answers, else `keys.toml`.
    Automatic,
    /// `keys.toml`.
    File,
}

/// Stores a key of the user. The second value says why the keychain was not used, if one is there.
pub(crate) fn store_key(
    environment: &EnvVars,
    keys_file: &Path,
    provider: &str,
    key: &ApiKey,
    choice: KeyStorageChoice,
) -> Result<(KeyStorage, Option<String>), CliError> {
    // Before the keychain, because a file that cannot be changed would leave the two different.
    read_keys_file(keys_file)?;
    let mut problem = None;
    if choice == KeyStorageChoice::Automatic && keychain::may_exist(environment) {
        match keychain::store(provider, key) {
            Ok(()) => {
                write_keys_file(keys_file, provider, Some(&StoredKey::Keychain))?;
                return Ok((KeyStorage::Keychain, None));
            }
            Err(error) => problem = Some(error.to_string()),
        }
    }
    write_keys_file(keys_file, provider, Some(&StoredKey::Text(key.clone())))?;
    Ok((KeyStorage::File, problem))
}

/// Removes a stored key. Returns where it was, or `None` if there was none.
pub(crate) fn remove_key(keys_file: &Path, provider: &str) -> Result<Option<KeyStorage>, CliError> {
    let Some(stored) = read_keys_file(keys_file)?.remove(provider) else { return Ok(None) };
    let storage = match stored {
        StoredKey::Text(_) => KeyStorage::File,
        StoredKey::Keychain => {
            keychain::remove(provider).map_err(|error| {
                CliError::failed(format!("the key of {provider} is still in the keychain"))
                    .with_source(error)
                    .with_hint("unlock the keychain, and try again")
            })?;
            KeyStorage::Keychain
        }
    };
    write_keys_file(keys_file, provider, None)?;
    Ok(Some(storage))
}

/// An empty text is not a key. A key must be valid in an HTTP header, or AWS credentials in JSON.
pub(crate) fn to_secret(text: &str, place: &str) -> Result<Option<ApiKey>, CliError> {
    let key = text.trim();
    if key.is_empty() {
        return Ok(None);
    }
    if key.starts_with('{')
        && let Some(credentials) = AwsCredentials::parse(key)
    {
        return Ok(Some(credentials.into_key()));
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!(
            "the API key in {place} contains a space, a control character or a non-ASCII character"
        ))
        .with_hint("copy the key again, without surrounding text"));
    }
    Ok(Some(ApiKey::new(key.to_owned())))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
