//! Edits the configuration file for `init`. Pure: text in, text out.

use moothall_core::model::ModelName;
use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, value};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InitAnswers {
    pub(crate) model: Option<ModelName>,
    /// The user's own server, for the provider of the model.
    pub(crate) server: Option<OwnServer>,
    pub(crate) contact: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnServer {
    pub(crate) base_url: String,
    /// The context window in tokens, if the server states it.
    pub(crate) context: Option<u64>,
    /// Whether it runs on this machine and therefore costs nothing.
    pub(crate) is_free: bool,
}

/// Sets the answers in the file and keeps everything else, including comments. Missing answers
/// change nothing.
pub(crate) fn with(text: &str, answers: &InitAnswers) -> Result<String, TomlError> {
    let mut file: DocumentMut = text.parse()?;
    let root = file.as_table_mut();
    if let Some(model) = &answers.model {
        set(root, "model", &model.to_string());
        if let Some(server) = &answers.server
            && let Some(providers) = section(root, "provider", TableHeader::OfItsParts)
            && let Some(provider) = section(providers, model.provider(), TableHeader::Own)
        {
            set(provider, "base_url", &server.base_url);
            if let Some(context) = server.context.and_then(|tokens| i64::try_from(tokens).ok()) {
                provider.insert("context", value(context));
            }
            if server.is_free && provider.get("price_input").is_none() {
                set(provider, "price_input", "0");
                set(provider, "price_output", "0");
            }
        }
    }
    if let Some(contact) = &answers.contact
        && let Some(evidence) = section(root, "evidence", TableHeader::Own)
    {
        set(evidence, "contact", contact);
    }
    Ok(file.to_string())
}

/// Whether a new table gets its own `[name]` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableHeader {
    Own,
    OfItsParts,
}

/// The table with this name; `None` if the name belongs to another kind of value, which a valid
/// configuration never has.
fn section<'a>(
    table: &'a mut dyn TableLike,
    name: &str,
    heading: TableHeader,
) -> Option<&'a mut dyn TableLike> {
    let mut fresh = Table::new();
    fresh.set_implicit(heading == TableHeader::OfItsParts);
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

#[cfg(test)]
#[path = "config_edit_tests.rs"]
mod tests;
