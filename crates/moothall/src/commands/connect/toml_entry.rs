//! Adds and removes the entries of Codex's `config.toml`. Pure: text in, text out.
//!
//! The trust that Codex stores for a hook is the user's decision and is never written here.

use toml_edit::{
    Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value, value,
};

use super::clients::{PROGRAM, is_own_hook};

const SERVERS: &str = "mcp_servers";
const EVENT: &str = "PreToolUse";
/// Codex passes a patch to `apply_patch`, or as part of a shell command.
const MATCHER: &str = "Bash|apply_patch";

/// Sets `mcp_servers.moothall`. Other fields of an existing entry are kept.
pub(crate) fn set_server(text: &str, command: &str, args: &[String]) -> Result<String, String> {
    let mut file = parse(text)?;
    let servers = section(file.as_table_mut(), SERVERS)?;
    let is_inline = servers.iter().next().is_some_and(|(_, item)| item.is_inline_table());
    let fresh = match is_inline {
        true => Item::Value(Value::InlineTable(InlineTable::new())),
        false => Item::Table(Table::new()),
    };
    let entry = servers.entry(PROGRAM).or_insert(fresh);
    let entry =
        entry.as_table_like_mut().ok_or_else(|| format!("`{SERVERS}.{PROGRAM}` is not a table"))?;
    let args: Array = args.iter().map(String::as_str).collect();
    set(entry, "command", command.into());
    set(entry, "args", Value::Array(args));
    Ok(file.to_string())
}

/// Removes `mcp_servers.moothall`, and `mcp_servers` if nothing else is in it.
pub(crate) fn remove_server(text: &str) -> Result<String, String> {
    let mut file = parse(text)?;
    let root = file.as_table_mut();
    let Some(servers) = root.get_mut(SERVERS).and_then(Item::as_table_like_mut) else {
        return Ok(text.to_owned());
    };
    if servers.remove(PROGRAM).is_none() {
        return Ok(text.to_owned());
    }
    if servers.is_empty() {
        root.remove(SERVERS);
    }
    Ok(file.to_string())
}

/// Adds the hook, or replaces an earlier version of it.
pub(crate) fn add_hook(text: &str, command: &str, timeout: u64) -> Result<String, String> {
    let mut file = parse(text)?;
    let hooks = section(file.as_table_mut(), "hooks")?;
    let groups = hooks.entry(EVENT).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let groups = groups
        .as_array_of_tables_mut()
        .ok_or_else(|| format!("`hooks.{EVENT}` is not written as `[[hooks.{EVENT}]]`"))?;
    let group = group_of(command, timeout);
    let is_same = |table: &Table| {
        table.get("matcher").and_then(Item::as_str) == Some(MATCHER)
            && own_commands(table) == [command]
    };
    if groups.iter().filter(|group| has_own(group)).count() == 1 && groups.iter().any(is_same) {
        return Ok(text.to_owned());
    }
    remove_own(groups);
    groups.push(group);
    Ok(file.to_string())
}

/// Removes the hook, and the lists that contain nothing else.
pub(crate) fn remove_hook(text: &str) -> Result<String, String> {
    let mut file = parse(text)?;
    let root = file.as_table_mut();
    let Some(hooks) = root.get_mut("hooks").and_then(Item::as_table_like_mut) else {
        return Ok(text.to_owned());
    };
    let Some(groups) = hooks.get_mut(EVENT).and_then(Item::as_array_of_tables_mut) else {
        return Ok(text.to_owned());
    };
    if !groups.iter().any(has_own) {
        return Ok(text.to_owned());
    }
    remove_own(groups);
    if groups.is_empty() {
        hooks.remove(EVENT);
        if hooks.is_empty() {
            root.remove("hooks");
        }
    }
    Ok(file.to_string())
}

fn group_of(command: &str, timeout: u64) -> Table {
    let mut hook = Table::new();
    hook.insert("type", value("command"));
    hook.insert("command", value(command));
    hook.insert("timeout", value(i64::try_from(timeout).unwrap_or(i64::MAX)));
    let mut hooks = ArrayOfTables::new();
    hooks.push(hook);
    let mut group = Table::new();
    group.insert("matcher", value(MATCHER));
    group.insert("hooks", Item::ArrayOfTables(hooks));
    group
}

/// The commands of this program in a group.
fn own_commands(group: &Table) -> Vec<&str> {
    let hooks = group.get("hooks").and_then(Item::as_array_of_tables);
    let commands = hooks.into_iter().flat_map(ArrayOfTables::iter);
    let commands = commands.filter_map(|hook| hook.get("command").and_then(Item::as_str));
    commands.filter(|command| is_own_hook(command)).collect()
}

fn has_own(group: &Table) -> bool {
    !own_commands(group).is_empty()
}

/// Removes the hooks of this program, and groups that have no other.
fn remove_own(groups: &mut ArrayOfTables) {
    for group in groups.iter_mut().filter(|group| has_own(group)) {
        if let Some(hooks) = group.get_mut("hooks").and_then(Item::as_array_of_tables_mut) {
            let is_foreign =
                |hook: &Table| !hook.get("command").and_then(Item::as_str).is_some_and(is_own_hook);
            hooks.retain(is_foreign);
        }
    }
    groups.retain(|group| {
        group.get("hooks").and_then(Item::as_array_of_tables).is_none_or(|hooks| !hooks.is_empty())
    });
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| format!("it is not valid TOML: {}", error.message()))
}

/// The table with this name, which is created without a header if it is missing.
fn section<'a>(root: &'a mut Table, name: &str) -> Result<&'a mut dyn TableLike, String> {
    let mut fresh = Table::new();
    fresh.set_implicit(true);
    let item = root.entry(name).or_insert(Item::Table(fresh));
    item.as_table_like_mut().ok_or_else(|| format!("`{name}` is not a table"))
}

/// Sets a field unless it already has this value, to keep its formatting.
fn set(table: &mut dyn TableLike, key: &str, fresh: Value) {
    let plain = |value: &Value| value.clone().decorated("", "").to_string();
    let is_same =
        table.get(key).and_then(Item::as_value).is_some_and(|there| plain(there) == plain(&fresh));
    if !is_same {
        table.insert(key, Item::Value(fresh));
    }
}

#[cfg(test)]
#[path = "toml_entry_tests.rs"]
mod tests;
