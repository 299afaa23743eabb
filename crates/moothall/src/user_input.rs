//! What a person says to a consultation, read from the command line and from files: a brief, moves,
//! and who says so.

use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_core::consult::{MAX_ADDED_MOVES, Proposal, WrittenMove};
use serde_json::Value;

use crate::config::Loaded;
use crate::display;
use crate::error::CliError;
use crate::files;

/// The largest file with a brief or with moves.
const MAX_FILE_BYTES: u64 = 512 * 1024;

/// How a file with moves is written.
const HOW: &str =
    "a move needs a `title` and a `thesis`; `moothall moves --help` shows a whole one";

/// What a file of a move says about the move that it was made of.
const SEAL: &str = "seal";

/// Who says so: as told, or whoever is logged in.
pub(super) fn who(loaded: &Loaded, by: Option<&str>, does: &str) -> Result<String, CliError> {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| loaded.environment.get(name));
    match by.or(user).map(str::trim) {
        Some(by) if !by.is_empty() => Ok(by.to_owned()),
        _ => {
            Err(CliError::usage(format!("nobody says who {does}")).with_hint("say it: `--by NAME`"))
        }
    }
}

/// A brief: the words themselves, or those of a file of that name.
pub(super) fn brief(words_or_file: &str) -> Result<String, CliError> {
    let path = Path::new(words_or_file);
    let text = if path.is_file() {
        text_of(path, "the brief")?
    } else if looks_like_a_file(words_or_file) {
        let shown = display::line(words_or_file);
        return Err(CliError::usage(format!("there is no file `{shown}`"))
            .with_hint("`--brief` takes the words themselves, or a file that holds them"));
    } else {
        words_or_file.to_owned()
    };
    Ok(text.replace("\r\n", "\n").trim().to_owned())
}

/// Nobody writes a brief in one word with a file's ending.
fn looks_like_a_file(text: &str) -> bool {
    let endings = [".md", ".txt", ".markdown"];
    !text.contains(char::is_whitespace) && endings.iter().any(|ending| text.ends_with(ending))
}

/// The moves of a file, in its order.
pub(super) fn moves(path: &Path) -> Result<Vec<Proposal>, CliError> {
    Ok(sealed_moves(path)?.into_iter().map(|(proposal, _)| proposal).collect())
}

/// The same, each with the seal of the move that it was made of, where the file has one.
fn sealed_moves(path: &Path) -> Result<Vec<(Proposal, Option<Sha256Hex>)>, CliError> {
    let text = text_of(path, "the file with moves")?;
    let shown = path.display();
    let value = value_of(path, &text)?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut table) if table.contains_key("moves") => {
            let others = table.keys().find(|key| *key != "moves").cloned();
            if let Some(other) = others {
                let words = format!("{shown}: `{}` stands beside `moves`", display::line(&other));
                return Err(CliError::usage(words).with_hint(HOW));
            }
            match table.remove("moves") {
                Some(Value::Array(list)) => list,
                _ => {
                    let words = format!("{shown}: `moves` is no list");
                    return Err(CliError::usage(words).with_hint(HOW));
                }
            }
        }
        single => vec![single],
    };
    if list.is_empty() {
        return Err(CliError::usage(format!("{shown}: there is no move in it")).with_hint(HOW));
    }
    if list.len() > MAX_ADDED_MOVES {
        let words = format!("{shown}: it has {} moves; {MAX_ADDED_MOVES} are the most", list.len());
        return Err(CliError::usage(words));
    }
    let many = list.len();
    let mut moves = Vec::new();
    for (place, mut value) in (1..).zip(list) {
        let of = if many > 1 { format!("move {place}: ") } else { String::new() };
        let refused = |why: String| {
            let why = display::line(&why);
            CliError::usage(format!("{shown}: {of}{why}")).with_hint(HOW)
        };
        let seal = value.as_object_mut().and_then(|table| table.remove(SEAL));
        let seal = seal.map(serde_json::from_value).transpose();
        let seal = seal.map_err(|_| refused(format!("`{SEAL}` is not as it was written")))?;
        let written: WrittenMove =
            serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        moves.push((written.proposal().map_err(|error| refused(error.to_string()))?, seal));
    }
    Ok(moves)
}

/// The only move of a file, and the seal of the move that it was made of, where the file has one.
pub(super) fn one_move(path: &Path) -> Result<(Proposal, Option<Sha256Hex>), CliError> {
    let mut moves = sealed_moves(path)?;
    match (moves.pop(), moves.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => {
            let words = format!("{}: it has more than one move", path.display());
            Err(CliError::usage(words).with_hint("one file for each move that is edited"))
        }
    }
}

/// A move as a file that can be edited.
pub(super) fn file_of(head: &str, one: &Proposal, seal: &Sha256Hex) -> Result<String, CliError> {
    let body = toml::to_string_pretty(&WrittenMove::from(one))
        .map_err(|error| CliError::failed("a move cannot be written").with_source(error))?;
    let why = "leave it: an edit of a move that somebody changed since then is refused";
    Ok(format!("# {}\n{SEAL} = \"{seal}\" # {why}\n{body}", display::line(head)))
}

fn value_of(path: &Path, text: &str) -> Result<Value, CliError> {
    let shown = path.display();
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json {
        return serde_json::from_str(text).map_err(|error| {
            let why = display::line(&error.to_string());
            CliError::usage(format!("{shown} is no JSON: {why}")).with_hint(HOW)
        });
    }
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let why = display::line(error.message());
        CliError::usage(format!("{shown} is no TOML: {why}")).with_hint(HOW)
    })?;
    serde_json::to_value(table)
        .map_err(|error| CliError::usage(format!("{shown} cannot be read")).with_source(error))
}

fn text_of(path: &Path, what: &str) -> Result<String, CliError> {
    let unreadable = || {
        CliError::usage(format!("{what} cannot be read")).with_hint("it is a text file, in UTF-8")
    };
    files::read_text(path, what, MAX_FILE_BYTES, unreadable)
}

#[cfg(test)]
#[path = "user_input_tests.rs"]
mod tests;
