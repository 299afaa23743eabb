//! Words for mistakes: the nearest known name, and where a key belongs that is not configuration.

use toml::Value;

use super::Origin;
use super::environment::{Variables, variable_of};
use super::problem::Problem;
use super::schema::{ANY_NAME, Kind, Node, dotted};
use crate::keys::usual_key_variable;

/// Below this likeness (0 to 1) a suggestion confuses more than it helps.
const LIKE_ENOUGH: f64 = 0.6;

/// A key of a file or a flag that does not exist.
pub(crate) fn unknown_key(root: &Node, place: &Origin, path: &[String]) -> Problem {
    let problem = Problem::new(format!("{place}: unknown key `{}`", dotted(path)));
    if looks_like_secret(path) {
        return problem.with_hint(secret_hint(path));
    }
    let known = known_paths(root, path);
    match nearest_path(&known, path) {
        Some(near) => problem.with_hint(format!("did you mean `{}`?", dotted(near))),
        None => problem.with_hint("`moothall config show` lists the known keys"),
    }
}

/// A `MOOTHALL_*` variable that is no key.
pub(crate) fn unknown_variable(
    root: &Node,
    variables: Variables,
    name: &str,
    path: &[String],
    reserved: &[&str],
) -> Problem {
    let problem = Problem::new(match variables {
        Variables::Process => format!("unknown environment variable `{name}`"),
        Variables::DotEnv => format!("unknown variable `{name}` in the `.env` file"),
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

/// A value that its key cannot take. `path` is `None` where the origin already names the key, as a
/// variable does.
pub(crate) fn wrong_value(
    origin: Origin,
    path: Option<&[String]>,
    kind: &Kind,
    value: &Value,
) -> Problem {
    let subject = path.map_or_else(String::new, |path| format!(" `{}`", dotted(path)));
    let problem = Problem::new(format!("{origin}:{subject} takes {kind}, not {}", shown(value)));
    match (kind, value) {
        (Kind::Choice(choices), Value::String(text)) => {
            match nearest(choices.iter().map(String::as_str), &text.to_lowercase()) {
                Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                None => problem,
            }
        }
        _ => problem,
    }
}

/// The most alike of `names`, if one is like enough.
pub(crate) fn nearest<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Option<&'a str> {
    names
        .map(|name| (strsim::normalized_damerau_levenshtein(name, wanted), name))
        .filter(|(likeness, _)| *likeness >= LIKE_ENOUGH)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// A value for a message: what was written, cut short.
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 40;
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        _ => {
            // TOML would spread a text with line breaks over several lines.
            let text = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
            if text.chars().count() <= LONGEST {
                text
            } else {
                text.chars().take(LONGEST).chain("…".chars()).collect()
            }
        }
    }
}

struct Known {
    path: Vec<String>,
    leaf: bool,
}

/// The known keys and tables, with the user's own name in the place of an invented one.
fn known_paths(root: &Node, wanted: &[String]) -> Vec<Known> {
    let with_name = |path: Vec<String>| {
        let segments =
            path.into_iter().enumerate().map(|(index, segment)| match wanted.get(index) {
                Some(name) if segment == ANY_NAME => name.clone(),
                _ => segment,
            });
        segments.collect()
    };
    let leaf = |node: &Node| matches!(node, Node::Leaf(_));
    root.walk()
        .into_iter()
        .map(|(path, node)| Known { path: with_name(path), leaf: leaf(node) })
        .collect()
}

/// By likeness of the whole path; failing that, a key of this very name in another table.
fn nearest_path<'a>(known: &'a [Known], wanted: &[String]) -> Option<&'a [String]> {
    let paths: Vec<(String, &Known)> =
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
    let variable = match path {
        [section, provider, ..] if section == "provider" => usual_key_variable(provider),
        _ => usual_key_variable("anthropic"),
    };
    format!(
        "keys are not configuration: set `{variable}`, or write the key into `keys.toml` (`moothall config path` shows where)"
    )
}
