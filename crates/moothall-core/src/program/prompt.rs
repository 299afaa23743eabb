//! Prompts of the program workflow.
//!
//! The instructions are the same for every attempt and feedback is appended, so a provider can
//! serve all but the last turn from its cache. Program output is untrusted data: it is truncated,
//! placed in a fence that it cannot close, and described as data.

use std::fmt::Write as _;

use super::contract::OutputExpectation;
use super::input::{AnswerFormat, ProgramInput};
use super::parse;
use crate::model::{
    CacheDuration, CallPurpose, ModelRequest, PromptBlock, PromptTurn, Temperature,
};
use crate::prompt_revision::{PromptTemplate, template};
use crate::sandbox::SandboxExecution;
use crate::structured::OutputFault;
use crate::{PromptRevision, RunFinding};

/// How much of an earlier answer, of a stream and of a critique is shown.
const MAX_ANSWER_BYTES: usize = 24 * 1024;
const MAX_STREAM_BYTES: usize = 4 * 1024;
const MAX_LESSON_STREAM_BYTES: usize = 1500;
const MAX_CRITIQUE_BYTES: usize = 4 * 1024;

/// The token limit of a critique.
const CRITIQUE_TOKENS: u32 = 1024;

/// The maximum number of input files listed.
const MAX_LISTED: usize = 100;

const RULES: PromptTemplate = template!("rules");

const STRUCTURED: PromptTemplate = template!("structured");

const FENCED: PromptTemplate = template!("fenced");

/// Worked examples: task, files, reasoning, program.
const EXAMPLES: [(&str, &str, &str, &str); 2] = [
    (
        "Print the sum of the squares of the numbers from 1 to 10.",
        "none",
        "Add up the squares and print the sum.",
        "print(sum(number * number for number in range(1, 11)))\n",
    ),
    (
        "Count the rows of visits.csv by country; print the countries with the most rows first.",
        "- /inputs/visits.csv (1204 bytes)",
        "Read the given file with the csv module, count with a Counter and print in order.",
        "\
import csv
from collections import Counter

with open(\"/inputs/visits.csv\", newline=\"\") as file:
    countries = Counter(row[\"country\"] for row in csv.DictReader(file))
for country, rows in countries.most_common():
    print(country, rows)
",
    ),
];

const REVIEWER: PromptTemplate = template!("reviewer");
const REVIEWER_MISSING_FILE: PromptTemplate = template!("reviewer_missing_file");
const CRITIQUE: PromptTemplate = template!("critique");
const FEEDBACK: PromptTemplate = template!("feedback");
const FEEDBACK_STDERR: PromptTemplate = template!("feedback_stderr");
const FEEDBACK_CRITIQUE: PromptTemplate = template!("feedback_critique");
const REWRITE: PromptTemplate = template!("rewrite");

/// Markers before and after the task in a prompt.
const TASK: &str = "Task:\n";
const FILES: &str = "\n\nFiles that were given:\n";

/// Feedback on one attempt for the next one.
#[derive(Debug, Clone)]
pub(crate) struct AttemptFeedback {
    /// The model's answer.
    pub(crate) answer: String,
    pub(crate) findings: Vec<RunFinding>,
    /// The program's standard error.
    pub(crate) stderr: String,
    /// The critique; `None` if there was no program to review.
    pub(crate) critique: Option<String>,
}

/// The prompt for the next program.
pub(crate) fn generate(input: &ProgramInput, lessons: &[AttemptFeedback]) -> ModelRequest {
    let mut turns = vec![PromptTurn::user(task(input))];
    for lesson in lessons {
        // Providers reject turns without text.
        if !lesson.answer.trim().is_empty() {
            turns.push(PromptTurn::assistant(excerpt(&lesson.answer, MAX_ANSWER_BYTES)));
        }
        turns.push(PromptTurn::user(feedback_text(input.prompts, lesson)));
    }
    let (form, schema) = match input.answer_form {
        AnswerFormat::Structured => (STRUCTURED, Some(parse::schema(input.prompts))),
        AnswerFormat::Fenced => (FENCED, None),
    };
    let form = form.text(input.prompts);
    ModelRequest {
        model: input.model.first().clone(),
        fallbacks: input.model.fallbacks().to_vec(),
        purpose: CallPurpose::Generate,
        system: vec![
            PromptBlock::new(format!(
                "{}\n{form}{}",
                RULES.text(input.prompts),
                examples(input.answer_form)
            )),
            PromptBlock::new(environment_prompt(input)).cached(CacheDuration::FiveMinutes),
        ],
        turns,
        max_tokens: input.max_tokens,
        temperature: Temperature::from_thousandths(700),
        effort: None,
        schema,
        timeout_ms: input.timeout_ms,
    }
}

/// The prompt for a critique.
pub(crate) fn critique(
    input: &ProgramInput,
    code: &str,
    execution: &SandboxExecution,
    findings: &[RunFinding],
) -> ModelRequest {
    let text = CRITIQUE.fill(
        input.prompts,
        &[
            ("task", &task(input)),
            ("code", &fenced("python", code, MAX_ANSWER_BYTES)),
            ("exit", &fenced("", &execution.exit.to_string(), MAX_STREAM_BYTES)),
            ("findings", &fenced("", &messages(findings), MAX_STREAM_BYTES)),
            ("stdout", &fenced("", &execution.stdout.text, MAX_STREAM_BYTES)),
            ("stderr", &fenced("", &execution.stderr.text, MAX_STREAM_BYTES)),
        ],
    );
    // The rule about missing files misleads small models if no file is missing.
    let missing = match is_file_missing(execution) {
        true => REVIEWER_MISSING_FILE.text(input.prompts),
        false => "",
    };
    let rules = REVIEWER.fill(input.prompts, &[("missing", missing)]) + "\n";
    let critic = input.critic.as_ref().unwrap_or(&input.model);
    ModelRequest {
        model: critic.first().clone(),
        fallbacks: critic.fallbacks().to_vec(),
        purpose: CallPurpose::Critique,
        system: vec![PromptBlock::new(rules), PromptBlock::new(environment_prompt(input))],
        turns: vec![PromptTurn::user(text)],
        max_tokens: CRITIQUE_TOKENS.min(input.max_tokens),
        temperature: Temperature::from_thousandths(300),
        effort: None,
        schema: None,
        timeout_ms: input.timeout_ms,
    }
}

/// The retry after an answer without a program. It shows the model the problems.
pub(crate) fn retry_request(
    request: &ModelRequest,
    form: AnswerFormat,
    answer: &str,
    fault: &OutputFault,
) -> ModelRequest {
    let mut again = request.clone();
    if !answer.trim().is_empty() {
        again.turns.push(PromptTurn::assistant(excerpt(answer, MAX_ANSWER_BYTES)));
    }
    let mut text = "Your answer cannot be used:\n".to_owned();
    for problem in fault.problems() {
        let _ = writeln!(text, "- {problem}");
    }
    text.push_str(match form {
        AnswerFormat::Structured => {
            "Answer again with one JSON object that follows the schema, and nothing else."
        }
        AnswerFormat::Fenced => {
            "Answer again with the whole program in one ```python block, and no other block."
        }
    });
    if *fault == OutputFault::CutOff {
        text.push_str(" Be shorter, so that the answer is complete.");
    }
    again.turns.push(PromptTurn::user(text));
    again
}

/// The task and the file list of a prompt, for the demo model.
pub(crate) fn task_and_files(request: &ModelRequest) -> Option<(&str, &str)> {
    let text = request.turns.first().map(|turn| &*turn.block.text)?;
    text.strip_prefix(TASK)?.split_once(FILES)
}

fn task(input: &ProgramInput) -> String {
    let mut text = format!("{TASK}{}{FILES}", input.task.trim());
    if input.inputs.is_empty() {
        text.push_str("none\n");
    }
    for (path, file) in input.inputs.iter().take(MAX_LISTED) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- /inputs/{path} ({} bytes)", file.bytes);
    }
    if input.inputs.len() > MAX_LISTED {
        let _ = writeln!(text, "- and {} more", input.inputs.len() - MAX_LISTED);
    }
    for path in &input.contract.outputs {
        let _ = writeln!(text, "\nThe program must leave this file: /workspace/out/{path}");
    }
    // The model may know the output's schema, but not the exact expected output.
    if let Some(OutputExpectation::Schema { schema }) = &input.contract.expect {
        let _ = writeln!(
            text,
            "\nThe program must print one JSON value that follows this schema, and nothing else:\n{}",
            schema.text()
        );
    }
    text
}

fn environment_prompt(input: &ProgramInput) -> String {
    let packages = if input.packages.is_empty() {
        "Only the standard library can be imported.".to_owned()
    } else {
        format!("Beside the standard library there are: {}.", input.packages.join(", "))
    };
    let seconds = input.limits.wall_ms.div_ceil(1000);
    let mebibytes = input.limits.memory_bytes >> 20;
    format!("{packages} The program may take {seconds} seconds and {mebibytes} MiB of memory.\n")
}

fn examples(form: AnswerFormat) -> String {
    let mut text = "\nTwo examples:\n".to_owned();
    for (task, files, reasoning, code) in EXAMPLES {
        let answer = match form {
            AnswerFormat::Fenced => format!("```python\n{code}```"),
            AnswerFormat::Structured => serde_json::json!({
                "reasoning": reasoning,
                "code": code,
                "dependencies": [],
                "confidence": 0.9,
            })
            .to_string(),
        };
        let _ = write!(text, "\n{TASK}{task}{FILES}{files}\n\nAnswer:\n{answer}\n");
    }
    text
}

fn feedback_text(revision: PromptRevision, lesson: &AttemptFeedback) -> String {
    let findings = fenced("", &messages(&lesson.findings), MAX_STREAM_BYTES);
    let mut text = FEEDBACK.fill(revision, &[("findings", &findings)]);
    if !lesson.stderr.trim().is_empty() {
        let stderr = fenced("", &lesson.stderr, MAX_LESSON_STREAM_BYTES);
        text.push_str(&FEEDBACK_STDERR.fill(revision, &[("stderr", &stderr)]));
    }
    if let Some(critique) = &lesson.critique {
        let critique = fenced("", critique, MAX_CRITIQUE_BYTES);
        text.push_str(&FEEDBACK_CRITIQUE.fill(revision, &[("critique", &critique)]));
    }
    text + REWRITE.text(revision).trim_end()
}

fn is_file_missing(execution: &SandboxExecution) -> bool {
    ["FileNotFoundError", "No such file or directory"]
        .iter()
        .any(|sign| execution.stderr.text.contains(sign))
}

/// The findings without their evidence, which may contain the expected output.
fn messages(findings: &[RunFinding]) -> String {
    findings.iter().map(|finding| format!("{}: {}\n", finding.rule, finding.message)).collect()
}

/// Untrusted text: truncated, without control characters, in a fence that it cannot close.
pub(crate) fn fenced(language: &str, text: &str, max_bytes: usize) -> String {
    let is_harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    let text: String = excerpt(text, max_bytes)
        .chars()
        .map(|c| if is_harmless(c) { c } else { '\u{fffd}' })
        .collect();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let text = text.trim_end();
    format!("{fence}{language}\n{text}\n{fence}")
}

/// The beginning and the end of a text that is too long, with the number of omitted bytes between
/// them.
pub(crate) fn excerpt(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max_bytes / 2);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 2);
    let left_out = tail - head;
    format!("{}\n[{left_out} bytes left out]\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
