//! Output of `moothall config show`, `path` and `check`.

use std::fmt::Write as _;

use moothall_core::text::escaped_lines;
use serde_json::{Value, json};

use super::ConfigOrigin;
use super::layers::{ConfigEntry, ResolvedConfig};
use super::problem::{ConfigError, ConfigProblem};
use super::sources::ConfigLocations;

/// Every key with its value and origin, as a valid TOML configuration file or a JSON list.
pub fn show(resolved: &ResolvedConfig, json: bool) -> String {
    if json {
        return pretty(&json!(resolved.entries));
    }
    let mut text = String::new();
    let mut section = "";
    for ConfigEntry { key, value, origin } in &resolved.entries {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
        if table != section {
            line(&mut text, format_args!("\n[{table}]"));
            section = table;
        }
        match value {
            Some(value) if *origin == ConfigOrigin::Default => {
                line(&mut text, format_args!("{name} = {value}  # default"))
            }
            Some(value) => line(&mut text, format_args!("{name} = {value}  # from {origin}")),
            None => line(&mut text, format_args!("# {name} is not set")),
        }
    }
    text
}

/// The searched configuration files, the one in use, and the directories.
pub fn path(locations: &ConfigLocations, json: bool) -> String {
    let used = locations.used();
    let (dotenv, keys_file, folders) =
        (locations.dotenv(), locations.keys_file(), &locations.folders);
    if json {
        let candidates: Vec<Value> = locations
            .candidates
            .iter()
            .map(|candidate| {
                json!({
                    "path": candidate.path.to_string_lossy(),
                    "by": candidate.by,
                    "exists": candidate.exists,
                    "used": Some(candidate) == used,
                })
            })
            .collect();
        return pretty(&json!({
            "config": candidates,
            "dotenv": dotenv.map(|path| path.to_string_lossy().into_owned()),
            "keys": keys_file.to_string_lossy(),
            "data": folders.data.to_string_lossy(),
            "cache": folders.cache.to_string_lossy(),
            "state": folders.state.to_string_lossy(),
        }));
    }
    let mut text = String::new();
    for candidate in &locations.candidates {
        let note = match (candidate.exists, Some(candidate) == used) {
            (true, true) => "used",
            (true, false) => "not used: the file above takes precedence",
            (false, _) => "does not exist",
        };
        line(&mut text, format_args!("config  {} ({note})", candidate.path.display()));
    }
    let exists = |path: &std::path::Path| if path.exists() { "" } else { " (does not exist)" };
    if let Some(dotenv) = dotenv {
        line(&mut text, format_args!(".env    {}{}", dotenv.display(), exists(&dotenv)));
    }
    line(&mut text, format_args!("keys    {}{}", keys_file.display(), exists(&keys_file)));
    for (name, folder) in
        [("data", &folders.data), ("cache", &folders.cache), ("state", &folders.state)]
    {
        line(&mut text, format_args!("{name:<7} {}", folder.display()));
    }
    text
}

pub fn check(resolved: &Result<ResolvedConfig, ConfigError>, json: bool) -> String {
    let problems: Vec<&ConfigProblem> = match resolved {
        Ok(resolved) => resolved.warnings.iter().collect(),
        Err(error) => error.problems().collect(),
    };
    if json {
        return pretty(&json!({ "ok": problems.is_empty(), "problems": problems }));
    }
    if problems.is_empty() {
        return "ok\n".to_owned();
    }
    let mut text = String::new();
    for problem in problems {
        line(&mut text, format_args!("{}", escaped_lines(&problem.message)));
        if let Some(hint) = &problem.hint {
            line(&mut text, format_args!("  hint: {}", escaped_lines(hint)));
        }
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
