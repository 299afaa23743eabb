//! Changes settings in the user's configuration file and keeps everything else, including comments.

use std::path::{Path, PathBuf};

use moothall_core::model::ModelName;
use moothall_core::text;
use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, value};

use crate::config::{Config, ConfigFileCandidate, ConfigFileSource, FILE_NAME, LoadedConfig};
use crate::error::CliError;
use crate::files::{self, NewFileMode};
use crate::terminal::{GREEN, YELLOW};

/// A configuration file as it was read.
pub(crate) struct ConfigFile {
    path: PathBuf,
    before: String,
}

/// A change that has not been written yet.
pub(crate) struct ConfigChange {
    file: ConfigFile,
    after: String,
}

impl ConfigFile {
    /// The file of `--config` or `MOOTHALL_CONFIG`, or the one in the user's configuration
    /// directory; never the untrusted one in the working directory.
    pub(crate) fn open(loaded: &LoadedConfig) -> Result<Self, CliError> {
        let trusted = |one: &&ConfigFileCandidate| one.by != ConfigFileSource::WorkingFolder;
        let path = match loaded.locations.candidates.iter().find(trusted) {
            Some(candidate) => candidate.path.clone(),
            None => loaded.locations.folders.config.join(FILE_NAME),
        };
        let before = files::read_or_empty(&path)
            .map_err(|error| CliError::usage("cannot read the configuration").with_source(error))?;
        Ok(Self { path, before })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has a URL for this provider.
    pub(crate) fn has_base_url(&self, provider: &str) -> bool {
        let text: Result<toml::Table, _> = self.before.parse();
        text.is_ok_and(|file| {
            file.get("provider").is_some_and(|all| {
                all.get(provider).is_some_and(|one| one.get("base_url").is_some())
            })
        })
    }

    /// Applies an edit such as [`with`].
    pub(crate) fn change(
        self,
        edit: impl FnOnce(&str) -> Result<String, TomlError>,
    ) -> Result<ConfigChange, CliError> {
        let unusable = |error: anyhow::Error| {
            CliError::usage(format!("cannot add settings to {}", self.path.display()))
                .with_source(error)
                .with_hint("correct the file; `moothall config check` shows its problems")
        };
        let after = edit(&self.before).map_err(|error| unusable(error.into()))?;
        toml::from_str::<Config>(&after).map_err(|error| unusable(error.into()))?;
        Ok(ConfigChange { file: self, after })
    }
}

impl ConfigChange {
    pub(crate) fn is_empty(&self) -> bool {
        self.file.before == self.after
    }

    /// The path and the changed lines.
    pub(crate) fn preview(&self) -> String {
        let path = self.file.path.display();
        if self.is_empty() {
            return format!("{path} is unchanged.\n");
        }
        let mut preview = format!("{path}:\n");
        for line in files::line_difference(&self.file.before, &self.after) {
            let style = if line.starts_with('+') { GREEN } else { YELLOW };
            preview.push_str(&format!("  {style}{}{style:#}\n", text::sanitize_line(&line)));
        }
        preview
    }

    /// Replaces the file atomically, unless it changed in the meantime.
    pub(crate) fn write(&self) -> Result<(), CliError> {
        let Self { file: ConfigFile { path, before }, after } = self;
        files::replace_text(path, before, after, NewFileMode::Private).map_err(|error| {
            CliError::failed(format!("cannot write {}", path.display())).with_source(error)
        })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InitAnswers {
    pub(crate) model: Option<ModelName>,
    /// The user's own server, for the provider of the model.
    pub(crate) server: Option<OwnServer>,
    pub(crate) contact: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnServer {
    pub(crate) base_url: String,
    /// The context window in tokens, if the server states it.
    pub(crate) context: Option<u64>,
    /// Whether it runs on this machine and therefore costs nothing.
    pub(crate) is_free: bool,
}

/// Sets the answers of `init`. Missing answers change nothing.
pub(crate) fn with(text: &str, answers: &InitAnswers) -> Result<String, TomlError> {
    let mut file: DocumentMut = text.parse()?;
    let root = file.as_table_mut();
    if let Some(model) = &answers.model {
        set(root, "model", &model.to_string());
        if let Some(server) = &answers.server
            && let Some(providers) = section(root, "provider", TableHeader::OfItsParts)
            && let Some(provider) = section(providers, model.provider(), TableHeader::Own)
        {
            set(provider, "base_url", &server.base_url);
            if let Some(context) = server.context.and_then(|tokens| i64::try_from(tokens).ok()) {
                provider.insert("context", value(context));
            }
            if server.is_free && provider.get("price_input").is_none() {
                set(provider, "price_input", "0");
                set(provider, "price_output", "0");
            }
        }
    }
    if let Some(contact) = &answers.contact
        && let Some(evidence) = section(root, "evidence", TableHeader::Own)
    {
        set(evidence, "contact", contact);
    }
    Ok(file.to_string())
}

/// Sets the context window of a provider, and its URL if it is not in the file yet.
pub(crate) fn with_window(
    text: &str,
    provider: &str,
    base_url: &str,
    window: u64,
) -> Result<String, TomlError> {
    let mut file: DocumentMut = text.parse()?;
    if let Some(providers) = section(file.as_table_mut(), "provider", TableHeader::OfItsParts)
        && let Some(provider) = section(providers, provider, TableHeader::Own)
        && let Ok(window) = i64::try_from(window)
    {
        if provider.get("base_url").is_none() {
            set(provider, "base_url", base_url);
        }
        provider.insert("context", value(window));
    }
    Ok(file.to_string())
}

/// Whether a new table gets its own `[name]` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableHeader {
    Own,
    OfItsParts,
}

/// The table with this name; `None` if the name belongs to another kind of value, which a valid
/// configuration never has.
fn section<'a>(
    table: &'a mut dyn TableLike,
    name: &str,
    heading: TableHeader,
) -> Option<&'a mut dyn TableLike> {
    let mut fresh = Table::new();
    fresh.set_implicit(heading == TableHeader::OfItsParts);
    table.entry(name).or_insert(Item::Table(fresh)).as_table_like_mut()
}

fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    match table.get_mut(key) {
        Some(there) if there.as_str() == Some(text) => {}
        Some(there) => *there = value(text),
        None => {
            table.insert(key, value(text));
        }
    }
}

#[cfg(test)]
#[path = "config_edit_tests.rs"]
mod tests;
