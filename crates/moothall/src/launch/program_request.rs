//! A program run as it is asked for, and the run that follows from it.

use std::collections::BTreeMap;
use std::path::Path;

use moothall_core::model::{ModelName, OutputSchema};
use moothall_core::reflexion::{AnswerForm, Contract, Expectation, Pattern, ReflexionInput};
use moothall_core::sandbox::{GuestPath, Limits};
use moothall_core::{IsolationChoice, ProgramSpec, RunSettings};
use moothall_sandbox::image::ImageStore;
use moothall_store::MAX_ARTIFACT_BYTES;
use serde::Deserialize;
use serde_json::Value;

use super::{program_workflow, set_budget};
use crate::args::RunArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::{artifacts, files, isolation};

/// The longest task or request that is read from a pipe.
const MAX_STDIN_BYTES: u64 = 64 * 1024 * 1024;

/// The most files that a program is given.
const MOST_INPUTS: usize = 100;

const TASK_HINT: &str = "write it after the command, `moothall run \"…\"`, or pipe it in";

/// A program as a command or an HTTP request asks for it. Files are read; the model is not looked up yet.
#[derive(Debug)]
pub(crate) struct ProgramRequest {
    pub(crate) task: String,
    pub(crate) model: Option<ModelName>,
    pub(crate) inputs: BTreeMap<GuestPath, Vec<u8>>,
    pub(crate) contract: Contract,
    pub(crate) attempts: u32,
    pub(crate) image: String,
    pub(crate) limits: Limits,
    pub(crate) settings: RunSettings,
}

/// The object that `--stdio` reads. It names no files: whoever sends it need not be who started the
/// program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    task: String,
    #[serde(default)]
    model: Option<ModelName>,
    #[serde(default)]
    inputs: BTreeMap<GuestPath, String>,
    #[serde(default)]
    expect: Option<Expected>,
    /// The text of the script.
    #[serde(default)]
    check: Option<String>,
    #[serde(default)]
    leaves: Vec<GuestPath>,
    #[serde(default)]
    attempts: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Expected {
    Text(String),
    Regex(Pattern),
    Schema(Value),
}

impl Expected {
    fn expectation(self) -> Result<Expectation, CliError> {
        Ok(match self {
            Self::Text(text) => Expectation::Text { text },
            Self::Regex(pattern) => Expectation::Pattern { pattern },
            Self::Schema(schema) => {
                let schema = OutputSchema::parse("output", &schema.to_string())
                    .map_err(|error| CliError::usage(error.to_string()))?;
                Expectation::Schema { schema }
            }
        })
    }
}

impl ProgramRequest {
    /// What `moothall run` is asked for.
    pub(crate) fn from_args(args: &RunArgs) -> Result<Self, CliError> {
        let request = if args.stdio { Self::from_stdin(args) } else { Self::from_flags(args) }?;
        request.bounded()
    }

    /// The configuration that holds for it.
    pub(crate) fn context(&self, config: Option<&Path>) -> Result<Context, CliError> {
        super::context(config, &self.settings, self.model.as_ref())
    }

    /// Chooses the model, and refuses what cannot run.
    pub(crate) fn spec(&self, context: &Context) -> Result<ProgramSpec, CliError> {
        let model = context.model(self.model.as_ref())?;
        let card = context.catalog.card(&model);
        let mut input = ReflexionInput::new(&self.task, model.clone(), &self.image);
        input.max_tokens = input.max_tokens.min(card.max_output.unwrap_or(u32::MAX));
        // Models that are not made for JSON write working programs in a block and junk inside JSON.
        if !card.structured && !model.is_demo() {
            input.answer_form = AnswerForm::Fenced;
        }
        input.packages = packages(context, &self.image)?;
        input.limits = self.limits;
        input.attempts = self.attempts;
        input.contract = self.contract.clone();
        input.inputs = artifacts::references(&self.inputs);
        program_workflow(input.clone())?;
        let mut settings = self.settings.clone();
        set_budget(&mut settings, context.budget());
        Ok(ProgramSpec { input, settings })
    }

    fn settings(args: &RunArgs) -> Result<RunSettings, CliError> {
        Ok(RunSettings {
            restate: args.engine.restate(),
            isolation: args.sandbox.isolation.map(IsolationChoice::from),
            allow_shared_kernel: args.sandbox.allow_shared_kernel,
            budget_micro_usd: args.calls.budget,
            budget_tokens: args.calls.budget_tokens,
            base_url: args.model.base_url.clone(),
            record: files::whole(args.calls.replies.record.as_deref())?,
            replay: files::whole(args.calls.replies.replay.as_deref())?,
            output: files::whole(args.output.as_deref())?,
            ..RunSettings::default()
        })
    }

    /// What the flags say.
    fn from_flags(args: &RunArgs) -> Result<Self, CliError> {
        let task = files::words_or_stdin(args.task.as_deref(), "task", TASK_HINT, MAX_STDIN_BYTES)?;
        let check = args
            .check
            .as_deref()
            .map(fs_err::read_to_string)
            .transpose()
            .map_err(|error| CliError::usage("the check cannot be read").with_source(error))?;
        let contract = Contract {
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

    /// What the object on standard input says; flags stand in for what it leaves out.
    fn from_stdin(args: &RunArgs) -> Result<Self, CliError> {
        let text =
            files::words_or_stdin(None, "request", "it is one JSON object", MAX_STDIN_BYTES)?;
        let request: Request = serde_json::from_str(&text).map_err(|error| {
            CliError::usage("the request on standard input cannot be understood")
                .with_source(error)
                .with_hint("`moothall run --help` shows one")
        })?;
        let contract = Contract {
            expect: request.expect.map(Expected::expectation).transpose()?,
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

    fn bounded(self) -> Result<Self, CliError> {
        if self.inputs.len() > MOST_INPUTS {
            let many = self.inputs.len();
            let words = format!("{many} inputs are too many; at most {MOST_INPUTS} are given");
            return Err(CliError::usage(words));
        }
        match self.inputs.iter().find(|(_, bytes)| bytes.len() > MAX_ARTIFACT_BYTES) {
            Some((name, _)) => Err(CliError::usage(format!(
                "the input `{name}` is larger than {} MiB",
                MAX_ARTIFACT_BYTES >> 20
            ))),
            None => Ok(self),
        }
    }
}

/// What programs can import in an image. Without the image nothing can run.
fn packages(context: &Context, image: &str) -> Result<Vec<String>, CliError> {
    let images = ImageStore::at(isolation::images(&context.loaded));
    Ok(images.find(image).map_err(isolation::failure)?.python_modules)
}

/// What `--expect` means.
fn expectation(words: &str) -> Result<Expectation, CliError> {
    if let Some(text) = words.strip_prefix("text:") {
        return Ok(Expectation::Text { text: text.to_owned() });
    }
    if let Some(path) = words.strip_prefix("file:") {
        return exact_text(Path::new(path));
    }
    if let Some(path) = words.strip_prefix("schema:") {
        return Ok(Expectation::Schema { schema: files::read_schema(Path::new(path))? });
    }
    if let Some(pattern) = words.strip_prefix("regex:") {
        return regex(pattern);
    }
    let path = Path::new(words);
    if !path.is_file() {
        return regex(words);
    }
    if holds_schema(path) {
        return Ok(Expectation::Schema { schema: files::read_schema(path)? });
    }
    exact_text(path)
}

fn exact_text(path: &Path) -> Result<Expectation, CliError> {
    let text = fs_err::read_to_string(path)
        .map_err(|error| CliError::usage("what is expected cannot be read").with_source(error))?;
    Ok(Expectation::Text { text })
}

fn regex(words: &str) -> Result<Expectation, CliError> {
    let pattern = words.parse().map_err(|error: moothall_core::reflexion::InvalidPattern| {
        CliError::usage("what is expected cannot be used").with_source(error).with_hint(
            "`text:` before it takes it word for word; `moothall run --help` shows what else there is",
        )
    })?;
    Ok(Expectation::Pattern { pattern })
}

/// A file called `….schema.json` says that it is a schema; another `….json` is one if it has the
/// words of one.
fn holds_schema(path: &Path) -> bool {
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
