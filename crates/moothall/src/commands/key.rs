//! `moothall key set|list|test|remove`: API keys. A key is never printed.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read as _};
use std::time::Instant;

use moothall_core::ErrorCode;
use moothall_core::model::{CallPurpose, FailureKind, ModelFailure, ModelName, ModelRequest};
use moothall_core::text::sanitize_line;
use moothall_models::catalog::ModelProvider;
use moothall_models::{ApiKey, KeyTestResult, RecordingMode, RunLedger, test_key};
use serde_json::{Value, json};

use super::{InterruptibleResult, block_on, prompt};
use crate::args::{GlobalArgs, KeyCommand, SetKeyArgs, TestKeyArgs};
use crate::context::CommandContext;
use crate::error::{CliError, CliExit};
use crate::keys::{self, KeySource, KeyStorage, KeyStorageChoice};
use crate::logging;
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};

/// Limit of a key on standard input.
const MAX_INPUT_BYTES: u64 = 64 * 1024;

/// Enough for a reasoning model to answer with one word.
const PROBE_TOKENS: u32 = 512;

pub(crate) fn run(global: &GlobalArgs, command: &KeyCommand) -> anyhow::Result<CliExit> {
    let context = CommandContext::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    match command {
        KeyCommand::Set(args) => set(&context, args),
        KeyCommand::List { json } => list(&context, *json),
        KeyCommand::Test(args) => test(&context, args),
        KeyCommand::Remove { provider } => remove(&context, provider),
    }
}

fn set(context: &CommandContext, args: &SetKeyArgs) -> anyhow::Result<CliExit> {
    let name = known_secret(context, &args.provider)?;
    let from_stdin = match args.input.as_deref() {
        None => !io::stdin().is_terminal(),
        Some("-") => true,
        // Never quoted: it is probably the key.
        Some(_) => {
            return Err(CliError::usage(
                "an API key does not belong on the command line, where other users can see it",
            )
            .with_hint(format!("run `moothall key set {name}` and paste the key"))
            .into());
        }
    };
    let text = if from_stdin { read_stdin()? } else { ask_for_key(&name)? };
    let Some(key) = keys::to_secret(&text, "the input")? else {
        return Err(CliError::usage("the key is empty; nothing was stored").into());
    };
    let choice = if args.file { KeyStorageChoice::File } else { KeyStorageChoice::Automatic };
    terminal::print(&store(context, &name, &key, choice)?)?;
    Ok(CliExit::Fine)
}

/// The name of a provider, or `notify.NAME` for the password of a receiver of notices.
fn known_secret(context: &CommandContext, name: &str) -> Result<String, CliError> {
    let Some(target) = name.strip_prefix(keys::NOTIFY_PREFIX) else {
        return Ok(context.known_provider(name)?.name.clone());
    };
    match context.loaded.resolved.config.notify.target.contains_key(target) {
        true => Ok(name.to_owned()),
        false => Err(CliError::usage(format!("unknown target `{target}`"))
            .with_hint(format!("add the section `[notify.target.{target}]` first"))),
    }
}

/// Stores a key and says where. Also used by `moothall init`.
pub(crate) fn store(
    context: &CommandContext,
    provider: &str,
    key: &ApiKey,
    choice: KeyStorageChoice,
) -> Result<String, CliError> {
    let keys_file = context.loaded.locations.keys_file();
    let environment = &context.loaded.environment;
    let (storage, problem) = keys::store_key(environment, &keys_file, provider, key, choice)?;
    let mut text = match storage {
        KeyStorage::Keychain => format!("stored the key of {provider} in the keychain\n"),
        KeyStorage::File => {
            let shown = keys_file.display();
            format!("stored the key of {provider} in {shown} (only you can read it)\n")
        }
    };
    if let Some(problem) = problem {
        let problem = sanitize_line(&problem);
        let _ = writeln!(text, "{YELLOW}{problem}{YELLOW:#}");
    }
    // Looked up again, because another place may come first.
    let hidden = match context.keys.source(provider) {
        Some(KeySource::Environment(name)) => Some(format!("the variable {name}")),
        Some(KeySource::DotEnv(name)) => Some(format!("{name} in .env")),
        Some(KeySource::Command) => Some(format!("`provider.{provider}.key_command`")),
        Some(KeySource::KeyFile(path)) if *path != keys_file => {
            Some(format!("`provider.{provider}.key_file`"))
        }
        _ => None,
    };
    match hidden {
        Some(hidden) => {
            let _ = writeln!(text, "{YELLOW}not used yet: {hidden} comes first{YELLOW:#}");
        }
        None => {
            let test = match provider.strip_prefix(keys::NOTIFY_PREFIX) {
                Some(target) => format!("notify test {target}"),
                None => format!("key test {provider}"),
            };
            let _ = writeln!(text, "{DIM}test it: moothall {test}{DIM:#}");
        }
    }
    Ok(text)
}

fn read_stdin() -> Result<String, CliError> {
    let unreadable =
        |error: io::Error| CliError::failed("cannot read standard input").with_source(error);
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(CliError::usage("standard input is too large for an API key"));
    }
    String::from_utf8(bytes).map_err(|_| CliError::usage("the API key is not valid UTF-8"))
}

fn ask_for_key(provider: &str) -> Result<String, CliError> {
    let question = format!("API key of {provider} (not shown): ");
    match prompt::ask_hidden(&question) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(CliError::new(CliExit::Cancelled, "cancelled; nothing was stored")),
        Err(error) => Err(CliError::failed("cannot read from the terminal")
            .with_source(error)
            .with_hint(format!("pipe the key: `moothall key set {provider} < FILE`"))),
    }
}

fn list(context: &CommandContext, as_json: bool) -> anyhow::Result<CliExit> {
    if as_json {
        let rows: Vec<Value> = context
            .catalog
            .providers()
            .map(|provider| {
                let source = context.keys.source(&provider.name);
                json!({
                    "provider": provider.name,
                    "needed": provider.needs_key(),
                    "present": source.is_some(),
                    "source": source.map(KeySource::kind),
                    "detail": source.map(KeySource::to_string),
                })
            })
            .collect();
        terminal::print(&format!("{:#}\n", json!({ "keys": rows })))?;
    } else {
        terminal::print(&key_table(context))?;
    }
    Ok(CliExit::Fine)
}

/// One line for each provider.
fn key_table(context: &CommandContext) -> String {
    let mut text = format!("{BOLD}{:15}  key{BOLD:#}\n", "provider");
    for provider in context.catalog.providers() {
        let name = sanitize_line(&provider.name);
        // Writing to a String cannot fail.
        let _ = match (context.keys.source(&provider.name), provider.needs_key()) {
            (Some(source), _) => {
                writeln!(text, "{name:15}  {GREEN}{}{GREEN:#}", source_label(source))
            }
            (None, true) => writeln!(text, "{name:15}  none: moothall key set {name}"),
            (None, false) => writeln!(text, "{name:15}  {DIM}not needed{DIM:#}"),
        };
    }
    text
}

/// The source of a key for people.
pub(crate) fn source_label(source: &KeySource) -> String {
    let detail = sanitize_line(&source.to_string());
    match source {
        KeySource::Environment(_) | KeySource::AwsVariables => {
            format!("environment variable {detail}")
        }
        KeySource::KeyFile(_) => format!("file {detail}"),
        KeySource::Keychain => "keychain".to_owned(),
        KeySource::DotEnv(_) | KeySource::Command => detail,
    }
}

fn test(context: &CommandContext, args: &TestKeyArgs) -> anyhow::Result<CliExit> {
    let provider = context.known_provider(&args.provider)?;
    context.check_provider(provider)?;
    if let Some(model) = args.model.as_ref().filter(|model| model.provider() != provider.name) {
        return Err(CliError::usage(format!("`{model}` is not a model of {}", provider.name))
            .with_hint(format!("pass `--model {}/…`", provider.name))
            .into());
    }
    let started = Instant::now();
    let tested = block_on(test_provider(context, provider, args.model.as_ref()))?;
    let InterruptibleResult::Done(tested) = tested else {
        return Err(CliError::new(CliExit::Cancelled, "cancelled").into());
    };
    let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let name = &provider.name;
    let source = context.keys.source(name);
    let proof = match tested? {
        Ok(proof) => proof,
        Err(failure) => {
            if args.json {
                let report = json!({ "provider": name, "accepted": false, "failure": failure });
                terminal::print(&format!("{report:#}\n"))?;
            }
            return Err(test_failure(context, provider, &failure).into());
        }
    };
    if args.json {
        let models = match proof {
            KeyProof::Models(models) => models,
            KeyProof::Answer(_) => None,
        };
        let report = json!({
            "provider": name,
            "accepted": true,
            "source": source.map(KeySource::kind),
            "models": models,
            "latency_ms": latency_ms,
        });
        terminal::print(&format!("{report:#}\n"))?;
        return Ok(CliExit::Fine);
    }
    let key = source.map_or_else(
        || "without a key".to_owned(),
        |source| format!("with the key from {}", sanitize_line(&source.to_string())),
    );
    let proof = match proof {
        KeyProof::Models(Some(models)) => format!(": {models} models"),
        KeyProof::Models(None) => String::new(),
        KeyProof::Answer(model) => format!(": {model} answered"),
    };
    terminal::print(&format!(
        "{GREEN}ok{GREEN:#}  {name} answered {key}{proof}, {latency_ms} ms\n"
    ))?;
    Ok(CliExit::Fine)
}

/// What shows that a key works.
enum KeyProof {
    /// The list of models, with their number.
    Models(Option<usize>),
    /// The answer of a model.
    Answer(ModelName),
}

/// Lists the models, which costs nothing, or makes one small call where that is not possible.
async fn test_provider(
    context: &CommandContext,
    provider: &ModelProvider,
    model: Option<&ModelName>,
) -> Result<Result<KeyProof, ModelFailure>, CliError> {
    if model.is_none() {
        let secrets = context.keys.secrets(&provider.name);
        match test_key(provider, secrets, &context.connections).await {
            Ok(KeyTestResult::Accepted { models }) => return Ok(Ok(KeyProof::Models(models))),
            Ok(KeyTestResult::NotSupported) => {}
            Err(failure) => return Ok(Err(failure)),
        }
    }
    let default = provider.default_model.as_ref();
    let default = default.and_then(|model| format!("{}/{model}", provider.name).parse().ok());
    let Some(model) = model.cloned().or(default) else {
        return Err(CliError::usage(format!("{} does not list its models", provider.name))
            .with_hint(format!("pass `--model {}/…` to make one small call", provider.name)));
    };
    let gateway = context.gateway(&model, RecordingMode::Off)?;
    let question = "Answer with the word ok and nothing else.";
    let mut request = ModelRequest::ask(model.clone(), question, PROBE_TOKENS);
    request.purpose = CallPurpose::Probe;
    let ledger = RunLedger::new(context.budget());
    let report = gateway.call(&request, &ledger, None).await;
    Ok(report.result.map(|_| KeyProof::Answer(model)))
}

fn test_failure(
    context: &CommandContext,
    provider: &ModelProvider,
    failure: &ModelFailure,
) -> CliError {
    let name = &provider.name;
    let message = match (failure.kind, context.keys.source(name)) {
        (FailureKind::Auth, Some(source)) if failure.status.is_some() => {
            format!("{name} rejected the key from {source} ({failure})")
        }
        _ => format!("{name} did not accept the test ({failure})"),
    };
    let error = CliError::failed(message);
    match failure.kind {
        FailureKind::Auth if failure.status.is_some() => error
            .with_hint(format!("check the key, or replace it with `moothall key set {name}`"))
            .with_code(ErrorCode::KeyMissing),
        FailureKind::Transport | FailureKind::TimedOut => {
            error.with_hint(format!("check that {} is reachable", provider.base_url))
        }
        _ => error,
    }
}

fn remove(context: &CommandContext, provider: &str) -> anyhow::Result<CliExit> {
    let keys_file = context.loaded.locations.keys_file();
    let name = known_secret(context, provider)?;
    let Some(storage) = keys::remove_key(&keys_file, &name)? else {
        let error = CliError::usage(format!("no key of {name} is stored"));
        return Err(match context.keys.source(&name) {
            Some(source) => error.with_hint(format!("its key comes from {source}")),
            None => error.with_hint("`moothall key list` shows all keys"),
        }
        .into());
    };
    let place = match storage {
        KeyStorage::Keychain => "the keychain".to_owned(),
        KeyStorage::File => keys_file.display().to_string(),
    };
    terminal::print(&format!("removed the key of {name} from {place}\n"))?;
    Ok(CliExit::Fine)
}
