//! Reads user input for a consultation from arguments and files: a brief, moves, and the user's
//! name.

use std::path::Path;

use moothall_core::Sha256Hex;
use moothall_core::consult::{MAX_ADDED_MOVES, MoveFile, Proposal};
use nix::unistd::{Uid, User};
use serde_json::Value;

use crate::config::{LoadedConfig, line_of};
use crate::display;
use crate::error::CliError;
use crate::files;

/// Size limit of a file with a brief or moves.
const MAX_FILE_BYTES: u64 = 512 * 1024;

/// Hint for invalid files with moves.
const MOVE_FORMAT_HINT: &str =
    "a move needs a `title` and a `thesis`; see `moothall moves --help` for an example";

/// Key of the hash of the original move, in an exported file.
const SEAL: &str = "seal";

/// The user's name: `by`, or the login name.
pub(crate) fn user_name(
    loaded: &LoadedConfig,
    by: Option<&str>,
    does: &str,
) -> Result<String, CliError> {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| loaded.environment.get(name));
    // Containers and services often have no such variable.
    let account = User::from_uid(Uid::current()).ok().flatten().map(|user| user.name);
    let names = [by, user, account.as_deref()];
    match names.into_iter().flatten().map(str::trim).find(|name| !name.is_empty()) {
        Some(name) => Ok(name.to_owned()),
        None => {
            Err(CliError::usage(format!("cannot determine who {does}"))
                .with_hint("pass `--by NAME`"))
        }
    }
}

/// A brief, given as text or as the name of a file.
pub(crate) fn brief(text_or_path: &str) -> Result<String, CliError> {
    let path = Path::new(text_or_path);
    let text = if path.is_file() {
        text_of(path, "the brief")?
    } else if looks_like_a_file(text_or_path) {
        let shown = display::line(text_or_path);
        return Err(CliError::usage(format!("no file `{shown}`"))
            .with_hint("`--brief` takes a text or the name of a text file"));
    } else {
        text_or_path.to_owned()
    };
    Ok(text.replace("\r\n", "\n").trim().to_owned())
}

/// A brief is never a single word with a file extension.
fn looks_like_a_file(text: &str) -> bool {
    let endings = [".md", ".txt", ".markdown"];
    !text.contains(char::is_whitespace) && endings.iter().any(|ending| text.ends_with(ending))
}

/// The moves in a file, in order.
pub(crate) fn moves(path: &Path) -> Result<Vec<Proposal>, CliError> {
    Ok(sealed_moves(path)?.into_iter().map(|(proposal, _)| proposal).collect())
}

/// Same as [`moves`], each with the seal of the original move, if the file has one.
fn sealed_moves(path: &Path) -> Result<Vec<(Proposal, Option<Sha256Hex>)>, CliError> {
    let text = text_of(path, "the file with moves")?;
    let shown = path.display().to_string();
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    parse_moves(&shown, &text, is_json)
}

/// The moves in a TOML or JSON text, in order. `name` precedes each mistake.
pub(crate) fn moves_in_text(name: &str, text: &str) -> Result<Vec<Proposal>, CliError> {
    if text.len() as u64 > MAX_FILE_BYTES {
        let message = format!("`{name}` is larger than {} KiB", MAX_FILE_BYTES >> 10);
        return Err(CliError::usage(message).with_hint("shorten the moves"));
    }
    // A TOML array of tables also starts with `[`, so only a valid JSON list is one.
    let is_json = text.trim_start().starts_with('{') || serde_json::from_str::<Value>(text).is_ok();
    let moves = parse_moves(name, text, is_json)?;
    Ok(moves.into_iter().map(|(proposal, _)| proposal).collect())
}

fn parse_moves(
    shown: &str,
    text: &str,
    is_json: bool,
) -> Result<Vec<(Proposal, Option<Sha256Hex>)>, CliError> {
    let value = value_of(shown, text, is_json)?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut table) if table.contains_key("moves") => {
            let others = table.keys().find(|key| *key != "moves").cloned();
            if let Some(other) = others {
                let message =
                    format!("{shown}: unexpected key `{}` next to `moves`", display::line(&other));
                return Err(CliError::usage(message).with_hint(MOVE_FORMAT_HINT));
            }
            match table.remove("moves") {
                Some(Value::Array(list)) => list,
                _ => {
                    let message = format!("{shown}: `moves` must be a list");
                    return Err(CliError::usage(message).with_hint(MOVE_FORMAT_HINT));
                }
            }
        }
        single => vec![single],
    };
    if list.is_empty() {
        return Err(CliError::usage(format!("{shown}: no moves found")).with_hint(MOVE_FORMAT_HINT));
    }
    if list.len() > MAX_ADDED_MOVES {
        let message = format!("{shown}: too many moves: {} (limit: {MAX_ADDED_MOVES})", list.len());
        return Err(CliError::usage(message));
    }
    let many = list.len();
    let mut moves = Vec::new();
    for (place, mut value) in (1..).zip(list) {
        let prefix = if many > 1 { format!("move {place}: ") } else { String::new() };
        let refused = |why: String| {
            let why = display::line(&why);
            CliError::usage(format!("{shown}: {prefix}{why}")).with_hint(MOVE_FORMAT_HINT)
        };
        let seal = value.as_object_mut().and_then(|table| table.remove(SEAL));
        let seal = seal.map(serde_json::from_value).transpose();
        let seal = seal.map_err(|_| {
            refused(format!("`{SEAL}` must be 64 lowercase hexadecimal digits")).with_hint(
                "restore this line as `moothall moves RUN --write DIR` wrote it, or delete it",
            )
        })?;
        let written: MoveFile =
            serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        moves.push((written.proposal().map_err(|error| refused(error.to_string()))?, seal));
    }
    Ok(moves)
}

/// The only move in a file, with the seal of the original move, if the file has one.
pub(crate) fn one_move(path: &Path) -> Result<(Proposal, Option<Sha256Hex>), CliError> {
    let mut moves = sealed_moves(path)?;
    match (moves.pop(), moves.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => {
            let message = format!("{}: more than one move", path.display());
            Err(CliError::usage(message).with_hint("use one file per edited move"))
        }
    }
}

/// A move as an editable TOML file.
pub(crate) fn render_move_file(
    head: &str,
    one: &Proposal,
    seal: &Sha256Hex,
) -> Result<String, CliError> {
    let body = toml::to_string_pretty(&MoveFile::from(one))
        .map_err(|error| CliError::failed("cannot serialize a move").with_source(error))?;
    let why = "do not change: used to detect that the move has changed since";
    Ok(format!("# {}\n{SEAL} = \"{seal}\" # {why}\n{body}", display::line(head)))
}

fn value_of(shown: &str, text: &str, is_json: bool) -> Result<Value, CliError> {
    if is_json {
        return serde_json::from_str(text).map_err(|error| {
            let why = display::line(&error.to_string());
            CliError::usage(format!("{shown} is not valid JSON: {why}")).with_hint(MOVE_FORMAT_HINT)
        });
    }
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let why = display::line(error.message());
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        CliError::usage(format!("{shown} is not valid TOML: {why} (line {line})"))
            .with_hint(MOVE_FORMAT_HINT)
    })?;
    serde_json::to_value(table)
        .map_err(|error| CliError::usage(format!("cannot read {shown}")).with_source(error))
}

fn text_of(path: &Path, what: &str) -> Result<String, CliError> {
    let unreadable =
        || CliError::usage(format!("cannot read {what}")).with_hint("it must be a UTF-8 text file");
    files::read_text(path, what, MAX_FILE_BYTES, unreadable)
}

#[cfg(test)]
#[path = "user_input_tests.rs"]
mod tests;
