//! What `init` makes of a configuration file. Pure: text in, text out.

use moothall_core::model::ModelName;
use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, value};

/// What the person wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) model: Option<ModelName>,
    /// The address of a server of the person's own, for the provider of the model.
    pub(super) base_url: Option<String>,
    pub(super) contact: Option<String>,
}

/// The file with the answers in it. What else is there stays as it was, comments included; an answer
/// that was not given changes nothing.
pub(super) fn with(text: &str, answers: &Answers) -> Result<String, TomlError> {
    let mut file: DocumentMut = text.parse()?;
    let root = file.as_table_mut();
    if let Some(model) = &answers.model {
        set(root, "model", &model.to_string());
        if let Some(base_url) = &answers.base_url
            && let Some(providers) = section(root, "provider", Heading::OfItsParts)
            && let Some(provider) = section(providers, model.provider(), Heading::Own)
        {
            set(provider, "base_url", base_url);
        }
    }
    if let Some(contact) = &answers.contact
        && let Some(evidence) = section(root, "evidence", Heading::Own)
    {
        set(evidence, "contact", contact);
    }
    Ok(file.to_string())
}

/// Whether a new table gets a line `[name]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Own,
    OfItsParts,
}

/// The table of this name; nothing where something else has the name, which no configuration has.
fn section<'a>(
    table: &'a mut dyn TableLike,
    name: &str,
    heading: Heading,
) -> Option<&'a mut dyn TableLike> {
    let mut fresh = Table::new();
    fresh.set_implicit(heading == Heading::OfItsParts);
    table.entry(name).or_insert(Item::Table(fresh)).as_table_like_mut()
}

fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    match table.get_mut(key) {
        Some(there) if there.as_str() == Some(text) => {}
        Some(there) => *there = value(text),
        None => {
            table.insert(key, value(text));
        }
    }
}

/// The lines that went (`-`) and came (`+`), in the order of the file.
pub(super) fn difference(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    // The longest common part of what follows each pair of lines.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (one, line) in old.iter().enumerate().rev() {
        for (other, with) in new.iter().enumerate().rev() {
            common[one][other] = match line == with {
                true => common[one + 1][other + 1] + 1,
                false => common[one + 1][other].max(common[one][other + 1]),
            };
        }
    }
    let (mut one, mut other, mut lines) = (0, 0, Vec::new());
    while one < old.len() || other < new.len() {
        if one < old.len() && other < new.len() && old[one] == new[other] {
            (one, other) = (one + 1, other + 1);
        } else if other == new.len()
            || (one < old.len() && common[one + 1][other] >= common[one][other + 1])
        {
            lines.push(format!("- {}", old[one]));
            one += 1;
        } else {
            lines.push(format!("+ {}", new[other]));
            other += 1;
        }
    }
    lines
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
