//! Finds MCP client configurations that list a shell or file server besides moothall, with which an
//! agent can bypass drafts.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Configuration files of MCP clients, relative to the working directory.
const WORKSPACE_FILES: [&str; 4] =
    [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".zed/settings.json"];
/// The same, relative to the home directory.
const HOME_FILES: [&str; 5] = [
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    ".config/zed/settings.json",
    ".config/Code/User/mcp.json",
];
/// Keys of the server lists.
const LISTS: [&str; 3] = ["mcpServers", "servers", "context_servers"];
/// Words in the name or command of servers that run programs or write files.
const BYPASS_KEYWORDS: [&str; 8] = [
    "shell",
    "bash",
    "terminal",
    "commander",
    "filesystem",
    "file-system",
    "server-git",
    "text-editor",
];
const MAX_BYTES: u64 = 8 << 20;

/// A server that lets an agent bypass drafts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftBypass {
    /// The configuration file that lists it together with moothall.
    pub(crate) file: PathBuf,
    pub(crate) server: String,
}

pub(crate) fn find_bypasses(here: &Path, home: Option<&Path>) -> Vec<DraftBypass> {
    let home = home.into_iter().flat_map(|home| HOME_FILES.iter().map(|name| home.join(name)));
    let files = WORKSPACE_FILES.iter().map(|name| here.join(name)).chain(home);
    files
        .filter(|file| fs_err::metadata(file).is_ok_and(|metadata| metadata.len() <= MAX_BYTES))
        .filter_map(|file| Some((fs_err::read_to_string(&file).ok()?, file)))
        .flat_map(|(text, file)| {
            let found = bypasses_in(&text);
            found.into_iter().map(move |server| DraftBypass { file: file.clone(), server })
        })
        .collect()
}

/// The bypassing servers; empty if moothall is not listed.
fn bypasses_in(text: &str) -> Vec<String> {
    // Zed and VS Code allow comment lines.
    let plain: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let Ok(document) = serde_json::from_str::<Value>(&plain.join("\n")) else { return Vec::new() };
    let mut found = Vec::new();
    collect_bypasses(&document, &mut found);
    found
}

/// Claude Code keeps a list for each project in its file, so all objects are searched.
fn collect_bypasses(value: &Value, found: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (key, inner) in fields {
        match inner {
            Value::Object(servers) if LISTS.contains(&key.as_str()) => {
                if servers.iter().any(|(name, server)| is_ours(name, server)) {
                    let bypasses = servers
                        .iter()
                        .filter(|(name, server)| !is_ours(name, server) && is_bypass(name, server));
                    found.extend(bypasses.map(|(name, _)| name.clone()));
                }
            }
            other => collect_bypasses(other, found),
        }
    }
}

fn is_ours(name: &str, server: &Value) -> bool {
    let terms = server_terms(name, server);
    terms.iter().any(|term| term.contains("moothall"))
}

fn is_bypass(name: &str, server: &Value) -> bool {
    let terms = server_terms(name, server);
    BYPASS_KEYWORDS.iter().any(|way| terms.iter().any(|term| term.contains(way)))
}

/// Name, command and arguments of a server, in lower case.
fn server_terms(name: &str, server: &Value) -> Vec<String> {
    let command = &server["command"];
    // In Zed's configuration, `command` is an object.
    let started = [command, &command["path"]].into_iter().filter_map(Value::as_str);
    let arguments = [&server["args"], &command["args"]].into_iter().filter_map(Value::as_array);
    let arguments = arguments.flatten().filter_map(Value::as_str);
    std::iter::once(name).chain(started).chain(arguments).map(str::to_lowercase).collect()
}

#[cfg(test)]
#[path = "mcp_clients_tests.rs"]
mod tests;
