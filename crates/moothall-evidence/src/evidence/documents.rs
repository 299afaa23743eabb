//! U0: the user's own documents, split into passages that can be cited.
//!
//! A passage is a paragraph, or a table row with its column names, so that each number in it is
//! labeled. Its citation is `[U0:<document>:<passage>]`. Documents that cannot be read or exceed a
//! limit are always reported as missing.
//!
//! The text is untrusted data: it is quoted, never followed as an instruction, and never rendered
//! as HTML.

mod csv;
mod paragraphs;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::sanitize::cleaned;
use crate::Sha256Hex;

/// Limit on passages per document.
pub const MAX_PASSAGES_OF_ONE: usize = 400;
/// Limit on passages of all documents.
pub const MAX_PASSAGES_OF_ALL: usize = 1_000;
/// Limit on the length of a passage. A longer paragraph is split at the end of a sentence.
pub const MAX_PASSAGE_CHARS: usize = 1_200;
const MAX_ID_CHARS: usize = 24;
const MAX_NAME_CHARS: usize = 120;

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentKind {
    /// Paragraphs under headings, and tables.
    Markdown,
    /// Paragraphs.
    Text,
    /// Rows with column names.
    Csv,
    /// Paragraphs of text that was extracted in a sandbox.
    Pdf,
}

impl DocumentKind {
    /// The format implied by a file name; `None` for unsupported files.
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

/// One of the user's documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserDocument {
    /// Id used in citations: letters, digits and dashes, derived from the name.
    pub id: String,
    /// Path inside the user's folder; the path of that folder is never stored.
    pub name: String,
    /// The format of the document.
    pub kind: DocumentKind,
    /// Hash of its bytes.
    pub sha256: Sha256Hex,
    /// Its size.
    pub bytes: u64,
    /// Its passages, in order.
    pub passages: Vec<UserPassage>,
}

/// A passage of a document; its citation is `[U0:<document>:<passage>]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserPassage {
    /// Number in the document, from 1.
    pub number: u32,
    /// Its text, with each run of white space collapsed to one space.
    pub text: String,
}

impl UserDocument {
    /// The citation of a passage, without the brackets.
    pub fn citation(&self, passage: &UserPassage) -> String {
        format!("U0:{}:{}", self.id, passage.number)
    }
}

/// A document found in the user's folder, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDocument {
    /// Path inside the folder, separated by `/`.
    pub name: String,
    /// The format of the document.
    pub kind: DocumentKind,
    /// Hash of its bytes.
    pub sha256: Sha256Hex,
    /// Its size.
    pub bytes: u64,
    /// The text of the document.
    pub text: String,
}

/// Splits documents into passages. The result does not depend on the order in which the documents
/// were found. The second value lists what is missing, one line each.
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
            missing.push(format!("{name}: no text found"));
            continue;
        }
        if texts.len() > most {
            let all = texts.len();
            missing.push(match most {
                0 => {
                    format!("{name}: skipped, limit of {MAX_PASSAGES_OF_ALL} passages reached")
                }
                _ => format!("{name}: only the first {most} of {all} passages are used"),
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

/// The text of a file without a byte order mark; `None` if it is not UTF-8.
pub fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn texts(kind: DocumentKind, text: &str) -> Result<Vec<String>, &'static str> {
    match kind {
        DocumentKind::Markdown => Ok(paragraphs::markdown(text)),
        DocumentKind::Text | DocumentKind::Pdf => Ok(paragraphs::paragraphs(text)),
        DocumentKind::Csv => csv::rows(text),
    }
}

/// Formats a row as a passage: `Year: 2025; Revenue: 1,250`. Empty cells are skipped.
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

/// `Market study (final).md` becomes `market-study-final`, the next one with that name
/// `market-study-final-2`.
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
