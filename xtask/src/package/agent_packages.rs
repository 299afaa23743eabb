//! Packages for agents: an MCP bundle with the binary, and a plugin directory for Claude Code.
//!
//! Each manifest is read back from its archive and checked against the public format: required
//! fields, types, and that the files it names exist.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use super::archives::{LICENSE, below, json_file, write_tar, zip_archive};
use super::payload::{PackageFile, PackagePayload};
use super::{PackageKind, PackageOptions, SUMMARY, VERSION, WrittenPackage};

const AUTHOR: &str = "Moothall contributors";
const BUNDLED_PROGRAM: &str = "server/moothall";
const PLUGIN_FOLDER: &str = "moothall-claude-plugin";
/// Prefix of paths inside a bundle.
const BUNDLE_ROOT: &str = "${__dirname}/";

/// The bundle for Claude Desktop. The user chooses the workspace when installing it.
pub(crate) fn write_mcpb(
    options: &PackageOptions<'_>,
    payload: &PackagePayload,
) -> Result<WrittenPackage> {
    let platform = &payload.platform;
    let args = ["mcp", "--workspace", "${user_config.workspace}", "--worker", "claude-desktop"];
    let manifest = json!({
        "manifest_version": "0.3",
        "name": "moothall",
        "display_name": "Moothall",
        "version": VERSION,
        "description": SUMMARY,
        "author": { "name": AUTHOR },
        "homepage": options.repository,
        "license": LICENSE,
        "keywords": ["review", "drafts", "sandbox"],
        "server": {
            "type": "binary",
            "entry_point": BUNDLED_PROGRAM,
            "mcp_config": {
                "command": format!("{BUNDLE_ROOT}{BUNDLED_PROGRAM}"),
                "args": args,
                "env": {},
            },
        },
        "tools_generated": true,
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": "Directory whose files the agent can draft",
                "required": true,
            },
        },
        "compatibility": { "platforms": [platform.npm_os] },
    });
    let mut files = vec![
        json_file("manifest.json", &manifest)?,
        PackageFile::program(BUNDLED_PROGRAM, payload.binary.clone()),
    ];
    files.extend(payload.licenses());
    let name = format!("moothall-{VERSION}-{}-{}.mcpb", platform.npm_os, platform.npm_cpu);
    fs_err::write(options.out.join(&name), zip_archive(&files)?)?;
    Ok(WrittenPackage { name, kind: PackageKind::Mcpb, has_binary: true })
}

/// The plugin directory, which is also a marketplace with one plugin.
pub(crate) fn write_claude_plugin(options: &PackageOptions<'_>) -> Result<WrittenPackage> {
    let plugin = json!({
        "name": "moothall",
        "version": VERSION,
        "description": SUMMARY,
        "author": { "name": AUTHOR },
        "homepage": options.repository,
        "license": LICENSE,
        "keywords": ["review", "drafts", "sandbox"],
    });
    let marketplace = json!({
        "name": "moothall",
        "owner": { "name": AUTHOR },
        "plugins": [{ "name": "moothall", "source": "./", "description": SUMMARY }],
    });
    let servers = json!({ "mcpServers": { "moothall": {
        "command": "moothall",
        "args": ["mcp", "--workspace", ".", "--worker", "claude-code"],
    } } });
    let hook = json!({ "type": "command", "command": "moothall hook claude-code", "timeout": 30 });
    let hooks = json!({ "hooks": { "PreToolUse": [
        { "matcher": "Write|Edit|NotebookEdit", "hooks": [hook] },
    ] } });
    let files = vec![
        json_file(".claude-plugin/plugin.json", &plugin)?,
        json_file(".claude-plugin/marketplace.json", &marketplace)?,
        json_file(".mcp.json", &servers)?,
        json_file("hooks/hooks.json", &hooks)?,
        PackageFile::new(
            "README.md",
            "Drafts with review for Claude Code. Needs `moothall` on the PATH.\n\n\
             Install it from this directory:\n\n\
             ```sh\nclaude plugin marketplace add .\nclaude plugin install moothall@moothall\n```\n",
        ),
    ];
    let name = format!("{PLUGIN_FOLDER}-{VERSION}.tar.gz");
    write_tar(options, &name, below(PLUGIN_FOLDER, files))?;
    Ok(WrittenPackage { name, kind: PackageKind::ClaudePlugin, has_binary: false })
}

/// Checks the manifests of a written package; other kinds have none.
pub(crate) fn check(kind: PackageKind, path: &Path) -> Result<()> {
    match kind {
        PackageKind::Mcpb => check_mcpb(&zip_files(path)?),
        PackageKind::ClaudePlugin => check_claude_plugin(&tar_files(path)?),
        _ => Ok(()),
    }
}

/// Contents by name. The contents of a large binary are not needed.
type ArchiveFiles = BTreeMap<String, Vec<u8>>;

fn zip_files(path: &Path) -> Result<ArchiveFiles> {
    let mut archive = zip::ZipArchive::new(fs_err::File::open(path)?)?;
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        let mut bytes = Vec::new();
        if name.ends_with(".json") {
            entry.read_to_end(&mut bytes)?;
        }
        files.insert(name, bytes);
    }
    Ok(files)
}

fn tar_files(path: &Path) -> Result<ArchiveFiles> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(fs_err::File::open(path)?)).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.strip_prefix(PLUGIN_FOLDER)?.display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(name, bytes);
    }
    Ok(files)
}

/// The type of a field in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldType {
    Text,
    Texts,
    Flag,
    Object,
    List,
}

/// A field of the public format: name, type, and whether it is required.
type FieldRule = (&'static str, FieldType, bool);

const BUNDLE_FIELDS: [FieldRule; 23] = [
    ("$schema", FieldType::Text, false),
    ("manifest_version", FieldType::Text, true),
    ("name", FieldType::Text, true),
    ("display_name", FieldType::Text, false),
    ("version", FieldType::Text, true),
    ("description", FieldType::Text, true),
    ("long_description", FieldType::Text, false),
    ("author", FieldType::Object, true),
    ("repository", FieldType::Object, false),
    ("homepage", FieldType::Text, false),
    ("documentation", FieldType::Text, false),
    ("support", FieldType::Text, false),
    ("icon", FieldType::Text, false),
    ("screenshots", FieldType::Texts, false),
    ("server", FieldType::Object, true),
    ("tools", FieldType::List, false),
    ("tools_generated", FieldType::Flag, false),
    ("prompts", FieldType::List, false),
    ("keywords", FieldType::Texts, false),
    ("license", FieldType::Text, false),
    ("privacy_policies", FieldType::Texts, false),
    ("compatibility", FieldType::Object, false),
    ("user_config", FieldType::Object, false),
];
const SERVER_FIELDS: [FieldRule; 3] = [
    ("type", FieldType::Text, true),
    ("entry_point", FieldType::Text, true),
    ("mcp_config", FieldType::Object, true),
];
const COMMAND_FIELDS: [FieldRule; 4] = [
    ("type", FieldType::Text, false),
    ("command", FieldType::Text, true),
    ("args", FieldType::Texts, false),
    ("env", FieldType::Object, false),
];
const AUTHOR_FIELDS: [FieldRule; 3] = [
    ("name", FieldType::Text, true),
    ("email", FieldType::Text, false),
    ("url", FieldType::Text, false),
];
const PLUGIN_FIELDS: [FieldRule; 8] = [
    ("name", FieldType::Text, true),
    ("version", FieldType::Text, false),
    ("description", FieldType::Text, false),
    ("author", FieldType::Object, false),
    ("homepage", FieldType::Text, false),
    ("repository", FieldType::Text, false),
    ("license", FieldType::Text, false),
    ("keywords", FieldType::Texts, false),
];
const MARKETPLACE_FIELDS: [FieldRule; 4] = [
    ("name", FieldType::Text, true),
    ("owner", FieldType::Object, true),
    ("plugins", FieldType::List, true),
    ("metadata", FieldType::Object, false),
];

fn check_mcpb(files: &ArchiveFiles) -> Result<()> {
    let manifest = read_json(files, "manifest.json")?;
    check_fields("manifest.json", &manifest, &BUNDLE_FIELDS)?;
    check_fields("author", &manifest["author"], &AUTHOR_FIELDS)?;
    let server = &manifest["server"];
    check_fields("server", server, &SERVER_FIELDS)?;
    let command = &server["mcp_config"];
    check_fields("mcp_config", command, &COMMAND_FIELDS)?;
    check_name(&manifest["name"])?;
    if manifest["manifest_version"] != "0.3" || server["type"] != "binary" {
        bail!("unknown `manifest_version` or `server.type`");
    }
    let entry_point = text(&server["entry_point"]);
    let started = text(&command["command"]).strip_prefix(BUNDLE_ROOT);
    if !files.contains_key(entry_point) || started != Some(entry_point) {
        bail!("`entry_point` and `command` do not name a file of the bundle: {entry_point}");
    }
    let settings = manifest["user_config"].as_object();
    for (name, setting) in settings.into_iter().flatten() {
        let kinds = ["string", "number", "boolean", "directory", "file"];
        let has_texts = ["title", "description"].iter().all(|key| setting[*key].is_string());
        if !kinds.contains(&text(&setting["type"])) || !has_texts {
            bail!("`user_config.{name}` needs a known type, a title and a description");
        }
    }
    for used in command["args"].as_array().into_iter().flatten().map(text) {
        let name = used.strip_prefix("${user_config.").and_then(|rest| rest.strip_suffix('}'));
        if name.is_some_and(|name| settings.is_none_or(|settings| !settings.contains_key(name))) {
            bail!("`{used}` is not in `user_config`");
        }
    }
    let platforms = manifest["compatibility"]["platforms"].as_array();
    let known = ["darwin", "win32", "linux"];
    if !platforms.into_iter().flatten().all(|platform| known.contains(&text(platform))) {
        bail!("unknown platform");
    }
    Ok(())
}

fn check_claude_plugin(files: &ArchiveFiles) -> Result<()> {
    let plugin = read_json(files, ".claude-plugin/plugin.json")?;
    check_fields("plugin.json", &plugin, &PLUGIN_FIELDS)?;
    check_fields("author", &plugin["author"], &AUTHOR_FIELDS)?;
    check_name(&plugin["name"])?;
    let marketplace = read_json(files, ".claude-plugin/marketplace.json")?;
    check_fields("marketplace.json", &marketplace, &MARKETPLACE_FIELDS)?;
    let mut listed = marketplace["plugins"].as_array().into_iter().flatten();
    if !listed.any(|one| one["name"] == plugin["name"] && one["source"] == "./") {
        bail!("marketplace.json does not list the plugin");
    }
    let servers = read_json(files, ".mcp.json")?;
    let servers = servers["mcpServers"].as_object().context("no `mcpServers`")?;
    for server in servers.values() {
        check_fields(".mcp.json", server, &COMMAND_FIELDS)?;
    }
    let hooks = read_json(files, "hooks/hooks.json")?;
    let groups = hooks["hooks"]["PreToolUse"].as_array().context("no `PreToolUse` hooks")?;
    for hook in groups.iter().flat_map(|group| group["hooks"].as_array().into_iter().flatten()) {
        if hook["type"] != "command" || !hook["command"].is_string() || !hook["timeout"].is_u64() {
            bail!("a hook needs a type, a command and a timeout: {hook}");
        }
    }
    Ok(())
}

fn read_json(files: &ArchiveFiles, name: &str) -> Result<Value> {
    let bytes = files.get(name).with_context(|| format!("no file `{name}`"))?;
    serde_json::from_slice(bytes).with_context(|| format!("`{name}` is not JSON"))
}

fn check_fields(what: &str, value: &Value, rules: &[FieldRule]) -> Result<()> {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    for (name, kind, is_required) in rules {
        match fields.get(*name) {
            None if *is_required => bail!("{what}: missing `{name}`"),
            Some(value) if !has_type(value, *kind) => bail!("{what}: wrong type of `{name}`"),
            _ => {}
        }
    }
    let unknown = fields.keys().find(|key| rules.iter().all(|(name, ..)| name != key));
    match unknown {
        Some(key) => bail!("{what}: unknown field `{key}`"),
        None => Ok(()),
    }
}

fn has_type(value: &Value, kind: FieldType) -> bool {
    match kind {
        FieldType::Text => value.as_str().is_some_and(|text| !text.is_empty()),
        FieldType::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        FieldType::Flag => value.is_boolean(),
        FieldType::Object => value.is_object(),
        FieldType::List => value.is_array(),
    }
}

/// Lower-case letters, digits and dashes.
fn check_name(name: &Value) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match text(name).bytes().all(plain) {
        true => Ok(()),
        false => bail!("the name may contain only lower-case letters, digits and dashes"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
#[path = "agent_packages_tests.rs"]
mod tests;
