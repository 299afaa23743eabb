//! Agents that have drafts and, beside them, a way around: a server for a shell or for files in the
//! same configuration of their client.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Where clients keep their servers, below the folder one stands in.
const HERE: [&str; 4] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".zed/settings.json"];
/// The same, below the home folder.
const AT_HOME: [&str; 5] = [
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    ".config/zed/settings.json",
    ".config/Code/User/mcp.json",
];
/// Under which key they list them.
const LISTS: [&str; 3] = ["mcpServers", "servers", "context_servers"];
/// Words in the name or the command of a server that runs programs or writes files.
const WAYS_AROUND: [&str; 8] = [
    "shell",
    "bash",
    "terminal",
    "commander",
    "filesystem",
    "file-system",
    "server-git",
    "text-editor",
];
/// The longest configuration that is read.
const MAX_BYTES: u64 = 8 << 20;

/// A server beside ours that does what ours holds back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WayAround {
    /// The configuration that lists both.
    pub(super) file: PathBuf,
    /// The name of the server there.
    pub(super) server: String,
}

/// Looks through the configurations of clients in these folders.
pub(super) fn ways_around(here: &Path, home: Option<&Path>) -> Vec<WayAround> {
    let home = home.into_iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name)));
    let files = HERE.iter().map(|name| here.join(name)).chain(home);
    files
        .filter(|file| fs_err::metadata(file).is_ok_and(|about| about.len() <= MAX_BYTES))
        .filter_map(|file| Some((fs_err::read_to_string(&file).ok()?, file)))
        .flat_map(|(text, file)| {
            let found = in_configuration(&text);
            found.into_iter().map(move |server| WayAround { file: file.clone(), server })
        })
        .collect()
}

/// The servers beside ours; none where ours is not listed.
fn in_configuration(text: &str) -> Vec<String> {
    // Zed and VS Code allow whole lines of comments.
    let plain: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let Ok(whole) = serde_json::from_str::<Value>(&plain.join("\n")) else { return Vec::new() };
    let mut found = Vec::new();
    look(&whole, &mut found);
    found
}

/// Claude Code keeps a list for each project inside of its file, so every object is looked at.
fn look(value: &Value, found: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (key, inner) in fields {
        match inner {
            Value::Object(servers) if LISTS.contains(&key.as_str()) => {
                if servers.iter().any(|(name, server)| is_ours(name, server)) {
                    let around = servers.iter().filter(|(name, server)| {
                        !is_ours(name, server) && leads_around(name, server)
                    });
                    found.extend(around.map(|(name, _)| name.clone()));
                }
            }
            other => look(other, found),
        }
    }
}

fn is_ours(name: &str, server: &Value) -> bool {
    let words = words_of(name, server);
    words.iter().any(|word| word.contains("moothall"))
}

fn leads_around(name: &str, server: &Value) -> bool {
    let words = words_of(name, server);
    WAYS_AROUND.iter().any(|way| words.iter().any(|word| word.contains(way)))
}

/// What a server is called and started with, in small letters.
fn words_of(name: &str, server: &Value) -> Vec<String> {
    let command = &server["command"];
    // Zed has an object there.
    let started = [command, &command["path"]].into_iter().filter_map(Value::as_str);
    let arguments = [&server["args"], &command["args"]].into_iter().filter_map(Value::as_array);
    let arguments = arguments.flatten().filter_map(Value::as_str);
    std::iter::once(name).chain(started).chain(arguments).map(str::to_lowercase).collect()
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
