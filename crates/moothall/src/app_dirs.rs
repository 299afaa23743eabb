//! Directories for files: the XDG base directories, or everything below `MOOTHALL_DATA_DIR`.

use std::path::{Path, PathBuf};

use crate::config::EnvVars;
use crate::error::CliError;

/// Moves data, cache and state to one directory.
pub const DATA_DIR_VARIABLE: &str = "MOOTHALL_DATA_DIR";

const APP_NAME: &str = "moothall";

/// The directories in use. They need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppDirs {
    /// `moothall.toml` and `keys.toml`.
    pub config: PathBuf,
    /// Permanent data: runs, receipts, recordings.
    pub data: PathBuf,
    /// Files that can be rebuilt or downloaded again.
    pub cache: PathBuf,
    /// Persistent files that need no backup: logs, locks.
    pub state: PathBuf,
}

impl AppDirs {
    /// Determines the directories without accessing the disk.
    pub fn find(environment: &EnvVars) -> Result<Self, CliError> {
        let home = XdgResolver { environment };
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

    /// Sandbox images.
    #[must_use]
    pub fn images(&self) -> PathBuf {
        self.data.join("images")
    }

    /// Puts data, cache and state below one directory.
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

/// XDG rules on top of [`EnvVars`]. `etcetera` implements them too, but reads the process
/// environment, which tests cannot set safely. It is used only to look up the home directory of the
/// account.
struct XdgResolver<'a> {
    environment: &'a EnvVars,
}

impl XdgResolver<'_> {
    fn folder(&self, variable: &str, below_home: &str) -> Result<PathBuf, CliError> {
        if let Some(folder) = self.absolute(variable) {
            return Ok(folder.join(APP_NAME));
        }
        let home = match self.absolute("HOME") {
            Some(home) => home.to_owned(),
            None => etcetera::home_dir().map_err(|_| {
                CliError::usage("cannot determine the home directory").with_hint(format!(
                    "set `HOME`, or set `XDG_CONFIG_HOME` and `{DATA_DIR_VARIABLE}`"
                ))
            })?,
        };
        Ok(home.join(below_home).join(APP_NAME))
    }

    /// According to the XDG specification, relative paths must be ignored.
    fn absolute(&self, variable: &str) -> Option<&Path> {
        self.environment.get(variable).map(Path::new).filter(|path| path.is_absolute())
    }
}

#[cfg(test)]
#[path = "app_dirs_tests.rs"]
mod tests;
