//! Prompts of the edit workflow. File contents are untrusted data, placed in fences that they
//! cannot close.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::answer::{MAX_FILES, ProposalFile, ProposalForm, choice_schema, form_schema};
use super::calls::SubmissionStatus;
use super::input::EditInput;
use crate::drafts::{CommentSide, LineComment, RelPath};
use crate::model::{
    CacheDuration, CallPurpose, ModelRequest, PromptBlock, PromptTurn, Temperature,
};
use crate::prompt_revision::{PromptTemplate, template};
use crate::structured::OutputFault;

/// The maximum number of file names listed.
const MAX_LISTED: usize = 400;
/// How much of an earlier answer, and of the feedback on it, is repeated.
const MAX_ANSWER_BYTES: usize = 24 * 1024;
const MAX_WORDS_BYTES: usize = 6 * 1024;
/// Comments on lines are repeated up to this size of the feedback.
const MAX_COMMENT_BYTES: usize = MAX_WORDS_BYTES - 64;

const CHOOSE: PromptTemplate = template!("choose");

const PROPOSE: PromptTemplate = template!("propose");

const AGAIN: PromptTemplate = template!("again");
const RETRY: PromptTemplate = template!("retry");

const FORM: PromptTemplate = template!("form");

/// Prefixes of the task and of each file.
pub(crate) const TASK: &str = "Task:\n";
const FILE: &str = "File ";

/// Feedback on one attempt for the next one.
#[derive(Debug, Clone)]
pub(crate) struct EditFeedback {
    answer: String,
    words: String,
}

impl EditFeedback {
    /// The answer could not be used.
    pub(crate) fn unreadable(answer: &str, why: &str) -> Self {
        let words = format!("Your answer cannot be used: {why}\n");
        Self { answer: answer.to_owned(), words }
    }

    /// The gate or a reviewer did not accept the proposal.
    pub(crate) fn of(answer: &str, said: &SubmissionStatus) -> Self {
        let mut words = "Your proposal was not accepted.\n".to_owned();
        for finding in &said.findings {
            let line = finding.line.map(|line| format!(" line {line}")).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ =
                writeln!(words, "- {}{line}: {} ({})", finding.path, finding.message, finding.rule);
        }
        for more in &said.words {
            let _ = write!(words, "\n{}\n", fenced("", more));
        }
        if let Some(comment) = &said.comment {
            let _ = write!(words, "\nA person says:\n{}\n", fenced("", comment));
        }
        if !said.comments.is_empty() {
            words.push_str("\nA person commented on lines:\n");
        }
        for (at, LineComment { path, side, line, text }) in said.comments.iter().enumerate() {
            let version = match side {
                CommentSide::Old => "the file before your change",
                CommentSide::New => "your proposal",
            };
            let comment = format!("\n{path} line {line} of {version}:\n{}\n", fenced("", text));
            // A fence that is cut would have no end.
            if words.len() + comment.len() > MAX_COMMENT_BYTES {
                let _ = writeln!(words, "\n(and {} more comments)", said.comments.len() - at);
                break;
            }
            words.push_str(&comment);
        }
        Self { answer: answer.to_owned(), words }
    }
}

/// Asks which files to work on.
pub(crate) fn choose(input: &EditInput, names: &[RelPath]) -> ModelRequest {
    let mut text = format!("{TASK}{}\n\nFiles:\n", input.task.trim());
    for name in names.iter().take(MAX_LISTED) {
        let _ = writeln!(text, "- {name}");
    }
    if names.len() > MAX_LISTED {
        let _ = writeln!(text, "(and {} more, which cannot be chosen)", names.len() - MAX_LISTED);
    }
    let _ = write!(text, "\nWhich files, at most {MAX_FILES}?");
    ModelRequest {
        schema: Some(choice_schema(input.prompts, names)),
        temperature: Temperature::from_thousandths(0),
        ..request(input, CHOOSE, vec![PromptTurn::user(text)])
    }
}

/// Asks for the proposal.
pub(crate) fn propose(
    input: &EditInput,
    texts: &BTreeMap<RelPath, String>,
    lessons: &[EditFeedback],
) -> ModelRequest {
    let mut text = format!("{TASK}{}\n", input.task.trim());
    for (path, content) in texts {
        let _ = write!(text, "\n{FILE}{path}:\n{}\n", fenced("", content));
    }
    if texts.is_empty() {
        text.push_str("\nThe workspace is empty.\n");
    }
    let again = AGAIN.text(input.prompts);
    let mut turns = vec![PromptTurn::user(text)];
    for lesson in lessons {
        // Providers reject turns without text.
        if !lesson.answer.trim().is_empty() {
            turns.push(PromptTurn::assistant(beginning(&lesson.answer, MAX_ANSWER_BYTES)));
        }
        let words = beginning(&lesson.words, MAX_WORDS_BYTES);
        turns.push(PromptTurn::user(format!("{words}\n{}", again.trim_end())));
    }
    request(input, PROPOSE, turns)
}

/// A shorter version of the same prompt, without the unreadable answer: small models repeat their
/// own output when they see it. Feedback on earlier attempts is left out too; the gate would report
/// it again.
pub(crate) fn short_retry_request(
    input: &EditInput,
    texts: &BTreeMap<RelPath, String>,
    fault: &OutputFault,
) -> ModelRequest {
    let mut text = format!("{TASK}{}\n", input.task.trim());
    for (path, content) in texts {
        // The same format as the expected answer. The file extension is a good enough language tag.
        let language = path.name().rsplit('.').next().unwrap_or_default();
        let _ =
            write!(text, "\n{FILE}{path}:\n{}\n", fenced(&format!("{language} {path}"), content));
    }
    let names: Vec<&str> = texts.keys().map(RelPath::as_str).collect();
    let _ = match names.as_slice() {
        [name] => write!(text, "\nWrite the whole new text of {name}."),
        _ => write!(text, "\nWrite the whole new text of each file that changes."),
    };
    if *fault == OutputFault::CutOff {
        text.push_str(" Be short, so that the answer is complete.");
    }
    request(input, RETRY, vec![PromptTurn::user(text)])
}

/// The same prompt as a JSON form with a schema, which most servers can enforce. Models that got
/// the blocks wrong usually do so again if asked for blocks.
pub(crate) fn json_form_request(
    input: &EditInput,
    texts: &BTreeMap<RelPath, String>,
) -> ModelRequest {
    let file = |(path, text): (&RelPath, &String)| ProposalFile {
        path: path.to_string(),
        text: text.clone(),
    };
    let form = ProposalForm { files: texts.iter().map(file).collect() };
    // Serializing strings cannot fail.
    let form = serde_json::to_string(&form).unwrap_or_default();
    let text = format!("{TASK}{}\n\nFiles:\n{form}\n", input.task.trim());
    ModelRequest {
        schema: Some(form_schema(texts.len())),
        ..request(input, FORM, vec![PromptTurn::user(text)])
    }
}

/// The task of a prompt, for the demo model.
pub(crate) fn task_of(request: &ModelRequest) -> Option<&str> {
    let text = request.turns.first().map(|turn| &*turn.block.text)?;
    text.strip_prefix(TASK)?.split("\n\n").next()
}

/// The names and contents of the files of a prompt, for the demo model.
pub(crate) fn files_of(request: &ModelRequest) -> Vec<(&str, &str)> {
    let Some(turn) = request.turns.first() else { return Vec::new() };
    let mut found = Vec::new();
    let mut rest = &*turn.block.text;
    while let Some((_, after)) = rest.split_once(&format!("\n{FILE}")) {
        let Some((name, body)) = after.split_once(":\n") else { break };
        let Some((fence, body)) = body.split_once('\n') else { break };
        let Some((text, more)) = body.split_once(&format!("\n{fence}\n")) else { break };
        found.push((name, text));
        rest = more;
    }
    found
}

fn request(input: &EditInput, rules: PromptTemplate, turns: Vec<PromptTurn>) -> ModelRequest {
    ModelRequest {
        model: input.model.first().clone(),
        fallbacks: input.model.fallbacks().to_vec(),
        purpose: CallPurpose::Edit,
        system: vec![
            PromptBlock::new(rules.text(input.prompts)).cached(CacheDuration::FiveMinutes),
        ],
        turns,
        max_tokens: input.max_tokens,
        temperature: Temperature::from_thousandths(200),
        effort: None,
        schema: None,
        timeout_ms: input.timeout_ms,
    }
}

/// Untrusted text, complete, in a fence that it cannot close.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

fn beginning(text: &str, max_bytes: usize) -> String {
    text[..text.floor_char_boundary(max_bytes)].to_owned()
}
