//! The edge: where the configuration file is looked for, and the only reading of files and of the
//! process environment.

use std::path::{Path, PathBuf};
use std::sync::Once;

use serde::Serialize;
use toml::Table;

use super::environment::{CONFIG_VARIABLE, Environment};
use super::layers::{Layers, Resolved, resolve};
use super::problem::{ConfigError, Problem};
use crate::error::CliError;
use crate::folders::{DATA_DIR_VARIABLE, Folders};
use crate::terminal;

/// The name of the configuration file.
pub const FILE_NAME: &str = "moothall.toml";
/// The name of the file with API keys in the config folder.
pub const KEYS_FILE_NAME: &str = "keys.toml";

const DOTENV_NAME: &str = ".env";

/// Everything a command needs to know before it starts.
#[derive(Debug)]
pub struct Loaded {
    pub places: Places,
    pub environment: Environment,
    /// The variables of the `.env` file beside the configuration file.
    pub dotenv: Environment,
    pub resolved: Resolved,
}

/// Reads the process environment and the files, and puts all layers together.
pub fn load(explicit: Option<&Path>, flags: Table) -> Result<Loaded, CliError> {
    let environment = Environment::of_process()?;
    let mut places = Places::find(&environment, explicit, Path::new(""))?;
    let layers = places.read(&environment, flags)?;
    let dotenv = layers.dotenv.clone();
    let resolved = resolve(layers)?;
    // A server loads its configuration again for each run.
    static WARNED: Once = Once::new();
    WARNED.call_once(|| resolved.warnings.iter().for_each(terminal::show_warning));
    Ok(Loaded { places, environment, dotenv, resolved })
}

/// Why a place is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundBy {
    /// `--config FILE`.
    Flag,
    /// `MOOTHALL_CONFIG`.
    Environment,
    /// `moothall.toml` in the folder where the program was started. Whoever made that folder wrote
    /// it, which need not be the user.
    WorkingFolder,
    /// `moothall.toml` in the config folder of the user.
    ConfigFolder,
}

/// One place where the configuration file may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    pub path: PathBuf,
    pub by: FoundBy,
    pub exists: bool,
}

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Places of the configuration file, the first existing one counts. After an explicit one there
    /// is no other.
    pub candidates: Vec<Candidate>,
    pub folders: Folders,
}

impl Places {
    /// Looks which files exist and reads none. `working_folder` is the empty path for the folder of
    /// the process.
    pub fn find(
        environment: &Environment,
        explicit: Option<&Path>,
        working_folder: &Path,
    ) -> Result<Self, CliError> {
        let folders = Folders::find(environment)?;
        let candidate =
            |path: PathBuf, by| Candidate { exists: path.symlink_metadata().is_ok(), path, by };
        let candidates = if let Some(path) = explicit {
            vec![candidate(path.to_owned(), FoundBy::Flag)]
        } else if let Some(path) = environment.get(CONFIG_VARIABLE) {
            vec![candidate(path.into(), FoundBy::Environment)]
        } else {
            vec![
                candidate(working_folder.join(FILE_NAME), FoundBy::WorkingFolder),
                candidate(folders.config.join(FILE_NAME), FoundBy::ConfigFolder),
            ]
        };
        Ok(Self { candidates, folders })
    }

    /// The configuration file in use.
    pub fn used(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|candidate| candidate.exists)
    }

    /// The `.env` file that belongs to the configuration file in use, whether it exists or not.
    pub fn dotenv(&self) -> Option<PathBuf> {
        self.used().map(|used| used.path.with_file_name(DOTENV_NAME))
    }

    /// The file with API keys, whether it exists or not.
    pub fn keys_file(&self) -> PathBuf {
        self.folders.config.join(KEYS_FILE_NAME)
    }

    /// Reads the files. A data folder named in `.env` changes the folders here, because only now it
    /// is known.
    pub fn read(&mut self, environment: &Environment, flags: Table) -> Result<Layers, ConfigError> {
        if let [
            Candidate { path, by: by @ (FoundBy::Flag | FoundBy::Environment), exists: false },
        ] = self.candidates.as_slice()
        {
            let asked = if *by == FoundBy::Flag { "--config" } else { CONFIG_VARIABLE };
            let message =
                format!("the configuration file `{}` of `{asked}` does not exist", path.display());
            return Err(Problem::new(message)
                .with_hint("`moothall config path` shows the places that are searched")
                .into());
        }
        let mut layers = Layers { environment: environment.clone(), flags, ..Layers::default() };
        if let Some(used) = self.used() {
            layers.file = Some((used.path.clone(), read(&used.path)?));
        }
        if let Some(path) = self.dotenv().filter(|path| path.symlink_metadata().is_ok()) {
            layers.dotenv = Environment::from_dotenv(&path, &read(&path)?)?;
            if let (None, Some(data_dir)) =
                (environment.get(DATA_DIR_VARIABLE), layers.dotenv.get(DATA_DIR_VARIABLE))
            {
                // What is kept there is acted upon: images are run, and records say what is to be
                // cleaned up.
                if self.used().is_some_and(|used| used.by == FoundBy::WorkingFolder) {
                    let message = format!(
                        "the .env in this folder decides where moothall keeps its data: `{DATA_DIR_VARIABLE}`"
                    );
                    return Err(Problem::new(message)
                        .with_hint("if you trust it, name its file: `--config moothall.toml`")
                        .into());
                }
                let data_dir = path.parent().unwrap_or_else(|| Path::new("")).join(data_dir);
                self.folders = Folders::under(self.folders.config.clone(), &data_dir);
            }
        }
        Ok(layers)
    }
}

fn read(path: &Path) -> Result<String, Problem> {
    // The error of fs_err names the path.
    fs_err::read_to_string(path).map_err(|error| Problem::new(error.to_string()))
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
