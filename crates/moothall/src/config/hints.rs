//! Messages for configuration mistakes, with the nearest known name and the right place for API
//! keys.

use toml::Value;

use super::ConfigOrigin;
use super::environment::{EnvVarSource, variable_of};
use super::problem::ConfigProblem;
use super::schema::{ANY_NAME, ConfigNode, ConfigValueKind, dotted};
use crate::keys::default_key_variable;

/// Below this similarity (0 to 1), suggestions confuse more than they help.
const MIN_SIMILARITY: f64 = 0.6;

/// An unknown key in a file or flag.
pub(crate) fn unknown_key(
    root: &ConfigNode,
    place: &ConfigOrigin,
    path: &[String],
) -> ConfigProblem {
    let problem = ConfigProblem::new(format!("{place}: unknown key `{}`", dotted(path)));
    if looks_like_secret(path) {
        return problem.with_hint(secret_hint(path));
    }
    let known = known_paths(root, path);
    match nearest_path(&known, path) {
        Some(near) => problem.with_hint(format!("did you mean `{}`?", dotted(near))),
        None => problem.with_hint("`moothall config show` lists the known keys"),
    }
}

/// A `MOOTHALL_*` variable that does not match a key.
pub(crate) fn unknown_variable(
    root: &ConfigNode,
    variables: EnvVarSource,
    name: &str,
    path: &[String],
    reserved: &[&str],
) -> ConfigProblem {
    let problem = ConfigProblem::new(match variables {
        EnvVarSource::Process => format!("unknown environment variable `{name}`"),
        EnvVarSource::DotEnv => format!("unknown variable `{name}` in the `.env` file"),
    });
    if looks_like_secret(path) {
        return problem.with_hint(secret_hint(path));
    }
    let names: Vec<String> = known_paths(root, path)
        .into_iter()
        .filter(|known| known.leaf)
        .map(|known| variable_of(&known.path))
        .chain(reserved.iter().map(|name| (*name).to_owned()))
        .collect();
    match nearest(names.iter().map(String::as_str), &name.to_ascii_uppercase()) {
        Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
        None => problem.with_hint("`moothall config show` lists the known keys"),
    }
}

/// An invalid value. `path` is `None` if the origin already names the key, as a variable does.
pub(crate) fn wrong_value(
    origin: ConfigOrigin,
    path: Option<&[String]>,
    kind: &ConfigValueKind,
    value: &Value,
) -> ConfigProblem {
    let subject = path.map_or_else(String::new, |path| format!(" `{}`", dotted(path)));
    let problem =
        ConfigProblem::new(format!("{origin}:{subject} expects {kind}, not {}", shown(value)));
    match (kind, value) {
        (ConfigValueKind::Choice(choices), Value::String(text)) => {
            match nearest(choices.iter().map(String::as_str), &text.to_lowercase()) {
                Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                None => problem,
            }
        }
        _ => problem,
    }
}

/// The most similar name, if it is similar enough.
pub(crate) fn nearest<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Option<&'a str> {
    names
        .map(|name| (strsim::normalized_damerau_levenshtein(name, wanted), name))
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// A value for an error message, truncated.
pub(crate) fn shown(value: &Value) -> String {
    const MAX_CHARS: usize = 40;
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        _ => {
            // TOML would print a text with line breaks on several lines.
            let text = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
            if text.chars().count() <= MAX_CHARS {
                text
            } else {
                text.chars().take(MAX_CHARS).chain("…".chars()).collect()
            }
        }
    }
}

struct KnownKeyPath {
    path: Vec<String>,
    leaf: bool,
}

/// The known keys and tables, with placeholders such as `NAME` replaced by the user's names.
fn known_paths(root: &ConfigNode, wanted: &[String]) -> Vec<KnownKeyPath> {
    let with_name = |path: Vec<String>| {
        let segments =
            path.into_iter().enumerate().map(|(index, segment)| match wanted.get(index) {
                Some(name) if segment == ANY_NAME => name.clone(),
                _ => segment,
            });
        segments.collect()
    };
    let leaf = |node: &ConfigNode| matches!(node, ConfigNode::Leaf(_));
    root.walk()
        .into_iter()
        .map(|(path, node)| KnownKeyPath { path: with_name(path), leaf: leaf(node) })
        .collect()
}

/// The most similar path, otherwise a key with the same name in another table.
fn nearest_path<'a>(known: &'a [KnownKeyPath], wanted: &[String]) -> Option<&'a [String]> {
    let paths: Vec<(String, &KnownKeyPath)> =
        known.iter().map(|known| (dotted(&known.path), known)).collect();
    let near = nearest(paths.iter().map(|(text, _)| text.as_str()), &dotted(wanted));
    let by_likeness = near.and_then(|near| paths.iter().find(|(text, _)| text == near));
    let by_last_name =
        || paths.iter().find(|(_, known)| known.leaf && known.path.last() == wanted.last());
    by_likeness.or_else(by_last_name).map(|(_, known)| known.path.as_slice())
}

fn looks_like_secret(path: &[String]) -> bool {
    let Some(last) = path.last() else { return false };
    let plain: String = last.chars().filter(char::is_ascii_alphanumeric).collect();
    matches!(
        plain.to_ascii_lowercase().as_str(),
        "apikey" | "key" | "secret" | "secretkey" | "apitoken"
    )
}

fn secret_hint(path: &[String]) -> String {
    let provider = match path {
        [section, provider, ..] if section == "provider" => provider.as_str(),
        _ => "anthropic",
    };
    let variable = default_key_variable(provider);
    format!(
        "API keys are not part of the configuration: run `moothall key set {provider}`, or set `{variable}`"
    )
}
