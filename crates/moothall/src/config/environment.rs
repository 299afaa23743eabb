//! Environment variables of the process or of a `.env` file, and their mapping from `MOOTHALL_*`
//! names to configuration keys.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use toml::Value;

use super::file::line_of;
use super::origin::ConfigSetting;
use super::problem::{ConfigError, ConfigProblem};
use super::schema::{ConfigNode, ConfigValueKind};
use super::{ConfigOrigin, hints};
use crate::app_dirs::DATA_DIR_VARIABLE;
use crate::database::DATABASE_URL_VARIABLE;

/// Names the configuration file.
pub const CONFIG_VARIABLE: &str = "MOOTHALL_CONFIG";

pub(crate) const PREFIX: &str = "MOOTHALL_";

/// Variables that are not configuration keys.
const RESERVED: [&str; 3] = [CONFIG_VARIABLE, DATA_DIR_VARIABLE, DATABASE_URL_VARIABLE];
/// Prefixes of variables for the test suite and the build.
const IGNORED: [&str; 2] = ["MOOTHALL_TEST_", "MOOTHALL_REQUIRE_"];

/// Environment variables. `Debug` prints only names, because values may be API keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvVars(BTreeMap<String, String>);

impl EnvVars {
    pub fn of_process() -> Result<Self, ConfigError> {
        Self::from_os(std::env::vars_os())
    }

    /// Only variables that determine the location of our files must be valid UTF-8. Users of other
    /// variables, such as keys, validate the value themselves.
    fn from_os(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Self, ConfigError> {
        let mut environment = BTreeMap::new();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            let value = match value.into_string() {
                Ok(value) => value,
                Err(_)
                    if name.starts_with(PREFIX) || name.starts_with("XDG_") || name == "HOME" =>
                {
                    return Err(ConfigProblem::new(format!(
                        "the environment variable `{name}` is not valid UTF-8"
                    ))
                    .into());
                }
                Err(value) => value.to_string_lossy().into_owned(),
            };
            environment.insert(name, value);
        }
        Ok(Self(environment))
    }

    /// Parses a `.env` file. The last value of a repeated name wins.
    ///
    /// Errors give the line number and never quote the line, which may contain a key.
    pub fn from_dotenv(path: &Path, text: &str) -> Result<Self, ConfigError> {
        // dotenvy handles neither a byte order mark nor a last line that ends in a space.
        let text = format!("{}\n", text.strip_prefix('\u{feff}').unwrap_or(text));
        let mut environment = BTreeMap::new();
        for pair in dotenvy::from_read_iter(text.as_bytes()) {
            match pair {
                Ok((name, value)) => environment.insert(name, value),
                Err(error) => {
                    let line = match &error {
                        dotenvy::Error::LineParse(line, _) => text
                            .match_indices(line.as_str())
                            .find(|(start, _)| *start == 0 || text[..*start].ends_with('\n'))
                            .map(|(start, _)| line_of(&text, start)),
                        _ => None,
                    };
                    let place = line.map_or_else(String::new, |line| format!(":{line}"));
                    return Err(ConfigProblem::new(format!(
                        "{}{place}: expected `NAME=value`",
                        path.display()
                    ))
                    .with_hint("put values with spaces or quotes in single quotes")
                    .into());
                }
            };
        }
        Ok(Self(environment))
    }

    /// The value of a variable; an empty value counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<Name: Into<String>, Text: Into<String>> FromIterator<(Name, Text)> for EnvVars {
    fn from_iter<Pairs: IntoIterator<Item = (Name, Text)>>(pairs: Pairs) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvVarSource {
    Process,
    DotEnv,
}

/// Collects the settings from `MOOTHALL_*` variables.
pub(crate) fn settings(
    root: &ConfigNode,
    environment: &EnvVars,
    variables: EnvVarSource,
) -> (Vec<ConfigSetting>, Vec<ConfigProblem>) {
    let mut settings = Vec::new();
    let mut problems = Vec::new();
    for (name, text) in environment.iter() {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if IGNORED.iter().any(|beginning| name.starts_with(beginning)) {
            continue;
        }
        if RESERVED.contains(&name) {
            if variables == EnvVarSource::DotEnv && name == CONFIG_VARIABLE {
                problems.push(
                    ConfigProblem::new(format!("`{name}` has no effect in a `.env` file"))
                        .with_hint("set it in the process environment: the `.env` file is located through the configuration file"),
                );
            }
            continue;
        }
        let origin = match variables {
            EnvVarSource::Process => ConfigOrigin::Environment { name: name.to_owned() },
            EnvVarSource::DotEnv => ConfigOrigin::DotEnv { name: name.to_owned() },
        };
        let path = path_of(rest);
        match root.leaf(&path) {
            // Accepting lower case would give one key two names.
            Some(leaf) if !rest.contains(|letter: char| letter.is_lowercase()) => {
                if text.is_empty() {
                    continue;
                }
                match parse(&leaf.kind, text) {
                    Some(value) => settings.push(ConfigSetting { path, value, origin }),
                    None => problems.push(hints::wrong_value(
                        origin,
                        None,
                        &leaf.kind,
                        &Value::String(text.to_owned()),
                    )),
                }
            }
            _ => {
                let problem = hints::unknown_variable(root, variables, name, &path, &RESERVED);
                problems.push(match variables {
                    // It may be meant for another version of moothall or another program.
                    EnvVarSource::Process => problem.into_warning(),
                    EnvVarSource::DotEnv => problem,
                });
            }
        }
    }
    (settings, problems)
}

/// The variable that sets a key, such as `MOOTHALL_BUDGET__USD`.
pub(crate) fn variable_of<Segment: AsRef<str>>(path: &[Segment]) -> String {
    let segments: Vec<String> =
        path.iter().map(|segment| segment.as_ref().to_ascii_uppercase()).collect();
    format!("{PREFIX}{}", segments.join("__"))
}

fn path_of(rest: &str) -> Vec<String> {
    rest.split("__").map(str::to_ascii_lowercase).collect()
}

/// Parses a value according to its key. Returns `None` if it is invalid.
fn parse(kind: &ConfigValueKind, text: &str) -> Option<Value> {
    match kind {
        ConfigValueKind::Text
        | ConfigValueKind::Path
        | ConfigValueKind::Duration
        | ConfigValueKind::Dollars
        | ConfigValueKind::Models
        | ConfigValueKind::Choice(_) => Some(Value::String(text.to_owned())),
        ConfigValueKind::List => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            Some(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()))
        }
        ConfigValueKind::Integer { .. } => text.trim().parse().ok().map(Value::Integer),
        ConfigValueKind::Number => text.trim().parse().ok().map(Value::Float),
        ConfigValueKind::Boolean => text.trim().parse().ok().map(Value::Boolean),
        ConfigValueKind::Other => None,
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
