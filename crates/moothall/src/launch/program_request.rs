//! Converts a request for a program to a run spec.

use std::collections::BTreeMap;
use std::path::Path;

use moothall_core::model::{ModelList, OutputSchema};
use moothall_core::program::{
    AnswerFormat, OutputExpectation, OutputPattern, ProgramContract, ProgramInput,
};
use moothall_core::sandbox::{GuestPath, SandboxLimits};
use moothall_core::{IsolationChoice, ProgramSpec, RunSettings, RunSpec};
use moothall_sandbox::image::ImageStore;
use moothall_store::MAX_ARTIFACT_BYTES;
use serde::Deserialize;
use serde_json::Value;

use super::{max_output, set_budget, workflow};
use crate::args::RunArgs;
use crate::context::CommandContext;
use crate::error::CliError;
use crate::{artifacts, files, isolation};

/// Limit of a task or request on standard input.
const MAX_STDIN_BYTES: u64 = 64 * 1024 * 1024;

const MAX_INPUTS: usize = 100;

const TASK_HINT: &str = "pass it as an argument, `moothall run \"…\"`, or pipe it in";

/// A program requested by a command or over HTTP. Files have been read; the model is not looked up
/// yet.
#[derive(Debug)]
pub(crate) struct ProgramRequest {
    pub(crate) task: String,
    pub(crate) model: Option<ModelList>,
    pub(crate) inputs: BTreeMap<GuestPath, Vec<u8>>,
    pub(crate) contract: ProgramContract,
    pub(crate) attempts: u32,
    pub(crate) image: String,
    pub(crate) limits: SandboxLimits,
    pub(crate) settings: RunSettings,
}

/// The object that `--stdio` reads. It cannot refer to files, because its sender may not be the
/// user who started the process.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StdioRequest {
    task: String,
    #[serde(default)]
    model: Option<ModelList>,
    #[serde(default)]
    inputs: BTreeMap<GuestPath, String>,
    #[serde(default)]
    expect: Option<StdioExpectation>,
    /// The source of the check script.
    #[serde(default)]
    check: Option<String>,
    #[serde(default)]
    leaves: Vec<GuestPath>,
    #[serde(default)]
    attempts: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum StdioExpectation {
    Text(String),
    Regex(OutputPattern),
    Schema(Value),
}

impl StdioExpectation {
    fn expectation(self) -> Result<OutputExpectation, CliError> {
        Ok(match self {
            Self::Text(text) => OutputExpectation::Text { text },
            Self::Regex(pattern) => OutputExpectation::Pattern { pattern },
            Self::Schema(schema) => {
                let schema = OutputSchema::parse("output", &schema.to_string())
                    .map_err(|error| CliError::usage(error.to_string()))?;
                OutputExpectation::Schema { schema }
            }
        })
    }
}

impl ProgramRequest {
    pub(crate) fn from_args(args: &RunArgs) -> Result<Self, CliError> {
        let request = if args.stdio { Self::from_stdin(args) } else { Self::from_flags(args) }?;
        request.check_limits()
    }

    pub(crate) fn context(&self, config: Option<&Path>) -> Result<CommandContext, CliError> {
        super::context(config, &self.settings, self.model.as_ref().map(ModelList::first))
    }

    /// Selects the model and validates the request.
    pub(crate) fn spec(&self, context: &CommandContext) -> Result<ProgramSpec, CliError> {
        let models = context.model(self.model.as_ref())?;
        let cards: Vec<_> = models.iter().map(|model| context.catalog.card(model)).collect();
        let mut input = ProgramInput::new(&self.task, models, &self.image);
        input.max_tokens = input.max_tokens.min(max_output(&cards));
        // Models without structured output write working programs in a code block, but broken ones
        // inside JSON.
        if cards.iter().any(|card| !card.structured && !card.model.is_demo()) {
            input.answer_form = AnswerFormat::Fenced;
        }
        input.packages = packages(context, &self.image)?;
        input.limits = self.limits;
        input.attempts = self.attempts;
        input.contract = self.contract.clone();
        input.inputs = artifacts::references(&self.inputs);
        let mut settings = self.settings.clone();
        set_budget(&mut settings, context.budget());
        let spec = ProgramSpec { input, settings };
        // An invalid input is refused before anything is spent.
        workflow(&RunSpec::Program(spec.clone()))?;
        Ok(spec)
    }

    fn settings(args: &RunArgs) -> Result<RunSettings, CliError> {
        Ok(RunSettings {
            restate: args.runner.restate(),
            isolation: args.sandbox.isolation.map(IsolationChoice::from),
            allow_shared_kernel: args.sandbox.allow_shared_kernel,
            budget_micro_usd: args.calls.budget,
            budget_tokens: args.calls.budget_tokens,
            base_url: args.model.base_url.clone(),
            record: files::absolute_path(args.calls.replies.record.as_deref())?,
            replay: files::absolute_path(args.calls.replies.replay.as_deref())?,
            output: files::absolute_path(args.output.as_deref())?,
            ..RunSettings::default()
        })
    }

    fn from_flags(args: &RunArgs) -> Result<Self, CliError> {
        let task =
            files::argument_or_stdin(args.task.as_deref(), "task", TASK_HINT, MAX_STDIN_BYTES)?;
        let check =
            args.check.as_deref().map(fs_err::read_to_string).transpose().map_err(|error| {
                CliError::usage("cannot read the check script").with_source(error)
            })?;
        let contract = ProgramContract {
            expect: args.expect.as_deref().map(expectation).transpose()?,
            check,
            outputs: args.leaves.clone(),
        };
        let inputs = artifacts::read_inputs(&args.input)?;
        Ok(Self {
            task,
            model: args.model.model.clone(),
            inputs,
            contract,
            attempts: args.attempts,
            image: args.sandbox.image.clone(),
            limits: isolation::limits(&args.sandbox),
            settings: Self::settings(args)?,
        })
    }

    /// Reads the object on standard input; flags supply the values it omits.
    fn from_stdin(args: &RunArgs) -> Result<Self, CliError> {
        let text =
            files::argument_or_stdin(None, "request", "pass one JSON object", MAX_STDIN_BYTES)?;
        let request: StdioRequest = serde_json::from_str(&text).map_err(|error| {
            CliError::usage("invalid request on standard input")
                .with_source(error)
                .with_hint("see `moothall run --help` for an example")
        })?;
        let contract = ProgramContract {
            expect: request.expect.map(StdioExpectation::expectation).transpose()?,
            check: request.check,
            outputs: request.leaves,
        };
        Ok(Self {
            task: request.task,
            model: request.model.or_else(|| args.model.model.clone()),
            inputs: request
                .inputs
                .into_iter()
                .map(|(path, text)| (path, text.into_bytes()))
                .collect(),
            contract,
            attempts: request.attempts.unwrap_or(args.attempts),
            image: args.sandbox.image.clone(),
            limits: isolation::limits(&args.sandbox),
            settings: Self::settings(args)?,
        })
    }

    pub(crate) fn check_limits(self) -> Result<Self, CliError> {
        if self.inputs.len() > MAX_INPUTS {
            let count = self.inputs.len();
            let message = format!("too many inputs: {count} (limit: {MAX_INPUTS})");
            return Err(CliError::usage(message));
        }
        match self.inputs.iter().find(|(_, bytes)| bytes.len() > MAX_ARTIFACT_BYTES) {
            Some((name, _)) => Err(CliError::usage(format!(
                "input `{name}` is larger than {} MiB",
                MAX_ARTIFACT_BYTES >> 20
            ))),
            None => Ok(self),
        }
    }
}

/// The modules that programs can import in an image. Fails without the image, because nothing could
/// run.
fn packages(context: &CommandContext, image: &str) -> Result<Vec<String>, CliError> {
    let images = ImageStore::at(isolation::images(&context.loaded));
    Ok(images.find(image).map_err(isolation::failure)?.python_modules)
}

/// Parses `--expect`.
fn expectation(argument: &str) -> Result<OutputExpectation, CliError> {
    if let Some(text) = argument.strip_prefix("text:") {
        return Ok(OutputExpectation::Text { text: text.to_owned() });
    }
    if let Some(path) = argument.strip_prefix("file:") {
        return exact_text(Path::new(path));
    }
    if let Some(path) = argument.strip_prefix("schema:") {
        return Ok(OutputExpectation::Schema { schema: files::read_schema(Path::new(path))? });
    }
    if let Some(pattern) = argument.strip_prefix("regex:") {
        return regex(pattern);
    }
    let path = Path::new(argument);
    if !path.is_file() {
        return regex(argument);
    }
    if is_schema_file(path) {
        return Ok(OutputExpectation::Schema { schema: files::read_schema(path)? });
    }
    exact_text(path)
}

fn exact_text(path: &Path) -> Result<OutputExpectation, CliError> {
    let text = fs_err::read_to_string(path)
        .map_err(|error| CliError::usage("cannot read the expected output").with_source(error))?;
    Ok(OutputExpectation::Text { text })
}

fn regex(expression: &str) -> Result<OutputExpectation, CliError> {
    let pattern = expression.parse().map_err(|error: moothall_core::program::InvalidPattern| {
        CliError::usage("invalid regular expression in `--expect`").with_source(error).with_hint(
            "use the prefix `text:` for literal text; see `moothall run --help` for other forms",
        )
    })?;
    Ok(OutputExpectation::Pattern { pattern })
}

/// `*.schema.json` is a schema; other `*.json` files are if they contain schema keywords.
fn is_schema_file(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let Some(name) = name.filter(|name| name.ends_with(".json")) else { return false };
    if name.ends_with(".schema.json") {
        return true;
    }
    let value: Option<Value> =
        fs_err::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(Value::Object(object)) = value else { return false };
    let types = ["object", "array", "string", "number", "integer", "boolean", "null"];
    object.contains_key("$schema")
        || object.get("type").and_then(Value::as_str).is_some_and(|one| types.contains(&one))
        || ["anyOf", "oneOf", "allOf"]
            .iter()
            .any(|key| object.get(*key).is_some_and(Value::is_array))
}

#[cfg(test)]
#[path = "program_request_tests.rs"]
mod tests;
