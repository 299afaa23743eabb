//! Variables of the process or of a `.env` file, and how `MOOTHALL_*` names become configuration
//! keys.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use toml::Value;

use super::file::line_of;
use super::origin::Setting;
use super::problem::{ConfigError, Problem};
use super::schema::{Kind, Node};
use super::{Origin, hints};
use crate::database::DATABASE_URL_VARIABLE;
use crate::folders::DATA_DIR_VARIABLE;

/// The variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "MOOTHALL_CONFIG";

pub(crate) const PREFIX: &str = "MOOTHALL_";

/// Variables that are not configuration keys.
const RESERVED: [&str; 3] = [CONFIG_VARIABLE, DATA_DIR_VARIABLE, DATABASE_URL_VARIABLE];
/// Beginnings of variables that steer the test suite and the build.
const IGNORED: [&str; 2] = ["MOOTHALL_TEST_", "MOOTHALL_REQUIRE_"];

/// Names and values of variables. Its `Debug` prints the names only, because values may be API
/// keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Result<Self, ConfigError> {
        Self::from_os(std::env::vars_os())
    }

    /// A variable that decides where our files are must be readable; of all others, such as keys,
    /// each user judges the value itself.
    fn from_os(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Self, ConfigError> {
        let mut environment = BTreeMap::new();
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            let value = match value.into_string() {
                Ok(value) => value,
                Err(_)
                    if name.starts_with(PREFIX) || name.starts_with("XDG_") || name == "HOME" =>
                {
                    return Err(Problem::new(format!(
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

    /// Parses the text of a `.env` file. When a name comes twice, the last one counts.
    ///
    /// Errors name the line and never quote it: it may hold a key.
    pub fn from_dotenv(path: &Path, text: &str) -> Result<Self, ConfigError> {
        // The reader knows neither a byte order mark nor a last line that ends in a space.
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
                    return Err(Problem::new(format!(
                        "{}{place}: not a line like `NAME=value`",
                        path.display()
                    ))
                    .with_hint("put a value with spaces or quotes between single quotes")
                    .into());
                }
            };
        }
        Ok(Self(environment))
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<Name: Into<String>, Text: Into<String>> FromIterator<(Name, Text)> for Environment {
    fn from_iter<Pairs: IntoIterator<Item = (Name, Text)>>(pairs: Pairs) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Which kind of variables are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    Process,
    DotEnv,
}

/// The settings that `MOOTHALL_*` variables make.
pub(crate) fn settings(
    root: &Node,
    environment: &Environment,
    variables: Variables,
) -> (Vec<Setting>, Vec<Problem>) {
    let mut settings = Vec::new();
    let mut problems = Vec::new();
    for (name, text) in environment.iter() {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        if IGNORED.iter().any(|beginning| name.starts_with(beginning)) {
            continue;
        }
        if RESERVED.contains(&name) {
            if variables == Variables::DotEnv && name == CONFIG_VARIABLE {
                problems.push(
                    Problem::new(format!("`{name}` has no effect in a `.env` file"))
                        .with_hint("the `.env` file is found beside the configuration file, so it cannot name it"),
                );
            }
            continue;
        }
        let origin = match variables {
            Variables::Process => Origin::Environment { name: name.to_owned() },
            Variables::DotEnv => Origin::DotEnv { name: name.to_owned() },
        };
        let path = path_of(rest);
        match root.leaf(&path) {
            // A lower-case letter would make two names of one key.
            Some(leaf) if !rest.contains(|letter: char| letter.is_lowercase()) => {
                if text.is_empty() {
                    continue;
                }
                match parse(&leaf.kind, text) {
                    Some(value) => settings.push(Setting { path, value, origin }),
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
                    // Another version of this program, or another program, may know it.
                    Variables::Process => problem.into_warning(),
                    Variables::DotEnv => problem,
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

/// A variable is text; the key decides what it is read as. `None` means that it cannot be read.
fn parse(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Text | Kind::Path | Kind::Duration | Kind::Dollars | Kind::Choice(_) => {
            Some(Value::String(text.to_owned()))
        }
        Kind::Integer { .. } => text.trim().parse().ok().map(Value::Integer),
        Kind::Number => text.trim().parse().ok().map(Value::Float),
        Kind::Boolean => text.trim().parse().ok().map(Value::Boolean),
        Kind::Other => None,
    }
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
