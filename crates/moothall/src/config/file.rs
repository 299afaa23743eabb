//! The configuration file: text to settings, each with its line.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Table;
use toml::de::{DeTable, DeValue};

use super::origin::Setting;
use super::problem::Problem;
use super::schema::{Node, dotted};
use super::{Origin, hints};

/// The line, from 1, that holds the byte at `offset`.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The settings of a configuration file. A text that is not TOML is one problem.
pub(crate) fn settings(root: &Node, path: &Path, text: &str) -> (Vec<Setting>, Vec<Problem>) {
    // Spans and values come from two readings of one parser: the spanned form keeps numbers as
    // text.
    let parsed =
        DeTable::parse(text).and_then(|spanned| Ok((spanned, toml::from_str::<Table>(text)?)));
    let (spanned, table) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let line = error
                .span()
                .map_or_else(String::new, |span| format!(":{}", line_of(text, span.start)));
            // Only the parser's own words: its full text would quote the line, which may hold a
            // secret.
            return (
                Vec::new(),
                vec![Problem::new(format!("{}{line}: {}", path.display(), error.message()))],
            );
        }
    };
    let mut lines = BTreeMap::new();
    note_lines(text, spanned.get_ref(), &mut Vec::new(), &mut lines);
    let place = |key: &[String]| Origin::File {
        path: path.to_owned(),
        line: lines.get(key).copied().unwrap_or(1),
    };
    collect_settings(root, table, &place)
}

/// Walks a table beside the known keys.
pub(crate) fn collect_settings(
    root: &Node,
    table: Table,
    place: &dyn Fn(&[String]) -> Origin,
) -> (Vec<Setting>, Vec<Problem>) {
    let mut collected = Collected { place, settings: Vec::new(), problems: Vec::new() };
    collected.table(root, root, table, &mut Vec::new());
    (collected.settings, collected.problems)
}

struct Collected<'a> {
    place: &'a dyn Fn(&[String]) -> Origin,
    settings: Vec<Setting>,
    problems: Vec<Problem>,
}

impl Collected<'_> {
    fn table(&mut self, root: &Node, node: &Node, table: Table, path: &mut Vec<String>) {
        for (name, value) in table {
            path.push(name);
            let child = path.last().and_then(|name| node.child(name));
            match (child, value) {
                (None, value) => self.unknown(root, value, path),
                // An empty table is kept: it may be a provider that is named and nothing more.
                (
                    Some(child @ (Node::Section { .. } | Node::Map { .. })),
                    toml::Value::Table(table),
                ) if !table.is_empty() => {
                    self.table(root, child, table, path);
                }
                (Some(Node::Section { .. } | Node::Map { .. }), value) if !value.is_table() => {
                    let place = (self.place)(path);
                    let message = format!(
                        "{place}: `{}` is a table, not {}",
                        dotted(path),
                        hints::shown(&value)
                    );
                    self.problems.push(Problem::new(message));
                }
                (Some(_), value) => {
                    self.settings.push(Setting {
                        path: path.clone(),
                        value,
                        origin: (self.place)(path),
                    });
                }
            }
            path.pop();
        }
    }

    /// Names each value below, because `budgt.usd` helps more than `budgt`.
    fn unknown(&mut self, root: &Node, value: toml::Value, path: &mut Vec<String>) {
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

fn note_lines(
    text: &str,
    table: &DeTable<'_>,
    path: &mut Vec<String>,
    lines: &mut BTreeMap<Vec<String>, usize>,
) {
    for (name, value) in table {
        path.push(name.get_ref().to_string());
        lines.insert(path.clone(), line_of(text, name.span().start));
        if let DeValue::Table(below) = value.get_ref() {
            note_lines(text, below, path, lines);
        }
        path.pop();
    }
}
