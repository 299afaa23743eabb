//! Reads the edits in a tool call of an agent. Pure. The call is untrusted: whatever is not understood
//! becomes an edit with unknown content.

use serde_json::Value;

/// An edit that an agent wants to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProposedEdit {
    /// As the agent named it: absolute, or relative to its working directory.
    pub(crate) path: String,
    steps: Vec<EditStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EditStep {
    Write(String),
    Replace { old: String, new: String, all: bool },
    Delete,
    Unknown,
}

/// The file after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditPrediction {
    Content(String),
    Deleted,
    /// The edit cannot be predicted, or the client will refuse it.
    Unknown,
}

impl ProposedEdit {
    fn new(path: String, steps: Vec<EditStep>) -> Self {
        Self { path, steps }
    }

    /// Applies the edit to the current content.
    pub(crate) fn apply(&self, base: Option<&str>) -> EditPrediction {
        let mut text = base.map(str::to_owned);
        for step in &self.steps {
            text = match step {
                EditStep::Write(content) => Some(content.clone()),
                EditStep::Delete => None,
                EditStep::Unknown => return EditPrediction::Unknown,
                EditStep::Replace { old, new, .. } if old.is_empty() => {
                    // Gemini CLI and opencode create a file this way.
                    match text.as_deref() {
                        None | Some("") => Some(new.clone()),
                        Some(_) => return EditPrediction::Unknown,
                    }
                }
                EditStep::Replace { old, new, all } => {
                    let current = text.unwrap_or_default();
                    match (current.matches(old.as_str()).count(), all) {
                        (0, _) => return EditPrediction::Unknown,
                        (_, true) => Some(current.replace(old.as_str(), new)),
                        (_, false) => Some(current.replacen(old.as_str(), new, 1)),
                    }
                }
            };
        }
        text.map_or(EditPrediction::Deleted, EditPrediction::Content)
    }
}

/// The edits of a tool call; empty if the tool edits no files.
pub(crate) fn edits_of(tool: &str, input: &Value) -> Vec<ProposedEdit> {
    let path = || text_of(input, &["file_path", "filePath", "notebook_path"]).map(str::to_owned);
    let one = |steps| path().map(|path| ProposedEdit::new(path, steps)).into_iter().collect();
    match tool {
        "Write" | "write_file" | "write" => {
            let content = text_of(input, &["content"]);
            one(vec![content.map_or(EditStep::Unknown, |text| EditStep::Write(text.to_owned()))])
        }
        "Edit" | "replace" | "edit" => one(vec![replacement(input)]),
        "MultiEdit" | "multiedit" => {
            let edits = input["edits"].as_array();
            one(edits.map_or_else(
                || vec![EditStep::Unknown],
                |edits| edits.iter().map(replacement).collect(),
            ))
        }
        "NotebookEdit" => one(vec![EditStep::Unknown]),
        "apply_patch" | "patch" | "Bash" | "shell" | "exec_command" => {
            edits_of_patch(&command_text(input))
        }
        _ => Vec::new(),
    }
}

fn text_of<'a>(input: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| input[*name].as_str())
}

fn replacement(input: &Value) -> EditStep {
    let old = text_of(input, &["old_string", "oldString"]);
    let new = text_of(input, &["new_string", "newString"]);
    let is_set = |name: &str| input[name].as_bool() == Some(true);
    let all = ["replace_all", "replaceAll", "allow_multiple"].into_iter().any(is_set)
        || input["expected_replacements"].as_u64().is_some_and(|count| count > 1);
    match (old, new) {
        (Some(old), Some(new)) => {
            EditStep::Replace { old: old.to_owned(), new: new.to_owned(), all }
        }
        _ => EditStep::Unknown,
    }
}

/// The text of a command or a patch.
fn command_text(input: &Value) -> String {
    let words = |name: &str| match &input[name] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join("\n"))
        }
        _ => None,
    };
    let names = ["command", "input", "patchText", "patch", "cmd"];
    names.into_iter().find_map(words).unwrap_or_default()
}

/// The edits of a patch in the format of `apply_patch`, which may be part of a shell command.
fn edits_of_patch(text: &str) -> Vec<ProposedEdit> {
    let mut edits: Vec<ProposedEdit> = Vec::new();
    let mut lines = text.lines().skip_while(|line| line.trim() != "*** Begin Patch").peekable();
    while let Some(line) = lines.next() {
        let header = |name: &str| line.strip_prefix(name).map(|path| path.trim().to_owned());
        if let Some(path) = header("*** Add File: ") {
            let mut content = String::new();
            while let Some(added) = lines.next_if(|line| line.starts_with('+')) {
                content.push_str(&added[1..]);
                content.push('\n');
            }
            edits.push(ProposedEdit::new(path, vec![EditStep::Write(content)]));
        } else if let Some(path) = header("*** Delete File: ") {
            edits.push(ProposedEdit::new(path, vec![EditStep::Delete]));
        } else if let Some(path) = header("*** Update File: ") {
            let moved = lines.next_if(|line| line.starts_with("*** Move to: "));
            let mut steps = Vec::new();
            let (mut old, mut new) = (String::new(), String::new());
            while let Some(line) = lines.next_if(|line| is_hunk_line(line)) {
                match line.split_at_checked(1) {
                    Some(("+", text)) => push_line(&mut new, text),
                    Some(("-", text)) => push_line(&mut old, text),
                    Some((" ", text)) => {
                        push_line(&mut old, text);
                        push_line(&mut new, text);
                    }
                    None => {
                        push_line(&mut old, "");
                        push_line(&mut new, "");
                    }
                    // `@@` begins the next hunk.
                    Some(_) => steps.extend(take_step(&mut old, &mut new)),
                }
            }
            steps.extend(take_step(&mut old, &mut new));
            if let Some(moved) = moved {
                let target = moved.trim_start_matches("*** Move to: ").trim().to_owned();
                edits.push(ProposedEdit::new(target, vec![EditStep::Unknown]));
                steps = vec![EditStep::Unknown];
            }
            edits.push(ProposedEdit::new(path, steps));
        }
    }
    edits
}

fn is_hunk_line(line: &str) -> bool {
    line.is_empty()
        || line.starts_with([' ', '+', '-'])
        || line.starts_with("@@")
        || line == "*** End of File"
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The replacement that a hunk describes. A hunk without old lines inserts at an unknown place.
fn take_step(old: &mut String, new: &mut String) -> Option<EditStep> {
    let (old, new) = (std::mem::take(old), std::mem::take(new));
    match (old.is_empty(), new.is_empty()) {
        (true, true) => None,
        (true, false) => Some(EditStep::Unknown),
        _ => Some(EditStep::Replace { old, new, all: false }),
    }
}

#[cfg(test)]
#[path = "proposed_edits_tests.rs"]
mod tests;
