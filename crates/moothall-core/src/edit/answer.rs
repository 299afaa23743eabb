//! Strict parsing of the model's answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::PromptRevision;
use crate::drafts::{FileProposal, RelPath, apply_hunks, read_answer};
use crate::model::{ModelReply, OutputSchema, StopReason};
use crate::output_schema::{any_text, list, object, one_of, text, v1_schema};
use crate::structured::{OutputFault, read_json};

/// The maximum number of files read for one task.
pub(crate) const MAX_FILES: usize = 8;
const MAX_SUMMARY_CHARS: usize = 200;
const MAX_PATH_CHARS: usize = 400;

/// The maximum number of files that a schema lists.
const MAX_NAMES: usize = 100;

/// A proposed change: the complete text of each file, or `None` to delete it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditProposal {
    /// The model's summary of the change.
    pub summary: String,
    /// The changed files.
    pub files: BTreeMap<RelPath, Option<String>>,
}

/// The files a model chose. Its name in parser errors is part of the requests of stored runs.
#[derive(Deserialize)]
#[serde(rename = "Choice")]
struct FileChoice {
    files: Vec<String>,
}

/// A proposal as JSON, for servers that can enforce a schema.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposalForm {
    pub(crate) files: Vec<ProposalFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposalFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The schema of a [`ProposalForm`] with at most `most` files. The limit stops small models from repeating
/// the same files.
pub(crate) fn form_schema(most: usize) -> OutputSchema {
    let file = object([("path", any_text()), ("text", any_text())]);
    let files = list(file, 1..=most.clamp(1, MAX_FILES));
    OutputSchema::of_object("proposal", object([("files", files)]))
}

/// The schema of a choice among these files. It lists them, unless they are too many for the
/// providers that limit the length of a schema.
pub(crate) fn choice_schema(revision: PromptRevision, names: &[RelPath]) -> OutputSchema {
    let names: Vec<&str> = names.iter().map(RelPath::as_str).collect();
    let name = || match names.len() <= MAX_NAMES {
        true => one_of(&names),
        false => text(MAX_PATH_CHARS),
    };
    let schema = match revision {
        PromptRevision::V1 => v1_schema(include_str!("prompts/v1/files.schema.json")),
        PromptRevision::V2 => object([("files", list(name(), 1..=MAX_FILES))]),
    };
    OutputSchema::of_object("files", schema)
}

/// Parses the chosen files. Names that were not listed are ignored.
pub(crate) fn read_choice(
    reply: &ModelReply,
    names: &[RelPath],
) -> Result<Vec<RelPath>, OutputFault> {
    let value = read_json(reply, &|_: &serde_json::Value| Vec::new())?;
    let invalid = |problem: String| OutputFault::Invalid { problems: vec![problem] };
    let choice: FileChoice =
        serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
    let known = |name: &String| names.iter().find(|path| path.as_str() == name).cloned();
    let mut chosen: Vec<RelPath> = choice.files.iter().filter_map(known).collect();
    chosen.sort();
    chosen.dedup();
    chosen.truncate(MAX_FILES);
    if chosen.is_empty() {
        return Err(invalid("none of the listed files was chosen".to_owned()));
    }
    Ok(chosen)
}

/// Parses a change from an answer to a request with the [`ProposalForm`] schema. Not every server
/// enforces schemas, so fenced blocks are accepted too.
pub(crate) fn read_form(
    reply: &ModelReply,
    texts: &BTreeMap<RelPath, String>,
) -> Result<EditProposal, OutputFault> {
    let value = match read_json(reply, &|_: &serde_json::Value| Vec::new()) {
        Err(OutputFault::NotJson { .. }) => return read_change(reply, texts),
        read => read?,
    };
    let invalid = |problem: String| OutputFault::Invalid { problems: vec![problem] };
    let form: ProposalForm =
        serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
    if form.files.is_empty() || form.files.len() > MAX_FILES {
        return Err(invalid(format!("there must be 1 to {MAX_FILES} files in it")));
    }
    let mut files = BTreeMap::new();
    for ProposalFile { path, mut text } in form.files {
        let path = RelPath::parse(&path).map_err(|fault| invalid(fault.to_string()))?;
        // Fenced blocks end with a line break; JSON strings from models usually do not.
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if files.insert(path.clone(), Some(text)).is_some() {
            return Err(invalid(format!("{path} is there twice")));
        }
    }
    Ok(EditProposal { summary: String::new(), files })
}

/// Parses a change from fenced blocks that name their file, or from a unified diff.
pub fn read_change(
    reply: &ModelReply,
    texts: &BTreeMap<RelPath, String>,
) -> Result<EditProposal, OutputFault> {
    if reply.stop == StopReason::MaxTokens {
        return Err(OutputFault::CutOff);
    }
    let invalid = |problem: String| OutputFault::Invalid { problems: vec![problem] };
    let single = match texts.len() {
        1 => texts.keys().next(),
        _ => None,
    };
    let proposed = read_answer(&reply.text, single).map_err(|fault| invalid(fault.to_string()))?;
    let mut files = BTreeMap::new();
    for one in proposed {
        let text = match one.what {
            FileProposal::Whole(text) => Some(text),
            FileProposal::Delete => None,
            FileProposal::Hunks(hunks) => {
                let now = texts.get(&one.path).map_or("", String::as_str);
                let text = apply_hunks(now, &hunks)
                    .map_err(|fault| invalid(format!("{}: {fault}", one.path)))?;
                Some(text)
            }
        };
        files.insert(one.path, text);
    }
    Ok(EditProposal { summary: summary(&reply.text), files })
}

/// The first line of prose.
fn summary(text: &str) -> String {
    let fence = |line: &str| line.starts_with("```") || line.starts_with("~~~");
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let plain = line.chars().filter(|c| !c.is_control()).take(MAX_SUMMARY_CHARS);
    if fence(line) || line.starts_with("---") { String::new() } else { plain.collect() }
}
