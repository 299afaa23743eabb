//! Finds the configuration file. The only module that reads configuration files and the process
//! environment.

use std::path::{Path, PathBuf};
use std::sync::Once;

use serde::Serialize;
use toml::Table;

use super::environment::{CONFIG_VARIABLE, EnvVars};
use super::layers::{ConfigLayers, ResolvedConfig, resolve};
use super::origin::ConfigOrigin;
use super::problem::{ConfigError, ConfigProblem};
use crate::app_dirs::{AppDirs, DATA_DIR_VARIABLE};
use crate::error::CliError;
use crate::terminal;

pub const FILE_NAME: &str = "moothall.toml";
/// The file with API keys in the configuration directory.
pub const KEYS_FILE_NAME: &str = "keys.toml";

const DOTENV_NAME: &str = ".env";

/// The configuration and its sources.
#[derive(Debug)]
pub struct LoadedConfig {
    pub locations: ConfigLocations,
    pub environment: EnvVars,
    /// Variables of the `.env` file next to the configuration file.
    pub dotenv: EnvVars,
    pub resolved: ResolvedConfig,
}

impl LoadedConfig {
    /// Whether the `moothall.toml` in the working directory or its `.env`, which are untrusted, set
    /// this key or one below it.
    pub(crate) fn is_set_by_untrusted_file(&self, key: &str) -> bool {
        let from_folder =
            self.locations.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder);
        let is_below = |entry: &str| {
            entry.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is_file = |origin: &ConfigOrigin| {
            matches!(origin, ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. })
        };
        let entries = &self.resolved.entries;
        from_folder && entries.iter().any(|entry| is_below(&entry.key) && is_file(&entry.origin))
    }
}

/// Reads the process environment and the files, and merges all layers.
pub fn load(explicit: Option<&Path>, flags: Table) -> Result<LoadedConfig, CliError> {
    let environment = EnvVars::of_process()?;
    let mut locations = ConfigLocations::find(&environment, explicit, Path::new(""))?;
    let layers = locations.read(&environment, flags)?;
    let dotenv = layers.dotenv.clone();
    let resolved = resolve(layers)?;
    // Once, because a server reloads its configuration for each run.
    static WARNED: Once = Once::new();
    WARNED.call_once(|| resolved.warnings.iter().for_each(terminal::show_warning));
    Ok(LoadedConfig { locations, environment, dotenv, resolved })
}

/// How a configuration file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfigFileSource {
    /// `--config FILE`.
    Flag,
    /// `MOOTHALL_CONFIG`.
    Environment,
    /// `moothall.toml` in the working directory. Untrusted, because the user may not have written
    /// it.
    WorkingFolder,
    /// `moothall.toml` in the user's configuration directory.
    ConfigFolder,
}

/// A possible location of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigFileCandidate {
    pub path: PathBuf,
    pub by: ConfigFileSource,
    pub exists: bool,
}

/// Locations of configuration and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLocations {
    /// Possible configuration files; the first that exists is used. An explicit file is the only
    /// candidate.
    pub candidates: Vec<ConfigFileCandidate>,
    pub folders: AppDirs,
}

impl ConfigLocations {
    /// Checks which files exist without reading them. An empty `working_folder` means the working
    /// directory of the process.
    pub fn find(
        environment: &EnvVars,
        explicit: Option<&Path>,
        working_folder: &Path,
    ) -> Result<Self, CliError> {
        let folders = AppDirs::find(environment)?;
        let candidate = |path: PathBuf, by| ConfigFileCandidate {
            exists: path.symlink_metadata().is_ok(),
            path,
            by,
        };
        let candidates = if let Some(path) = explicit {
            vec![candidate(path.to_owned(), ConfigFileSource::Flag)]
        } else if let Some(path) = environment.get(CONFIG_VARIABLE) {
            vec![candidate(path.into(), ConfigFileSource::Environment)]
        } else {
            vec![
                candidate(working_folder.join(FILE_NAME), ConfigFileSource::WorkingFolder),
                candidate(folders.config.join(FILE_NAME), ConfigFileSource::ConfigFolder),
            ]
        };
        Ok(Self { candidates, folders })
    }

    /// The configuration file in use.
    pub fn used(&self) -> Option<&ConfigFileCandidate> {
        self.candidates.iter().find(|candidate| candidate.exists)
    }

    /// The `.env` file next to the configuration file in use, whether or not it exists.
    pub fn dotenv(&self) -> Option<PathBuf> {
        self.used().map(|used| used.path.with_file_name(DOTENV_NAME))
    }

    /// The file with API keys, whether or not it exists.
    pub fn keys_file(&self) -> PathBuf {
        self.folders.config.join(KEYS_FILE_NAME)
    }

    /// Reads the files. Updates the folders if `.env` sets the data directory.
    pub fn read(
        &mut self,
        environment: &EnvVars,
        flags: Table,
    ) -> Result<ConfigLayers, ConfigError> {
        if let [
            ConfigFileCandidate {
                path,
                by: by @ (ConfigFileSource::Flag | ConfigFileSource::Environment),
                exists: false,
            },
        ] = self.candidates.as_slice()
        {
            let asked = if *by == ConfigFileSource::Flag { "--config" } else { CONFIG_VARIABLE };
            let message =
                format!("configuration file `{}` (from `{asked}`) does not exist", path.display());
            return Err(ConfigProblem::new(message)
                .with_hint("see `moothall config path` for the searched locations")
                .into());
        }
        let mut layers =
            ConfigLayers { environment: environment.clone(), flags, ..ConfigLayers::default() };
        if let Some(used) = self.used() {
            layers.file = Some((used.path.clone(), read(&used.path)?));
        }
        if let Some(path) = self.dotenv().filter(|path| path.symlink_metadata().is_ok()) {
            layers.dotenv = EnvVars::from_dotenv(&path, &read(&path)?)?;
            if let (None, Some(data_dir)) =
                (environment.get(DATA_DIR_VARIABLE), layers.dotenv.get(DATA_DIR_VARIABLE))
            {
                // The data directory is trusted: its images are executed, and its records determine
                // what is cleaned up.
                if self.used().is_some_and(|used| used.by == ConfigFileSource::WorkingFolder) {
                    let message = format!(
                        "the untrusted .env in the working directory sets the data directory (`{DATA_DIR_VARIABLE}`)"
                    );
                    return Err(ConfigProblem::new(message)
                        .with_hint("if you trust it, pass `--config moothall.toml`")
                        .into());
                }
                let data_dir = path.parent().unwrap_or_else(|| Path::new("")).join(data_dir);
                self.folders = AppDirs::under(self.folders.config.clone(), &data_dir);
            }
        }
        Ok(layers)
    }
}

fn read(path: &Path) -> Result<String, ConfigProblem> {
    // fs_err errors include the path.
    fs_err::read_to_string(path).map_err(|error| ConfigProblem::new(error.to_string()))
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
