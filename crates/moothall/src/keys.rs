//! API keys: found in variables, in `.env` or in files that only their owner can read, and never
//! printed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use moothall_models::settings::ProviderSettings;
use moothall_models::{Catalog, Secret};

use crate::config::Environment;
use crate::error::CliError;

/// The variable that usually holds a provider's key.
pub(crate) fn usual_key_variable(provider: &str) -> String {
    let built_in = Catalog::built_in().ok();
    let known = built_in.as_ref().and_then(|catalog| catalog.provider(provider)?.key_env.first());
    known.cloned().unwrap_or_else(|| moothall_models::catalog::key_variable_of(provider))
}

/// Where a key was found.
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

/// The keys by provider.
#[derive(Debug)]
pub struct Keyring {
    keys: BTreeMap<String, (Secret, KeySource)>,
    hints: BTreeMap<String, String>,
}

impl Keyring {
    /// Looks for the key of every known provider: environment, `.env`, the provider's `key_file`,
    /// `keys.toml`; the first one counts.
    ///
    /// A file that does not exist holds no keys. One that others can read, or a key that cannot be
    /// one, is an error, which never quotes it.
    pub fn load(
        environment: &Environment,
        dotenv: &Environment,
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
        // What is left belongs to nobody, and is most likely a misspelt name whose key will be
        // missed.
        if let Some(stray) = from_keys_file.keys().find(|name| catalog.provider(name).is_none()) {
            let known: Vec<_> =
                catalog.providers().map(|provider| provider.name.as_str()).collect();
            let message =
                format!("{} has a key for `{stray}`, which is no provider", keys_file.display());
            return Err(
                CliError::usage(message).with_hint(format!("known are {}", known.join(", ")))
            );
        }
        Ok(keyring)
    }

    pub fn get(&self, provider: &str) -> Option<&Secret> {
        self.keys.get(provider).map(|(key, _)| key)
    }

    pub fn source(&self, provider: &str) -> Option<&KeySource> {
        self.keys.get(provider).map(|(_, source)| source)
    }

    /// The providers that have a key.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// How to give a known provider its key, for an error's hint.
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
        Some(key_file) => format!("write the key into {}", key_file.display()),
        None => {
            format!("write `{provider} = \"…\"` into {} (with `chmod 600`)", keys_file.display())
        }
    });
    ways.join(", or ")
}

fn from_variables(
    variables: &[String],
    environment: &Environment,
    dotenv: &Environment,
) -> Result<Option<(Secret, KeySource)>, CliError> {
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
) -> Result<Option<(Secret, KeySource)>, CliError> {
    let Some(path) = settings.and_then(|settings| settings.key_file.as_ref()) else {
        return Ok(None);
    };
    let Some(text) = read_private_file(path)? else { return Ok(None) };
    let key = to_secret(&text, &path.display().to_string())?;
    Ok(key.map(|key| (key, KeySource::KeyFile(path.clone()))))
}

/// An empty text is no key. What cannot be sent in an HTTP header cannot be a key.
fn to_secret(text: &str, place: &str) -> Result<Option<Secret>, CliError> {
    let key = text.trim();
    if key.is_empty() {
        return Ok(None);
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!(
            "the API key of {place} holds a space, a control character or a letter beyond ASCII"
        ))
        .with_hint("copy the key again, and nothing around it"));
    }
    Ok(Some(Secret::new(key.to_owned())))
}

/// Lines of `provider = "key"`. The parser's own words are left out, because they may quote the
/// line.
fn parse_keys_file(path: &Path, text: &str) -> Result<BTreeMap<String, Secret>, CliError> {
    let wrong = |place: String| {
        CliError::usage(format!("{place}: not a line like `provider = \"key\"`"))
            .with_hint("put the key between double quotes")
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

/// The text of a file that must be closed to everyone but its owner, who must be this user. `None`
/// if it does not exist.
fn read_private_file(path: &Path) -> Result<Option<String>, CliError> {
    /// No key is this long; whatever is, was named by mistake.
    const LARGEST: u64 = 64 * 1024;
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| CliError::usage("cannot read the keys").with_source(error);
    // Opening a pipe would wait for its writer, so the kind of file is checked before as well as
    // after.
    match fs_err::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(CliError::usage(format!("{shown} is not a regular file")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let file = fs_err::File::open(path).map_err(unreadable)?;
    // What is checked is the open file: the name may mean another file a moment later.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(CliError::usage(format!("{shown} is not a regular file")));
    }
    check_private(path, metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())?;
    if metadata.len() > LARGEST {
        return Err(CliError::usage(format!("{shown} is too large for a file of API keys")));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

/// Apart from the reading, because only root could make a file of another user for a test.
fn check_private(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), CliError> {
    let shown = path.display();
    if owner != user {
        return Err(CliError::usage(format!("{shown} holds API keys and belongs to another user"))
            .with_hint("make a copy that belongs to you, and `chmod 600` it"));
    }
    if mode & 0o077 != 0 {
        return Err(CliError::usage(format!("{shown} holds API keys and is open to other users"))
            .with_hint(format!("chmod 600 {shown}")));
    }
    Ok(())
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
