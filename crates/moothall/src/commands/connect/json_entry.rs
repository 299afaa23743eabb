//! Adds and removes entries of JSON files, with or without comments. Pure: text in, text out.
//!
//! The rest of the file keeps its order, comments and indentation.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value, json};

use super::clients::is_own_hook;

/// A command that runs before a tool, as Claude Code and Gemini CLI configure it.
#[derive(Debug)]
pub(crate) struct JsonHook {
    pub(crate) event: &'static str,
    pub(crate) matcher: &'static str,
    pub(crate) command: String,
    pub(crate) timeout: u64,
    pub(crate) name: Option<&'static str>,
}

/// Sets `list.name`. Fields of an existing entry that are not in `entry` are kept.
pub(crate) fn set(text: &str, list: &str, name: &str, entry: &Value) -> Result<String, String> {
    let (root, object) = parse(text)?;
    let Some(servers) = property(&object, list)? else {
        object.append(list, input_of(&json!({ name: entry })));
        return finish(&root);
    };
    let servers = servers.object_value().ok_or_else(|| format!("`{list}` is not an object"))?;
    match property(&servers, name)? {
        None => drop(servers.append(name, input_of(entry))),
        Some(there) => match (there.object_value(), entry) {
            (Some(existing), Value::Object(fields)) => {
                for (key, value) in fields {
                    match property(&existing, key)? {
                        None => drop(existing.append(key, input_of(value))),
                        Some(field) if value_of(field.value()).as_ref() == Some(value) => {}
                        Some(field) => field.set_value(input_of(value)),
                    }
                }
            }
            _ => there.set_value(input_of(entry)),
        },
    }
    finish(&root)
}

/// Removes `list.name`, and `list` if nothing else is in it.
pub(crate) fn remove(text: &str, list: &str, name: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let (root, object) = parse(text)?;
    let Some(servers) = property(&object, list)? else { return Ok(text.to_owned()) };
    let Some(entries) = servers.object_value() else { return Ok(text.to_owned()) };
    let Some(own) = property(&entries, name)? else { return Ok(text.to_owned()) };
    own.remove();
    if is_empty(&entries) {
        servers.remove();
    }
    finish(&root)
}

impl JsonHook {
    fn group(&self) -> Value {
        let mut hook = json!({ "type": "command" });
        if let Some(name) = self.name {
            hook["name"] = name.into();
        }
        hook["command"] = self.command.as_str().into();
        hook["timeout"] = self.timeout.into();
        json!({ "matcher": self.matcher, "hooks": [hook] })
    }

    /// Adds the hook, or replaces an earlier version of it.
    pub(crate) fn add(&self, text: &str) -> Result<String, String> {
        let (root, object) = parse(text)?;
        let Some(hooks) = property(&object, "hooks")? else {
            object.append("hooks", input_of(&json!({ self.event: [self.group()] })));
            return finish(&root);
        };
        let hooks = hooks.object_value().ok_or("`hooks` is not an object")?;
        let Some(groups) = property(&hooks, self.event)? else {
            hooks.append(self.event, input_of(&json!([self.group()])));
            return finish(&root);
        };
        let groups = groups
            .array_value()
            .ok_or_else(|| format!("`hooks.{}` is not an array", self.event))?;
        let own = own_hooks(&groups);
        if let [(group, _)] = own.as_slice()
            && value_of(Some(group.clone())) == Some(self.group())
        {
            return Ok(text.to_owned());
        }
        own.into_iter().for_each(|(group, hook)| remove_hook(group, hook));
        groups.append(input_of(&self.group()));
        groups.ensure_multiline();
        finish(&root)
    }

    /// Removes the hook, and the lists that contain nothing else.
    pub(crate) fn remove(&self, text: &str) -> Result<String, String> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let (root, object) = parse(text)?;
        let Some(hooks_property) = property(&object, "hooks")? else { return Ok(text.to_owned()) };
        let Some(hooks) = hooks_property.object_value() else { return Ok(text.to_owned()) };
        let Some(event) = property(&hooks, self.event)? else { return Ok(text.to_owned()) };
        let Some(groups) = event.array_value() else { return Ok(text.to_owned()) };
        let own = own_hooks(&groups);
        if own.is_empty() {
            return Ok(text.to_owned());
        }
        own.into_iter().for_each(|(group, hook)| remove_hook(group, hook));
        if groups.elements().is_empty() {
            event.remove();
            if is_empty(&hooks) {
                hooks_property.remove();
            }
        }
        finish(&root)
    }
}

/// The hooks of this program, each with its group.
fn own_hooks(groups: &CstArray) -> Vec<(CstNode, CstNode)> {
    let mut own = Vec::new();
    for group in groups.elements() {
        let hooks = group.as_object().and_then(|group| group.array_value("hooks"));
        for hook in hooks.iter().flat_map(CstArray::elements) {
            let value = value_of(Some(hook.clone())).unwrap_or_default();
            if value["command"].as_str().is_some_and(is_own_hook) {
                own.push((group.clone(), hook));
            }
        }
    }
    own
}

/// Removes a hook, and its group if it has no other.
fn remove_hook(group: CstNode, hook: CstNode) {
    hook.remove();
    let hooks = group.as_object().and_then(|group| group.array_value("hooks"));
    if hooks.is_some_and(|hooks| hooks.elements().is_empty()) {
        group.remove();
    }
}

/// Comments and trailing commas are the only extensions that clients accept.
fn parse(text: &str) -> Result<(CstRootNode, CstObject), String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &options)
        .map_err(|error| format!("it is not valid JSON: {error}"))?;
    let object = root.object_value().ok_or_else(|| "it is not a JSON object".to_owned())?;
    Ok((root, object))
}

/// The result, which must still be valid.
fn finish(root: &CstRootNode) -> Result<String, String> {
    let text = root.to_string();
    parse(&text)?;
    Ok(text)
}

/// The property with this name. Clients disagree on which of two equal names counts.
fn property(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, String> {
    let is_named = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(name);
    let mut found = object.properties().into_iter().filter(is_named);
    match (found.next(), found.next()) {
        (first, None) => Ok(first),
        _ => Err(format!("it has two values for `{name}`")),
    }
}

/// Whether nothing is in an object, not even a comment.
fn is_empty(object: &CstObject) -> bool {
    object.properties().is_empty() && !object.children().iter().any(CstNode::is_comment)
}

fn value_of(node: Option<CstNode>) -> Option<Value> {
    node.and_then(|node| node.to_serde_value())
}

fn input_of(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(input_of).collect()),
        Value::Object(fields) => CstInputValue::Object(
            fields.iter().map(|(key, value)| (key.clone(), input_of(value))).collect(),
        ),
    }
}

#[cfg(test)]
#[path = "json_entry_tests.rs"]
mod tests;
