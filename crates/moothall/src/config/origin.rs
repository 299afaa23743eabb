//! A configured value and its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toml::Value;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum ConfigOrigin {
    Default,
    File { path: PathBuf, line: usize },
    DotEnv { name: String },
    Environment { name: String },
    Flag,
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::DotEnv { name } => write!(f, ".env {name}"),
            Self::Environment { name } => f.write_str(name),
            Self::Flag => f.write_str("flag"),
        }
    }
}

pub(crate) type Origins = BTreeMap<Vec<String>, ConfigOrigin>;

/// A value that is not yet merged into the configuration.
#[derive(Debug, Clone)]
pub(crate) struct ConfigSetting {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) origin: ConfigOrigin,
}
