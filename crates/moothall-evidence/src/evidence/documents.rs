//! U0: documents that the user brings along, divided into passages that can be cited.
//!
//! A passage is a paragraph, or a row of a table with the names of its columns, so that a number in
//! it says what it is. Its citation is `[U0:<document>:<passage>]`. What cannot be read, and what is
//! more than the bounds allow, is named as missing, never left out in silence.
//!
//! The text is data. It is quoted and never obeyed, and never shown as HTML.

mod csv;
mod prose;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::text::cleaned;
use crate::Sha256Hex;

/// The most passages that are kept of one document.
pub const MAX_PASSAGES_OF_ONE: usize = 400;
/// The most passages that are kept of all documents.
pub const MAX_PASSAGES_OF_ALL: usize = 1_000;
/// The longest passage. A longer paragraph is divided at the end of a sentence.
pub const MAX_PASSAGE_CHARS: usize = 1_200;
/// The longest id of a document.
const MAX_ID_CHARS: usize = 24;
/// The longest name of a document that is kept.
const MAX_NAME_CHARS: usize = 120;

/// How a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentKind {
    /// Paragraphs below headings, and tables.
    Markdown,
    /// Paragraphs.
    Text,
    /// Rows with the names of their columns.
    Csv,
    /// Paragraphs of text that a program in a sandbox took out of it.
    Pdf,
}

impl DocumentKind {
    /// The kind that a file's name promises; none for files that are not read.
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, ending) = name.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Self::Markdown,
            "txt" | "text" => Self::Text,
            "csv" | "tsv" => Self::Csv,
            "pdf" => Self::Pdf,
            _ => return None,
        })
    }
}

/// A document of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserDocument {
    /// What citations call it: letters, digits and dashes, made from its name.
    pub id: String,
    /// Its name inside the user's folder, never where that folder is.
    pub name: String,
    /// How it was read.
    pub kind: DocumentKind,
    /// The hash of its bytes.
    pub sha256: Sha256Hex,
    /// How many there are.
    pub bytes: u64,
    /// What it says, in its own order.
    pub passages: Vec<UserPassage>,
}

/// A passage of a document; its citation is `[U0:<document>:<passage>]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserPassage {
    /// Its number in the document, from 1.
    pub number: u32,
    /// Its words, with every run of white space as one space.
    pub text: String,
}

impl UserDocument {
    /// How a passage of it is cited, without the brackets.
    pub fn citation(&self, passage: &UserPassage) -> String {
        format!("U0:{}:{}", self.id, passage.number)
    }
}

/// A document that was found, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDocument {
    /// Its name inside the folder, with `/` between folders.
    pub name: String,
    /// How it is read.
    pub kind: DocumentKind,
    /// The hash of its bytes.
    pub sha256: Sha256Hex,
    /// How many there are.
    pub bytes: u64,
    /// What it says.
    pub text: String,
}

/// Divides documents into passages. The result depends on the documents and not on the order in
/// which they were found; beside it stands what is missing, one line each.
pub fn documents(mut found: Vec<FoundDocument>) -> (Vec<UserDocument>, Vec<String>) {
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let mut ids = BTreeSet::new();
    let (mut documents, mut missing) = (Vec::new(), Vec::new());
    let mut room = MAX_PASSAGES_OF_ALL;
    for one in found {
        let name = cleaned(&one.name, MAX_NAME_CHARS);
        let texts = match texts(one.kind, &one.text) {
            Ok(texts) => texts,
            Err(why) => {
                missing.push(format!("{name}: {why}"));
                continue;
            }
        };
        let most = room.min(MAX_PASSAGES_OF_ONE);
        if texts.is_empty() {
            missing.push(format!("{name}: it has no text"));
            continue;
        }
        if texts.len() > most {
            let all = texts.len();
            missing.push(match most {
                0 => {
                    format!("{name}: there is no room for more than {MAX_PASSAGES_OF_ALL} passages")
                }
                _ => format!("{name}: only the first {most} of its {all} passages are used"),
            });
        }
        let passages: Vec<UserPassage> = (1..)
            .zip(texts.into_iter().take(most))
            .map(|(number, text)| UserPassage { number, text })
            .collect();
        if passages.is_empty() {
            continue;
        }
        room -= passages.len();
        let (kind, sha256, bytes) = (one.kind, one.sha256, one.bytes);
        let id = new_id(&name, &mut ids);
        documents.push(UserDocument { id, name, kind, sha256, bytes, passages });
    }
    (documents, missing)
}

/// The text of a file; nothing where it is not UTF-8. A mark of the byte order is no text.
pub fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn texts(kind: DocumentKind, text: &str) -> Result<Vec<String>, &'static str> {
    match kind {
        DocumentKind::Markdown => Ok(prose::markdown(text)),
        DocumentKind::Text | DocumentKind::Pdf => Ok(prose::paragraphs(text)),
        DocumentKind::Csv => csv::rows(text),
    }
}

/// A row as a passage: `Year: 2025; Revenue: 1,250`. Empty cells are left out.
fn row_text(columns: &[String], cells: &[String]) -> String {
    let mut parts = Vec::new();
    for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
        match columns.get(at).filter(|name| !name.is_empty()) {
            Some(name) => parts.push(format!("{name}: {cell}")),
            None => parts.push(format!("column {}: {cell}", at + 1)),
        }
    }
    parts.join("; ")
}

/// `Market study (final).md` is `market-study-final`, the next of that name `market-study-final-2`.
fn new_id(name: &str, taken: &mut BTreeSet<String>) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let mut id = String::new();
    for letter in stem.chars() {
        if letter.is_ascii_alphanumeric() {
            id.push(letter.to_ascii_lowercase());
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(MAX_ID_CHARS);
    let base = match id.trim_end_matches('-') {
        "" => "document",
        id => id,
    };
    let mut id = base.to_owned();
    for next in 2_u32.. {
        if taken.insert(id.clone()) {
            break;
        }
        id = format!("{base}-{next}");
    }
    id
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
