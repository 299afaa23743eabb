//! API keys from variables, `.env`, or files that only their owner can read. Keys are never
//! printed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use moothall_models::settings::ProviderSettings;
use moothall_models::{ApiKey, Catalog};

use crate::config::EnvVars;
use crate::error::CliError;

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
    /// `keys.toml`, or the `key_file` of the provider.
    KeyFile(PathBuf),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(name) => f.write_str(name),
            Self::DotEnv(name) => write!(f, "{name} in .env"),
            Self::KeyFile(path) => path.display().fmt(f),
        }
    }
}

/// API keys by provider.
#[derive(Debug)]
pub struct ApiKeyring {
    keys: BTreeMap<String, (ApiKey, KeySource)>,
    hints: BTreeMap<String, String>,
}

impl ApiKeyring {
    /// Looks up the key of every known provider, in this order: environment, `.env`, the provider's
    /// `key_file`, `keys.toml`.
    ///
    /// Missing files are ignored. A file that other users can read, or a malformed key, is an
    /// error; errors never quote the key.
    pub fn load(
        environment: &EnvVars,
        dotenv: &EnvVars,
        keys_file: &Path,
        catalog: &Catalog,
        settings: &BTreeMap<String, ProviderSettings>,
    ) -> Result<Self, CliError> {
        let mut from_keys_file = match read_private_file(keys_file)? {
            Some(text) => parse_keys_file(keys_file, &text)?,
            None => BTreeMap::new(),
        };
        let mut keyring = Self { keys: BTreeMap::new(), hints: BTreeMap::new() };
        for provider in catalog.providers() {
            let (name, variables) = (provider.name.as_str(), &provider.key_env);
            let settings = settings.get(name);
            keyring.hints.insert(name.to_owned(), hint(name, variables, settings, keys_file));
            let key = match from_variables(variables, environment, dotenv)? {
                Some(found) => Some(found),
                None => match from_key_file(settings)? {
                    Some(found) => Some(found),
                    None => from_keys_file
                        .remove(name)
                        .map(|key| (key, KeySource::KeyFile(keys_file.to_owned()))),
                },
            };
            keyring.keys.extend(key.map(|key| (name.to_owned(), key)));
        }
        // Keys without a provider are probably misspelt names.
        if let Some(stray) = from_keys_file.keys().find(|name| catalog.provider(name).is_none()) {
            let known: Vec<_> =
                catalog.providers().map(|provider| provider.name.as_str()).collect();
            let message =
                format!("{} has a key for the unknown provider `{stray}`", keys_file.display());
            return Err(CliError::usage(message)
                .with_hint(format!("known providers: {}", known.join(", "))));
        }
        Ok(keyring)
    }

    pub fn get(&self, provider: &str) -> Option<&ApiKey> {
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

fn hint(
    provider: &str,
    variables: &[String],
    settings: Option<&ProviderSettings>,
    keys_file: &Path,
) -> String {
    let mut ways: Vec<String> =
        variables.iter().take(1).map(|variable| format!("set `{variable}`")).collect();
    ways.push(match settings.and_then(|settings| settings.key_file.as_ref()) {
        Some(key_file) => format!("put the key in {}", key_file.display()),
        None => {
            format!("put `{provider} = \"…\"` in {} (with `chmod 600`)", keys_file.display())
        }
    });
    ways.join(", or ")
}

fn from_variables(
    variables: &[String],
    environment: &EnvVars,
    dotenv: &EnvVars,
) -> Result<Option<(ApiKey, KeySource)>, CliError> {
    for variable in variables {
        if let Some(key) =
            to_secret(environment.get(variable).unwrap_or_default(), &format!("`{variable}`"))?
        {
            return Ok(Some((key, KeySource::Environment(variable.clone()))));
        }
    }
    for variable in variables {
        if let Some(key) = to_secret(
            dotenv.get(variable).unwrap_or_default(),
            &format!("`{variable}` in the `.env` file"),
        )? {
            return Ok(Some((key, KeySource::DotEnv(variable.clone()))));
        }
    }
    Ok(None)
}

fn from_key_file(
    settings: Option<&ProviderSettings>,
) -> Result<Option<(ApiKey, KeySource)>, CliError> {
    let Some(path) = settings.and_then(|settings| settings.key_file.as_ref()) else {
        return Ok(None);
    };
    let Some(text) = read_private_file(path)? else { return Ok(None) };
    let key = to_secret(&text, &path.display().to_string())?;
    Ok(key.map(|key| (key, KeySource::KeyFile(path.clone()))))
}

/// An empty text is not a key. A key must be valid in an HTTP header.
fn to_secret(text: &str, place: &str) -> Result<Option<ApiKey>, CliError> {
    let key = text.trim();
    if key.is_empty() {
        return Ok(None);
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!(
            "the API key in {place} contains a space, a control character or a non-ASCII character"
        ))
        .with_hint("copy the key again, without surrounding text"));
    }
    Ok(Some(ApiKey::new(key.to_owned())))
}

/// Parses lines of `provider = "key"`. The parser's message is omitted because it may quote the
/// line.
fn parse_keys_file(path: &Path, text: &str) -> Result<BTreeMap<String, ApiKey>, CliError> {
    let wrong = |place: String| {
        CliError::usage(format!("{place}: expected `provider = \"key\"`"))
            .with_hint("put the key in double quotes")
    };
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
        });
        wrong(format!("{}:{line}", path.display()))
    })?;
    let mut keys = BTreeMap::new();
    for (provider, value) in table {
        let place = format!("`{provider}` in {}", path.display());
        let toml::Value::String(key) = value else { return Err(wrong(place)) };
        keys.extend(to_secret(&key, &place)?.map(|key| (provider, key)));
    }
    Ok(keys)
}

/// Reads a file that must belong to this user and be inaccessible to others. Returns `None` if it
/// does not exist.
fn read_private_file(path: &Path) -> Result<Option<String>, CliError> {
    /// Larger files cannot be key files and were named by mistake.
    const LARGEST: u64 = 64 * 1024;
    const HINT: &str = "use a plain text file that contains only API keys";
    let shown = path.display();
    let not_a_file = || CliError::usage(format!("{shown} is not a regular file")).with_hint(HINT);
    let unreadable =
        |error: std::io::Error| CliError::usage("cannot read the keys").with_source(error);
    // Checked before opening as well, because opening a pipe would block.
    match fs_err::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(not_a_file());
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let file = fs_err::File::open(path).map_err(unreadable)?;
    // Check the open file, because the path may refer to another file by now.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    check_private(path, metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())?;
    if metadata.len() > LARGEST {
        return Err(
            CliError::usage(format!("{shown} is too large for an API key file")).with_hint(HINT)
        );
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

/// A separate function, because only root could create a file of another user in a test.
fn check_private(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), CliError> {
    let shown = path.display();
    if owner != user {
        return Err(CliError::usage(format!(
            "{shown} contains API keys and belongs to another user"
        ))
        .with_hint("create your own copy, and run `chmod 600` on it"));
    }
    if mode & 0o077 != 0 {
        return Err(CliError::usage(format!(
            "{shown} contains API keys and is accessible to other users"
        ))
        .with_hint(format!("run `chmod 600 {shown}`")));
    }
    Ok(())
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
