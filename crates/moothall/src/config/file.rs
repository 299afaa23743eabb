//! Parses the configuration file into settings with line numbers.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::origin::ConfigSetting;
use super::problem::ConfigProblem;
use super::schema::{ConfigNode, dotted};
use super::{ConfigOrigin, hints};

/// The line, starting at 1, that contains the byte at `offset`.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The settings of a configuration file. Invalid TOML is reported as one problem.
pub(crate) fn settings(
    root: &ConfigNode,
    path: &Path,
    text: &str,
) -> (Vec<ConfigSetting>, Vec<ConfigProblem>) {
    // Parsed twice, because the form with spans keeps numbers as text.
    let parsed =
        DeTable::parse(text).and_then(|spanned| Ok((spanned, toml::from_str::<Table>(text)?)));
    let (spanned, table) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let line = error
                .span()
                .map_or_else(String::new, |span| format!(":{}", line_of(text, span.start)));
            // Only the parser's message: its full output quotes the line, which may contain a
            // secret.
            return (
                Vec::new(),
                vec![ConfigProblem::new(format!("{}{line}: {}", path.display(), error.message()))],
            );
        }
    };
    let mut lines = BTreeMap::new();
    collect_lines(text, spanned.get_ref(), &mut Vec::new(), &mut lines);
    let place = |key: &[String]| ConfigOrigin::File {
        path: path.to_owned(),
        line: lines.get(key).copied().unwrap_or(1),
    };
    collect_settings(root, table, &place)
}

/// Walks a table along the schema.
pub(crate) fn collect_settings(
    root: &ConfigNode,
    table: Table,
    place: &dyn Fn(&[String]) -> ConfigOrigin,
) -> (Vec<ConfigSetting>, Vec<ConfigProblem>) {
    let mut collected = SettingsCollector { place, settings: Vec::new(), problems: Vec::new() };
    collected.table(root, root, table, &mut Vec::new());
    (collected.settings, collected.problems)
}

struct SettingsCollector<'a> {
    place: &'a dyn Fn(&[String]) -> ConfigOrigin,
    settings: Vec<ConfigSetting>,
    problems: Vec<ConfigProblem>,
}

impl SettingsCollector<'_> {
    fn table(
        &mut self,
        root: &ConfigNode,
        node: &ConfigNode,
        table: Table,
        path: &mut Vec<String>,
    ) {
        for (name, value) in table {
            path.push(name);
            let child = path.last().and_then(|name| node.child(name));
            match (child, value) {
                (None, value) => self.unknown(root, value, path),
                // Empty tables are kept: an empty table may declare a provider.
                (
                    Some(child @ (ConfigNode::Section { .. } | ConfigNode::Map { .. })),
                    toml::Value::Table(table),
                ) if !table.is_empty() => {
                    self.table(root, child, table, path);
                }
                (Some(ConfigNode::Section { .. } | ConfigNode::Map { .. }), value)
                    if !value.is_table() =>
                {
                    let place = (self.place)(path);
                    let message = format!(
                        "{place}: `{}` must be a table, not {}",
                        dotted(path),
                        hints::shown(&value)
                    );
                    self.problems.push(ConfigProblem::new(message));
                }
                (Some(_), value) => {
                    self.settings.push(ConfigSetting {
                        path: path.clone(),
                        value,
                        origin: (self.place)(path),
                    });
                }
            }
            path.pop();
        }
    }

    /// Reports every nested value, because `budgt.usd` is more helpful than `budgt`.
    fn unknown(&mut self, root: &ConfigNode, value: toml::Value, path: &mut Vec<String>) {
        match value {
            toml::Value::Table(table) if !table.is_empty() => {
                for (name, value) in table {
                    path.push(name);
                    self.unknown(root, value, path);
                    path.pop();
                }
            }
            _ => self.problems.push(hints::unknown_key(root, &(self.place)(path), path)),
        }
    }
}

fn collect_lines(
    text: &str,
    table: &DeTable<'_>,
    path: &mut Vec<String>,
    lines: &mut BTreeMap<Vec<String>, usize>,
) {
    for (name, value) in table {
        path.push(name.get_ref().to_string());
        lines.insert(path.clone(), line_of(text, name.span().start));
        if let DeValue::Table(below) = value.get_ref() {
            collect_lines(text, below, path, lines);
        }
        path.pop();
    }
}
