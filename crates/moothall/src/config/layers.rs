//! Merges the layers into one configuration that records the origin of each value. This module
//! reads no files or variables.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::{Table, Value};

use super::environment::{self, EnvVarSource, EnvVars};
use super::origin::{ConfigOrigin, ConfigSetting, Origins};
use super::problem::{ConfigError, ConfigProblem};
use super::schema::{ConfigNode, ConfigValueKind, dotted};
use super::{Config, file, hints, validate};

/// Sources of settings, lowest precedence first. Defaults are below all of them.
#[derive(Clone, Default)]
pub struct ConfigLayers {
    /// The path and text of the configuration file.
    pub file: Option<(PathBuf, String)>,
    /// Variables of the `.env` file next to it.
    pub dotenv: EnvVars,
    pub environment: EnvVars,
    /// Settings from the command line, under their configuration keys.
    pub flags: Table,
}

impl fmt::Debug for ConfigLayers {
    /// Omits the text of the file, which may contain an API key by mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigLayers")
            .field("file", &self.file.as_ref().map(|(path, _)| path))
            .field("dotenv", &self.dotenv)
            .field("environment", &self.environment)
            .field("flags", &self.flags)
            .finish()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigEntry {
    /// The dotted key, such as `budget.usd`.
    pub key: String,
    /// The value as written in TOML; `None` if not set.
    pub value: Option<Value>,
    pub origin: ConfigOrigin,
}

/// A validated configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedConfig {
    pub config: Config,
    /// Every key in the order of the reference manual; for providers only those that are set.
    pub entries: Vec<ConfigEntry>,
    /// Probable mistakes that do not prevent the use of the configuration.
    pub warnings: Vec<ConfigProblem>,
}

impl ResolvedConfig {
    /// The origin of a key such as `budget.usd`.
    pub fn origin(&self, key: &str) -> &ConfigOrigin {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map_or(&ConfigOrigin::Default, |entry| &entry.origin)
    }
}

/// Merges the layers. Every value in every layer must be valid, even if a higher layer overrides
/// it.
pub fn resolve(layers: ConfigLayers) -> Result<ResolvedConfig, ConfigError> {
    let root = ConfigNode::root();
    let ConfigLayers { file, dotenv, environment, flags } = layers;
    let folder = file
        .as_ref()
        .and_then(|(path, _)| path.parent())
        .unwrap_or_else(|| Path::new(""))
        .to_owned();
    let from_file = file.map(|(path, text)| file::settings(root, &path, &text)).unwrap_or_default();
    let lowest_first = [
        from_file,
        environment::settings(root, &dotenv, EnvVarSource::DotEnv),
        environment::settings(root, &environment, EnvVarSource::Process),
        file::collect_settings(root, flags, &|_| ConfigOrigin::Flag),
    ];

    let mut problems = Vec::new();
    let mut merged = Table::new();
    let mut origins = Origins::new();
    for (settings, found) in lowest_first {
        problems.extend(found);
        for setting in settings {
            match validate_setting(root, setting, &folder) {
                Ok(ConfigSetting { path, value, origin }) => {
                    insert(&mut merged, &path, value);
                    origins.insert(path, origin);
                }
                Err(problem) => problems.push(problem),
            }
        }
    }

    let config = match merged.try_into::<Config>() {
        Ok(config) => config,
        Err(error) => {
            // Each value is valid on its own, so this happens only if two layers give a key
            // different shapes.
            problems.push(ConfigProblem::new(error.message()));
            Config::default()
        }
    };
    problems.extend(validate::problems(&config, &origins));
    let warnings = match problems.iter().all(|problem| problem.is_warning) {
        true => std::mem::take(&mut problems),
        false => Vec::new(),
    };
    match ConfigError::from_problems(problems) {
        Some(error) => Err(error),
        None => Ok(ResolvedConfig { entries: entries(root, &config, &origins)?, config, warnings }),
    }
}

/// Validates a value, and resolves a relative path against the directory of its file.
fn validate_setting(
    root: &ConfigNode,
    mut setting: ConfigSetting,
    folder: &Path,
) -> Result<ConfigSetting, ConfigProblem> {
    let Some(leaf) = root.leaf(&setting.path) else {
        // An empty table has nothing to check.
        return Ok(setting);
    };
    let mut single = Table::new();
    insert(&mut single, &setting.path, setting.value.clone());
    // Validated by the structs themselves, so the two can never disagree.
    if single.try_into::<Config>().is_err() {
        let path = match setting.origin {
            ConfigOrigin::Environment { .. } | ConfigOrigin::DotEnv { .. } => None,
            ConfigOrigin::Default | ConfigOrigin::File { .. } | ConfigOrigin::Flag => {
                Some(setting.path.as_slice())
            }
        };
        return Err(hints::wrong_value(setting.origin, path, &leaf.kind, &setting.value));
    }
    if let (ConfigValueKind::Path, Value::String(text)) = (&leaf.kind, &setting.value) {
        if text.starts_with('~') {
            let message = format!(
                "{}: `{}` starts with `~`, which is expanded only by shells",
                setting.origin,
                dotted(&setting.path)
            );
            return Err(ConfigProblem::new(message).with_hint("write the full path"));
        }
        if let ConfigOrigin::File { .. } | ConfigOrigin::DotEnv { .. } = setting.origin {
            let anchored = folder.join(text);
            let Some(anchored) = anchored.to_str() else {
                return Err(ConfigProblem::new(format!(
                    "{}: the path of this directory is not valid UTF-8",
                    setting.origin
                )));
            };
            setting.value = Value::String(anchored.to_owned());
        }
    }
    Ok(setting)
}

/// Sets the value at `path`. An empty table does not replace an existing one.
fn insert(table: &mut Table, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => match (table.get(last), &value) {
            (Some(Value::Table(_)), Value::Table(empty)) if empty.is_empty() => {}
            _ => {
                table.insert(last.clone(), value);
            }
        },
        [first, rest @ ..] => {
            if let Value::Table(below) =
                table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new()))
            {
                insert(below, rest, value);
            }
        }
    }
}

/// The values as written in TOML, serialized from the configuration.
fn entries(
    root: &ConfigNode,
    config: &Config,
    origins: &Origins,
) -> Result<Vec<ConfigEntry>, ConfigError> {
    let values = Table::try_from(config).map_err(|error| {
        ConfigProblem::new(format!("cannot serialize the configuration: {error}"))
    })?;
    let mut entries = Vec::new();
    collect_entries(root, &values, origins, &mut Vec::new(), false, &mut entries);
    Ok(entries)
}

fn collect_entries(
    node: &ConfigNode,
    values: &Table,
    origins: &Origins,
    path: &mut Vec<String>,
    is_user_defined: bool,
    entries: &mut Vec<ConfigEntry>,
) {
    let children: Vec<(&str, &ConfigNode)> = match node {
        ConfigNode::Leaf(_) => return,
        ConfigNode::Section { children, .. } => {
            children.iter().map(|(name, child)| (name.as_str(), child)).collect()
        }
        ConfigNode::Map { element, .. } => {
            values.keys().map(|name| (name.as_str(), element.as_ref())).collect()
        }
    };
    let is_user_defined = is_user_defined || matches!(node, ConfigNode::Map { .. });
    for (name, child) in children {
        path.push(name.to_owned());
        let value = values.get(name);
        match (child, value) {
            (ConfigNode::Leaf(_), None) if is_user_defined => {}
            (ConfigNode::Leaf(_), value) => {
                let origin = origins.get(path).cloned().unwrap_or(ConfigOrigin::Default);
                entries.push(ConfigEntry { key: dotted(path), value: value.cloned(), origin });
            }
            (_, Some(Value::Table(below))) => {
                collect_entries(child, below, origins, path, is_user_defined, entries);
            }
            (_, _) => {
                collect_entries(child, &Table::new(), origins, path, is_user_defined, entries);
            }
        }
        path.pop();
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
