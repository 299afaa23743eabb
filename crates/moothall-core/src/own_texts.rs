//! The user's own texts for prompts and memo sections, and their checks.
//!
//! Each replaces one built-in text and must use the same placeholders, written `{{name}}`. The
//! schemas of answers cannot be replaced. Texts may come from another person, so their names,
//! sizes, characters and placeholders are checked before a run starts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::prompt_revision::{PromptRevision, PromptTemplate};
use crate::text::is_hidden;
use crate::{Sha256Hex, consult, debate, report};

/// Maximum size of one text.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Maximum size of all texts of a committee. They are stored with the run and sent into every
/// sandbox.
const MAX_ALL_BYTES: usize = 128 * 1024;

/// The placeholder for the part of a memo section that code writes.
pub(crate) const CONTENT: &str = "content";

/// Placeholders that every memo section may use.
pub(crate) const MEMO_PLACEHOLDERS: [&str; 3] = ["company", "day", "committee"];

/// Kinds of replaceable texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// A prompt of a consultation or debate.
    Prompt,
    /// A section of the memo.
    Memo,
}

impl TextKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Prompt, Self::Memo];

    /// The directory of such texts beside a committee file, and their table in it.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Prompt => "prompts",
            Self::Memo => "memo",
        }
    }

    fn templates(self) -> Vec<PromptTemplate> {
        match self {
            Self::Prompt => [consult::prompt_templates(), debate::prompt_templates()].concat(),
            Self::Memo => report::memo_templates(),
        }
    }
}

/// A built-in text that a user may replace.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInText {
    /// Its kind.
    pub kind: TextKind,
    /// The file name without extension.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
    /// Its purpose.
    pub purpose: &'static str,
}

/// All texts that a user may replace, as used by new runs.
pub fn built_in_texts() -> Vec<BuiltInText> {
    TextKind::ALL.into_iter().flat_map(|kind| texts_of(kind, PromptRevision::CURRENT)).collect()
}

fn texts_of(kind: TextKind, revision: PromptRevision) -> impl Iterator<Item = BuiltInText> {
    kind.templates().into_iter().map(move |template| BuiltInText {
        kind,
        name: template.name,
        text: template.built_in(revision),
        purpose: template.purpose,
    })
}

impl BuiltInText {
    /// The file beside a committee file that replaces this text: `prompts/analyst.md`.
    pub fn file(&self) -> String {
        file(self.kind, self.name)
    }

    /// Placeholders that a replacement must contain, sorted.
    pub fn required(&self) -> BTreeSet<&'static str> {
        // The built-in texts are tested to have valid placeholders.
        placeholders(self.text).unwrap_or_default().into_iter().map(|(_, name)| name).collect()
    }

    /// Further placeholders that it may contain.
    pub fn optional(&self) -> &'static [&'static str] {
        match self.kind {
            TextKind::Prompt => &[],
            TextKind::Memo => &MEMO_PLACEHOLDERS,
        }
    }

    /// Checks a replacement.
    pub fn check(&self, text: &str) -> Result<(), TextFault> {
        let at = |line, problem| TextFault { line, problem };
        if text.len() > MAX_TEXT_BYTES {
            return Err(at(1, TextProblem::TooLong));
        }
        if text.trim().is_empty() {
            return Err(at(1, TextProblem::Empty));
        }
        for (line, words) in (1..).zip(text.split('\n')) {
            if let Some(hidden) = words.chars().find(|c| *c != '\t' && is_hidden(*c)) {
                let code = format!("U+{:04X}", u32::from(hidden));
                return Err(at(line, TextProblem::Hidden(code)));
            }
        }
        let required = self.required();
        let found = placeholders(text)?;
        let is_known = |name: &str| required.contains(name) || self.optional().contains(&name);
        if let Some((line, name)) = found.iter().find(|(_, name)| !is_known(name)) {
            let known = required.iter().chain(self.optional()).map(|name| (*name).to_owned());
            let (name, known) = ((*name).to_owned(), known.collect());
            return Err(at(*line, TextProblem::Unknown { name, known }));
        }
        let last = text.trim_end().lines().count().max(1);
        if let Some(missing) =
            required.iter().find(|name| found.iter().all(|(_, one)| one != *name))
        {
            return Err(at(last, TextProblem::Missing((*missing).to_owned())));
        }
        if self.kind == TextKind::Memo {
            // Code inserts whole blocks for it, so it cannot be a part of a line, and twice would
            // repeat the section.
            let mut content = found.iter().filter(|(_, name)| *name == CONTENT);
            let first = content.next().map_or(last, |(line, _)| *line);
            let is_alone =
                text.lines().nth(first - 1).is_some_and(|line| line.trim() == "{{content}}");
            if let Some((line, _)) = content.next() {
                return Err(at(*line, TextProblem::Content));
            }
            if !is_alone {
                return Err(at(first, TextProblem::Content));
            }
        }
        Ok(())
    }

    /// The text in its stored form: with the line breaks at its beginning and end that the built-in text
    /// has, because requests are joined from these texts.
    fn normalized(&self, text: &str) -> String {
        let body = self.text.trim_matches('\n');
        let (before, after) = self.text.split_once(body).unwrap_or_default();
        format!("{before}{}{after}", text.trim_matches('\n'))
    }
}

fn file(kind: TextKind, name: &str) -> String {
    format!("{}/{name}.md", kind.folder())
}

/// Why a text cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct TextFault {
    /// The line, starting at 1.
    pub line: usize,
    /// The problem.
    pub problem: TextProblem,
}

/// Problems of a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextProblem {
    /// No built-in text has this name.
    #[error("no text has the name `{0}`")]
    Name(String),
    /// Too long.
    #[error("the text is longer than {} KiB", MAX_TEXT_BYTES >> 10)]
    TooLong,
    /// All texts together are too long.
    #[error("the texts are longer than {} KiB together", MAX_ALL_BYTES >> 10)]
    AllTooLong,
    /// Empty.
    #[error("the text is empty")]
    Empty,
    /// A character that is not visible.
    #[error("hidden character {0}")]
    Hidden(String),
    /// `{{` without a name and `}}`.
    #[error("broken placeholder: `{{{{` without a name and `}}}}`")]
    Broken,
    /// A placeholder that this text does not have.
    #[error("unknown placeholder `{{{{{name}}}}}`")]
    Unknown {
        /// The name.
        name: String,
        /// Valid names.
        known: Vec<String>,
    },
    /// A placeholder of the built-in text is missing.
    #[error("missing placeholder `{{{{{0}}}}}`")]
    Missing(String),
    /// The content of a memo section is not on a separate line, or is there twice.
    #[error("`{{{{content}}}}` must be on a line of its own, once")]
    Content,
}

impl TextProblem {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Name(_) => "`moothall prompts list` prints all names".to_owned(),
            Self::TooLong | Self::AllTooLong => {
                "shorten it: every word is paid for in every call".to_owned()
            }
            Self::Empty => "delete the file to use the built-in text".to_owned(),
            Self::Hidden(_) => "delete the character, or type the line again".to_owned(),
            Self::Broken => {
                "write `{{name}}` with lower-case letters and `_`; a text cannot contain other `{{`"
                    .to_owned()
            }
            Self::Unknown { known, .. } if known.is_empty() => {
                "this text has no placeholders".to_owned()
            }
            Self::Unknown { known, .. } => {
                let names: Vec<String> =
                    known.iter().map(|name| format!("{{{{{name}}}}}")).collect();
                format!("placeholders of this text: {}", names.join(", "))
            }
            Self::Missing(name) => format!(
                "add `{{{{{name}}}}}` where its value belongs; `moothall prompts show` prints the built-in text"
            ),
            Self::Content => "put it between the heading and your closing lines".to_owned(),
        }
    }
}

/// The placeholders of a text with their lines.
pub(crate) fn placeholders(text: &str) -> Result<Vec<(usize, &str)>, TextFault> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("{{") {
        let open = at + start;
        let line = 1 + text[..open].matches('\n').count();
        let broken = TextFault { line, problem: TextProblem::Broken };
        let behind = &text[open + 2..];
        let Some(length) = behind.find("}}") else { return Err(broken) };
        let name = &behind[..length];
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if !(1..=40).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(broken);
        }
        found.push((line, name));
        at = open + 2 + length + 2;
    }
    Ok(found)
}

/// The user's own texts of one kind, by name. Part of a committee and stored with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnTexts(BTreeMap<String, String>);

impl OwnTexts {
    /// Whether all texts are the built-in ones.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The user's text with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names and texts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Checks and adds a text. A text that equals the built-in one is left out, so that requests stay
    /// the same. `name` and `text` are untrusted.
    pub fn add(&mut self, kind: TextKind, name: &str, text: &str) -> Result<(), TextFault> {
        let built_in = find(kind, name, PromptRevision::CURRENT)?;
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        built_in.check(&text)?;
        let text = built_in.normalized(&text);
        if text != built_in.text {
            self.0.insert(name.to_owned(), text);
        }
        Ok(())
    }

    /// Checks all texts, which may come from a stored run or a receipt. Names the one with the fault.
    pub(crate) fn check(
        &self,
        kind: TextKind,
        revision: PromptRevision,
    ) -> Result<(), (String, TextFault)> {
        for (name, text) in self.iter() {
            let checked = find(kind, name, revision).and_then(|built_in| built_in.check(text));
            checked.map_err(|fault| (shown_file(kind, name), fault))?;
        }
        if self.bytes() > MAX_ALL_BYTES {
            let fault = TextFault { line: 1, problem: TextProblem::AllTooLong };
            return Err((kind.folder().to_owned(), fault));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.0.values().map(String::len).sum()
    }

    /// The texts that a debate needs.
    pub(crate) fn of_debate(&self) -> Self {
        let is_needed = |name: &str| debate::prompt_templates().iter().any(|one| one.name == name);
        let needed = self.0.iter().filter(|(name, _)| is_needed(name));
        Self(needed.map(|(name, text)| (name.clone(), text.clone())).collect())
    }

    /// The hash of each text, by file.
    pub(crate) fn hashes(&self, kind: TextKind) -> impl Iterator<Item = (String, Sha256Hex)> {
        self.iter().map(move |(name, text)| (file(kind, name), Sha256Hex::of(text.as_bytes())))
    }
}

/// The name may be untrusted and long.
fn shown_file(kind: TextKind, name: &str) -> String {
    file(kind, &name.chars().take(60).collect::<String>())
}

fn find(kind: TextKind, name: &str, revision: PromptRevision) -> Result<BuiltInText, TextFault> {
    texts_of(kind, revision).find(|one| one.name == name).ok_or_else(|| {
        let shown = name.chars().take(60).collect();
        TextFault { line: 1, problem: TextProblem::Name(shown) }
    })
}

#[cfg(test)]
#[path = "own_texts_tests.rs"]
mod tests;
