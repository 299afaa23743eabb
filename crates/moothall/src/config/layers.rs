//! From layers to one configuration that remembers where each value came from. Nothing here reads a
//! file or a variable.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::{Table, Value};

use super::environment::{self, Environment, Variables};
use super::origin::{Origin, Origins, Setting};
use super::problem::{ConfigError, Problem};
use super::schema::{Kind, Node, dotted};
use super::{Config, file, hints, validate};

/// What can set a value, lowest first. Defaults come below all of them.
#[derive(Clone, Default)]
pub struct Layers {
    /// The configuration file and its text.
    pub file: Option<(PathBuf, String)>,
    /// The variables of the `.env` file beside it.
    pub dotenv: Environment,
    /// The variables of the process.
    pub environment: Environment,
    /// What the command line sets, under the keys of the configuration.
    pub flags: Table,
}

impl fmt::Debug for Layers {
    /// Without the text of the file: someone may have put a key there, where it is refused.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers")
            .field("file", &self.file.as_ref().map(|(path, _)| path))
            .field("dotenv", &self.dotenv)
            .field("environment", &self.environment)
            .field("flags", &self.flags)
            .finish()
    }
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The key as it is written, such as `budget.usd`.
    pub key: String,
    /// The value as it would be written; nothing if it is not set.
    pub value: Option<Value>,
    pub origin: Origin,
}

/// A configuration that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    pub config: Config,
    /// Every key in the order of the reference manual; of providers only what is set.
    pub entries: Vec<Entry>,
    /// What is probably a mistake, and stops nothing.
    pub warnings: Vec<Problem>,
}

impl Resolved {
    /// Where the value of a key such as `budget.usd` came from.
    pub fn origin(&self, key: &str) -> &Origin {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map_or(&Origin::Default, |entry| &entry.origin)
    }
}

/// Puts the layers together. Every value of every layer must be sound, also one that another layer
/// covers.
pub fn resolve(layers: Layers) -> Result<Resolved, ConfigError> {
    let root = Node::root();
    let Layers { file, dotenv, environment, flags } = layers;
    let folder = file
        .as_ref()
        .and_then(|(path, _)| path.parent())
        .unwrap_or_else(|| Path::new(""))
        .to_owned();
    let from_file = file.map(|(path, text)| file::settings(root, &path, &text)).unwrap_or_default();
    let lowest_first = [
        from_file,
        environment::settings(root, &dotenv, Variables::DotEnv),
        environment::settings(root, &environment, Variables::Process),
        file::collect_settings(root, flags, &|_| Origin::Flag),
    ];

    let mut problems = Vec::new();
    let mut merged = Table::new();
    let mut origins = Origins::new();
    for (settings, found) in lowest_first {
        problems.extend(found);
        for setting in settings {
            match sound(root, setting, &folder) {
                Ok(Setting { path, value, origin }) => {
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
            // Each value was accepted alone, so only a value that two layers shape differently can
            // end here.
            problems.push(Problem::new(error.message()));
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
        None => Ok(Resolved { entries: entries(root, &config, &origins)?, config, warnings }),
    }
}

/// Checks a value against its key, and anchors a relative path of a file at the folder of that
/// file.
fn sound(root: &Node, mut setting: Setting, folder: &Path) -> Result<Setting, Problem> {
    let Some(leaf) = root.leaf(&setting.path) else {
        // An empty table; there is nothing to check in it.
        return Ok(setting);
    };
    let mut alone = Table::new();
    insert(&mut alone, &setting.path, setting.value.clone());
    // The structs themselves are the judge, so that this can never disagree with them.
    if alone.try_into::<Config>().is_err() {
        let path = match setting.origin {
            Origin::Environment { .. } | Origin::DotEnv { .. } => None,
            Origin::Default | Origin::File { .. } | Origin::Flag => Some(setting.path.as_slice()),
        };
        return Err(hints::wrong_value(setting.origin, path, &leaf.kind, &setting.value));
    }
    if let (Kind::Path, Value::String(text)) = (&leaf.kind, &setting.value) {
        if text.starts_with('~') {
            let message = format!(
                "{}: `{}` begins with `~`, which only a shell understands",
                setting.origin,
                dotted(&setting.path)
            );
            return Err(Problem::new(message).with_hint("write the whole path"));
        }
        if let Origin::File { .. } | Origin::DotEnv { .. } = setting.origin {
            let anchored = folder.join(text);
            let Some(anchored) = anchored.to_str() else {
                return Err(Problem::new(format!(
                    "{}: the path of this folder is not valid UTF-8",
                    setting.origin
                )));
            };
            setting.value = Value::String(anchored.to_owned());
        }
    }
    Ok(setting)
}

/// Sets the value at `path`. An empty table only makes sure that there is one.
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

/// The values as they would be written, read back from the configuration itself.
fn entries(root: &Node, config: &Config, origins: &Origins) -> Result<Vec<Entry>, ConfigError> {
    let values = Table::try_from(config)
        .map_err(|error| Problem::new(format!("the configuration cannot be written: {error}")))?;
    let mut entries = Vec::new();
    collect_entries(root, &values, origins, &mut Vec::new(), &mut entries);
    Ok(entries)
}

fn collect_entries(
    node: &Node,
    values: &Table,
    origins: &Origins,
    path: &mut Vec<String>,
    entries: &mut Vec<Entry>,
) {
    let children: Vec<(&str, &Node)> = match node {
        Node::Leaf(_) => return,
        Node::Section { children, .. } => {
            children.iter().map(|(name, child)| (name.as_str(), child)).collect()
        }
        Node::Map { element, .. } => {
            values.keys().map(|name| (name.as_str(), element.as_ref())).collect()
        }
    };
    let invented = path
        .first()
        .is_some_and(|first| matches!(Node::root().child(first), Some(Node::Map { .. })));
    for (name, child) in children {
        path.push(name.to_owned());
        let value = values.get(name);
        match (child, value) {
            (Node::Leaf(_), None) if invented => {}
            (Node::Leaf(_), value) => {
                let origin = origins.get(path).cloned().unwrap_or(Origin::Default);
                entries.push(Entry { key: dotted(path), value: value.cloned(), origin });
            }
            (_, Some(Value::Table(below))) => collect_entries(child, below, origins, path, entries),
            (_, _) => collect_entries(child, &Table::new(), origins, path, entries),
        }
        path.pop();
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
