//! The configuration files of each client, and the entries that connect it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json_entry::{self, JsonHook};
use super::toml_entry;
use crate::args::{ConnectArgs, ConnectClient, ToolsArg};
use crate::config::EnvVars;
use crate::error::CliError;

/// The name of the program and of its entry.
pub(crate) const PROGRAM: &str = "moothall";

/// Time limit of a hook. Judging one file takes milliseconds.
const HOOK_SECONDS: u64 = 30;

/// The plugin of opencode. Its first line identifies it.
const PLUGIN: &str = include_str!("opencode_plugin.js");
const PLUGIN_MARK: &str = "// Written by `moothall connect opencode --hook`";

/// Whose configuration is edited.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ConnectSource<'a> {
    User(&'a EnvVars),
    Project,
}

/// All files that connect a client.
#[derive(Debug)]
pub(crate) struct ConnectPlan {
    client: ConnectClient,
    is_project: bool,
    has_hook: bool,
    files: Vec<ClientFile>,
}

/// One configuration file with its entries.
#[derive(Debug)]
pub(crate) struct ClientFile {
    pub(crate) path: PathBuf,
    entries: Vec<ClientEntry>,
}

#[derive(Debug)]
enum ClientEntry {
    /// An object in an object, such as `mcpServers.moothall`.
    JsonServer {
        list: &'static str,
        entry: Value,
    },
    JsonHook(JsonHook),
    TomlServer {
        command: String,
        args: Vec<String>,
    },
    TomlHook {
        command: String,
    },
    /// A file that belongs to Moothall as a whole.
    Plugin(String),
}

/// The directories that hold the configuration of a client.
struct ClientFolders<'a> {
    source: ConnectSource<'a>,
}

impl ClientFolders<'_> {
    /// A file below the home directory, or below the directory that a variable names.
    fn user(&self, variable: &str, below_home: &str, name: &str) -> Result<PathBuf, CliError> {
        let ConnectSource::User(environment) = self.source else { return Ok(name.into()) };
        let absolute =
            |name: &str| environment.get(name).map(Path::new).filter(|folder| folder.is_absolute());
        if let Some(folder) = absolute(variable) {
            return Ok(folder.join(name));
        }
        let home = absolute("HOME").ok_or_else(|| {
            CliError::usage("cannot determine the home directory")
                .with_hint("set `HOME`, or write the project's file with `--project`")
        })?;
        Ok(home.join(below_home).join(name))
    }

    fn is_project(&self) -> bool {
        matches!(self.source, ConnectSource::Project)
    }
}

impl ConnectPlan {
    pub(crate) fn new(
        args: &ConnectArgs,
        source: ConnectSource<'_>,
        program: &str,
    ) -> Result<Self, CliError> {
        let folders = ClientFolders { source };
        let client = args.client;
        // `--remove` also removes a hook that an earlier call added.
        let has_hook = args.hook || args.remove;
        if args.hook && matches!(client, ConnectClient::Cursor | ConnectClient::Zed) {
            return Err(CliError::usage(format!(
                "{} has no hook that runs before an edit",
                client.name()
            ))
            .with_hint("connect it without `--hook`, and turn its own editing tools off"));
        }
        let files = files_of(client, &folders, program, args.tools, has_hook)?;
        Ok(Self { client, is_project: folders.is_project(), has_hook: args.hook, files })
    }

    pub(crate) fn files(&self) -> &[ClientFile] {
        &self.files
    }

    /// The entries in files without other settings.
    pub(crate) fn print(&self) -> Result<String, CliError> {
        let mut text = String::new();
        for file in &self.files {
            let is_json = file.path.extension().is_some_and(|kind| kind != "toml");
            let comment = if is_json { "//" } else { "#" };
            text.push_str(&format!("{comment} {}\n", file.path.display()));
            text.push_str(&file.with_entries(None)?);
        }
        Ok(text)
    }

    /// What the user must do or know after the files are written.
    pub(crate) fn notes(&self) -> Vec<&'static str> {
        let mut notes = vec![match (self.client, self.is_project) {
            (ConnectClient::ClaudeCode, true) => {
                "Claude Code asks each user to approve the servers of a project; then `claude mcp list` shows it"
            }
            (ConnectClient::ClaudeCode, false) => "check it with `claude mcp list`",
            (ConnectClient::Codex, true) => {
                "Codex reads the file of a project only if you trust the project; then `codex mcp list` shows it"
            }
            (ConnectClient::Codex, false) => "check it with `codex mcp list`",
            (ConnectClient::Gemini, _) => "check it with `gemini mcp list`",
            (ConnectClient::Opencode, _) => "check it with `opencode mcp list`",
            (ConnectClient::Cursor, _) => "turn it on in the settings of Cursor, under MCP",
            (ConnectClient::Zed, _) => "see its state in the settings of the agent panel",
        }];
        if self.has_hook {
            if self.client == ConnectClient::Codex {
                notes.push(
                    "Codex skips a new hook until you have reviewed it: start `codex` and run `/hooks`",
                );
            }
            notes.push("a hook is early advice: it does not see what shell commands write");
        }
        notes.push("the client can still use its own editing tools; see \"Connect a coding agent\" in the documentation");
        notes
    }
}

fn files_of(
    client: ConnectClient,
    folders: &ClientFolders<'_>,
    program: &str,
    tools: ToolsArg,
    has_hook: bool,
) -> Result<Vec<ClientFile>, CliError> {
    let args = server_args(client, tools);
    let hook_command = hook_command(client, program)?;
    let hook = |event, matcher, timeout, name: Option<&'static str>| {
        ClientEntry::JsonHook(JsonHook {
            event,
            matcher,
            command: hook_command.clone(),
            timeout,
            name,
        })
    };
    let project = folders.is_project();
    let mut files = Vec::new();
    let mut add = |path: PathBuf, entries: Vec<ClientEntry>| {
        files.push(ClientFile { path, entries });
    };
    match client {
        ConnectClient::ClaudeCode => {
            let entry = json!({ "type": "stdio", "command": program, "args": args });
            let server = ClientEntry::JsonServer { list: "mcpServers", entry };
            let path = match project {
                true => ".mcp.json".into(),
                false => folders.user("CLAUDE_CONFIG_DIR", "", ".claude.json")?,
            };
            add(path, vec![server]);
            if has_hook {
                let path = match project {
                    true => ".claude/settings.json".into(),
                    false => folders.user("CLAUDE_CONFIG_DIR", ".claude", "settings.json")?,
                };
                let matcher = "Write|Edit|NotebookEdit";
                add(path, vec![hook("PreToolUse", matcher, HOOK_SECONDS, None)]);
            }
        }
        ConnectClient::Codex => {
            let path = match project {
                true => ".codex/config.toml".into(),
                false => folders.user("CODEX_HOME", ".codex", "config.toml")?,
            };
            let mut entries = vec![ClientEntry::TomlServer { command: program.to_owned(), args }];
            if has_hook {
                entries.push(ClientEntry::TomlHook { command: hook_command.clone() });
            }
            add(path, entries);
        }
        ConnectClient::Gemini => {
            let path = match project {
                true => ".gemini/settings.json".into(),
                false => folders.user("", ".gemini", "settings.json")?,
            };
            let entry = json!({ "command": program, "args": args });
            let mut entries = vec![ClientEntry::JsonServer { list: "mcpServers", entry }];
            if has_hook {
                let milliseconds = HOOK_SECONDS * 1000;
                entries.push(hook("BeforeTool", "write_file|replace", milliseconds, Some(PROGRAM)));
            }
            add(path, entries);
        }
        ConnectClient::Cursor => {
            let path = match project {
                true => ".cursor/mcp.json".into(),
                false => folders.user("", ".cursor", "mcp.json")?,
            };
            let entry = json!({ "command": program, "args": args });
            add(path, vec![ClientEntry::JsonServer { list: "mcpServers", entry }]);
        }
        ConnectClient::Opencode => {
            let name = |name: &str| match project {
                true => Ok(PathBuf::from(name)),
                false => folders.user("XDG_CONFIG_HOME", ".config", &format!("opencode/{name}")),
            };
            // opencode reads both names.
            let (json_file, jsonc_file) = (name("opencode.json")?, name("opencode.jsonc")?);
            let is_jsonc = !json_file.exists() && jsonc_file.exists();
            let path = if is_jsonc { jsonc_file } else { json_file };
            let command: Vec<&str> =
                std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
            let entry = json!({ "type": "local", "command": command, "enabled": true });
            add(path, vec![ClientEntry::JsonServer { list: "mcp", entry }]);
            if has_hook {
                let path = match project {
                    true => ".opencode/plugins/moothall.js".into(),
                    false => name("plugins/moothall.js")?,
                };
                let quoted = serde_json::to_string(program).unwrap_or_default();
                add(path, vec![ClientEntry::Plugin(PLUGIN.replace("\"PROGRAM\"", &quoted))]);
            }
        }
        ConnectClient::Zed => {
            let path = match project {
                true => ".zed/settings.json".into(),
                false => folders.user("XDG_CONFIG_HOME", ".config", "zed/settings.json")?,
            };
            let entry = json!({ "command": program, "args": args, "env": {} });
            add(path, vec![ClientEntry::JsonServer { list: "context_servers", entry }]);
        }
    }
    Ok(files)
}

/// Arguments of the server. Clients start it in the directory of the project, except Cursor, which
/// replaces a variable instead.
fn server_args(client: ConnectClient, tools: ToolsArg) -> Vec<String> {
    let workspace = match client {
        ConnectClient::Cursor => "${workspaceFolder}",
        _ => ".",
    };
    let mut args = vec!["mcp", "--workspace", workspace, "--worker", client.name()];
    if tools == ToolsArg::All {
        args.extend(["--tools", "all"]);
    }
    args.into_iter().map(str::to_owned).collect()
}

/// The command line of the hook, for a shell.
fn hook_command(client: ConnectClient, program: &str) -> Result<String, CliError> {
    let program = shlex::try_quote(program)
        .map_err(|_| CliError::usage("the path of the moothall executable is not valid"))?;
    Ok(format!("{program} hook {}", client.name()))
}

/// Whether a command is a hook of this program, whatever its path.
pub(crate) fn is_own_hook(command: &str) -> bool {
    let Some(words) = shlex::split(command) else { return false };
    match words.as_slice() {
        [program, hook, _client] => {
            Path::new(program).file_name().is_some_and(|name| name == PROGRAM) && hook == "hook"
        }
        _ => false,
    }
}

impl ClientFile {
    /// The content with the entries added, which may be there already.
    pub(crate) fn with_entries(&self, before: Option<&str>) -> Result<String, CliError> {
        let mut text = before.unwrap_or_default().to_owned();
        for entry in &self.entries {
            text = match entry {
                ClientEntry::JsonServer { list, entry } => {
                    json_entry::set(&text, list, PROGRAM, entry)
                }
                ClientEntry::JsonHook(hook) => hook.add(&text),
                ClientEntry::TomlServer { command, args } => {
                    toml_entry::set_server(&text, command, args)
                }
                ClientEntry::TomlHook { command } => {
                    toml_entry::add_hook(&text, command, HOOK_SECONDS)
                }
                ClientEntry::Plugin(own) => match before {
                    Some(other) if !other.starts_with(PLUGIN_MARK) => {
                        Err("the file belongs to another plugin".to_owned())
                    }
                    _ => Ok(own.clone()),
                },
            }
            .map_err(|why| self.refusal(&why))?;
        }
        Ok(text)
    }

    /// The content without the entries; `None` if the file is missing or must be deleted.
    pub(crate) fn without_entries(&self, before: Option<&str>) -> Result<Option<String>, CliError> {
        let Some(before) = before else { return Ok(None) };
        let mut text = before.to_owned();
        for entry in &self.entries {
            text = match entry {
                ClientEntry::JsonServer { list, .. } => json_entry::remove(&text, list, PROGRAM),
                ClientEntry::JsonHook(hook) => hook.remove(&text),
                ClientEntry::TomlServer { .. } => toml_entry::remove_server(&text),
                ClientEntry::TomlHook { .. } => toml_entry::remove_hook(&text),
                ClientEntry::Plugin(_) if text.starts_with(PLUGIN_MARK) => return Ok(None),
                ClientEntry::Plugin(_) => Ok(text),
            }
            .map_err(|why| self.refusal(&why))?;
        }
        Ok(Some(text))
    }

    fn refusal(&self, why: &str) -> CliError {
        let path = super::path_text(&self.path);
        CliError::usage(format!("cannot edit {path}: {why}")).with_hint(
            "correct the file and run the command again, or add the entry yourself: `--print` shows it",
        )
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
