//! Extracts a program from a model's answer.

use serde_json::{Value, json};

use crate::PromptRevision;
use crate::fenced::{FencedBlock, fenced_blocks};
use crate::model::{ModelReply, OutputSchema, StopReason};
use crate::output_schema::{list, object, some_text, text, v1_schema};
use crate::structured::OutputFault;

/// The maximum size of a program.
pub const MAX_CODE_BYTES: usize = 64 * 1024;

/// Limits for the model's dependency list.
const MAX_DEPENDENCIES: usize = 40;
const MAX_DEPENDENCY_CHARS: usize = 80;

/// Limit for the reasoning in the schema.
const MAX_REASONING_CHARS: usize = 600;

/// A program as written by a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedProgram {
    /// The source code.
    pub code: String,
    /// Packages the model says it needs.
    pub dependencies: Vec<String>,
    /// The model's reasoning.
    pub reasoning: String,
    /// The model's stated confidence in thousandths. Informational only.
    pub confidence_permille: Option<u16>,
}

/// The answer's schema. The reasoning comes first: a model that has described its approach writes
/// better programs. Answers are parsed more leniently.
pub(crate) fn schema(revision: PromptRevision) -> OutputSchema {
    let schema = match revision {
        PromptRevision::V1 => v1_schema(include_str!("prompts/v1/program.schema.json")),
        PromptRevision::V2 => object([
            ("reasoning", text(MAX_REASONING_CHARS)),
            ("code", some_text()),
            ("dependencies", list(text(MAX_DEPENDENCY_CHARS), 0..=MAX_DEPENDENCIES)),
            ("confidence", json!({"type": "number", "minimum": 0, "maximum": 1})),
        ]),
    };
    OutputSchema::of_object("program", schema)
}

/// Extracts the program from a model's answer, or returns why it cannot.
///
/// Accepts JSON, bare or in the only fence; otherwise the only fenced block, or the only one marked
/// as Python. An unclosed fence is accepted if the answer was not truncated.
pub fn read_program(reply: &ModelReply) -> Result<GeneratedProgram, OutputFault> {
    if reply.stop == StopReason::MaxTokens {
        return Err(OutputFault::CutOff);
    }
    let blocks = fenced_blocks(&reply.text);
    let json =
        serde_json::from_str::<Value>(&reply.text).ok().or_else(|| match blocks.as_slice() {
            [only] => serde_json::from_str(only.text).ok(),
            _ => None,
        });
    let program = match json {
        Some(value @ Value::Object(_)) => from_json(&value)?,
        _ => GeneratedProgram {
            code: only_code(&blocks)?.to_owned(),
            dependencies: Vec::new(),
            reasoning: String::new(),
            confidence_permille: None,
        },
    };
    if program.code.trim().is_empty() {
        return Err(invalid("the program is empty"));
    }
    if program.code.len() > MAX_CODE_BYTES {
        return Err(invalid("the program is longer than 64 KiB"));
    }
    Ok(program)
}

fn from_json(value: &Value) -> Result<GeneratedProgram, OutputFault> {
    let code = value.get("code").and_then(Value::as_str);
    let code = code.ok_or_else(|| invalid("`code` must be the program's text"))?;
    // Remove a fence inside the JSON string.
    let blocks = fenced_blocks(code);
    let code = match blocks.as_slice() {
        [only] if code.trim_start().starts_with(['`', '~']) => only.text,
        _ => code,
    };
    let names = value.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let dependencies = names
        .filter_map(Value::as_str)
        .map(|name| name.trim().chars().take(MAX_DEPENDENCY_CHARS).collect::<String>())
        .filter(|name| !name.is_empty())
        .take(MAX_DEPENDENCIES)
        .collect();
    let confidence = value.get("confidence").and_then(Value::as_f64);
    Ok(GeneratedProgram {
        code: code.to_owned(),
        dependencies,
        reasoning: value.get("reasoning").and_then(Value::as_str).unwrap_or("").to_owned(),
        confidence_permille: confidence
            .filter(|share| (0.0..=1.0).contains(share))
            .map(|share| (share * 1000.0).round() as u16),
    })
}

fn only_code<'a>(blocks: &[FencedBlock<'a>]) -> Result<&'a str, OutputFault> {
    let is_python = |block: &&FencedBlock<'_>| block.language.to_lowercase().starts_with("py");
    let mut python = blocks.iter().filter(is_python);
    match (blocks, python.next(), python.next()) {
        ([only], ..) if only.language.is_empty() => Ok(only.text),
        (_, Some(only), None) => Ok(only.text),
        ([], ..) => Err(invalid("there is neither a JSON object nor a fenced block")),
        (_, None, _) => Err(invalid("there is no fenced block of Python")),
        _ => Err(invalid("there is more than one fenced block of Python")),
    }
}

fn invalid(problem: &str) -> OutputFault {
    OutputFault::Invalid { problems: vec![problem.to_owned()] }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
