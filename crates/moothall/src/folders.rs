//! Where files live: the XDG base folders, or everything under `MOOTHALL_DATA_DIR`.

use std::path::{Path, PathBuf};

use crate::config::Environment;
use crate::error::CliError;

/// The variable that moves data, cache and state to one folder.
pub const DATA_DIR_VARIABLE: &str = "MOOTHALL_DATA_DIR";

const APP_NAME: &str = "moothall";

/// The four folders. None of them needs to exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// `moothall.toml` and `keys.toml`.
    pub config: PathBuf,
    /// What must be kept: runs, receipts, recordings.
    pub data: PathBuf,
    /// What can be made or fetched again.
    pub cache: PathBuf,
    /// What is worth keeping between starts but not worth a backup: logs, locks.
    pub state: PathBuf,
}

impl Folders {
    /// Finds the folders without looking at the disk.
    pub fn find(environment: &Environment) -> Result<Self, CliError> {
        let home = Home { environment };
        let config = home.folder("XDG_CONFIG_HOME", ".config")?;
        if let Some(data_dir) = environment.get(DATA_DIR_VARIABLE) {
            return Ok(Self::under(config, Path::new(data_dir)));
        }
        Ok(Self {
            config,
            data: home.folder("XDG_DATA_HOME", ".local/share")?,
            cache: home.folder("XDG_CACHE_HOME", ".cache")?,
            state: home.folder("XDG_STATE_HOME", ".local/state")?,
        })
    }

    /// The images that sandboxes are made of.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.data.join("images")
    }

    /// The folders when data, cache and state share one folder.
    #[must_use]
    pub fn under(config: PathBuf, data_dir: &Path) -> Self {
        Self {
            config,
            data: data_dir.to_owned(),
            cache: data_dir.join("cache"),
            state: data_dir.join("state"),
        }
    }
}

/// `etcetera` has the XDG rules too, but reads them from the process environment, which tests
/// cannot set safely. So the rules are repeated here, and it answers only what no variable tells:
/// the home folder of the user's account.
struct Home<'a> {
    environment: &'a Environment,
}

impl Home<'_> {
    fn folder(&self, variable: &str, below_home: &str) -> Result<PathBuf, CliError> {
        if let Some(folder) = self.absolute(variable) {
            return Ok(folder.join(APP_NAME));
        }
        let home = match self.absolute("HOME") {
            Some(home) => home.to_owned(),
            None => etcetera::home_dir().map_err(|_| {
                CliError::usage("the home folder is not known").with_hint(format!(
                    "set `HOME`, or set `XDG_CONFIG_HOME` and `{DATA_DIR_VARIABLE}`"
                ))
            })?,
        };
        Ok(home.join(below_home).join(APP_NAME))
    }

    /// The XDG specification says that a relative path counts as not set.
    fn absolute(&self, variable: &str) -> Option<&Path> {
        self.environment.get(variable).map(Path::new).filter(|path| path.is_absolute())
    }
}

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;
