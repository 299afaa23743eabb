//! `moothall init`: guides a new user from installation to a finished demo.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use moothall_core::MicroUsd;
use moothall_core::model::ModelName;
use moothall_core::text;
use moothall_models::connection::is_loopback;
use moothall_models::{RecordingMode, RunLedger, ServedModel, list_models};
use moothall_sources::edgar::SecContact;
use reqwest::Url;

use super::config_edit::{self, ConfigFile, InitAnswers, OwnServer};
use super::key::{self, source_label};
use super::{InterruptibleResult, failure, interruptible, models, prompt, runtime};
use crate::args::{Cli, GlobalArgs, InitArgs};
use crate::context::{CommandContext, ConfigFlags};
use crate::error::{CliError, CliExit};
use crate::keys::{self, KeyStorageChoice};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};
use crate::work_progress::WorkProgress;
use crate::{isolation, logging};

/// How often a question is repeated after an invalid answer.
const TRIES: usize = 3;

/// Provider name for the user's own server.
const OWN_PROVIDER: &str = "local";
const OWN_ADDRESS: &str = "http://127.0.0.1:8080/v1";

/// Image and time limit for the sandbox test.
const IMAGE: &str = "python";
const SANDBOX_TEST_TIMEOUT: Duration = Duration::from_secs(45);

pub(crate) fn run(global: &GlobalArgs, args: &InitArgs) -> anyhow::Result<CliExit> {
    if !args.yes && !prompt::is_interactive() {
        return Err(CliError::usage("`moothall init` asks questions and needs a terminal")
            .with_hint("run it in a terminal, or accept all defaults with `--yes`")
            .into());
    }
    let context = CommandContext::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let file = ConfigFile::open(&context.loaded)?;
    let runtime = runtime()?;
    let answered = runtime.block_on(async {
        show_text(&format!("{BOLD}1 of 5  Model{BOLD:#}\n"));
        let (model, server) = model(&context, args.yes).await?;
        show_text(&format!("\n{BOLD}2 of 5  Contact address for the SEC{BOLD:#}\n"));
        let contact = contact(&context, args.yes).await?;
        show_text(&format!("\n{BOLD}3 of 5  Sandboxes{BOLD:#}\n"));
        test_sandboxes(&context).await;
        let answers = InitAnswers { model: changed_model(&context, &model), server, contact };
        write(file, &answers, args.yes).await?;
        let base_url = answers.server.map(|server| server.base_url);
        let tested = TestedModel { model, base_url };
        show_text(&format!("\n{BOLD}4 of 5  Demo{BOLD:#}\n"));
        if args.no_demo {
            return Ok((false, tested));
        }
        show_text("HLXI is a fictional company, and the demo model makes no API calls: this takes seconds and is free.\n");
        let demonstrate = match args.yes {
            true => true,
            false => {
                let answer = prompt::confirm_default_yes("Run the demo now?").await;
                answer.ok_or_else(cancelled_error)?
            }
        };
        Ok::<_, CliError>((demonstrate, tested))
    });
    drop(runtime);
    let (demonstrate, tested) = answered?;
    let memo = context.loaded.locations.folders.data.join("demonstration.md");
    if demonstrate {
        run_demo(global, &memo)?;
        show_text(&format!("\n{GREEN}Done.{GREEN:#} The memo of the demo: {}\n", memo.display()));
    } else {
        show_text("\nTo run the demo later: moothall consult HLXI --model demo\n");
    }
    show_text(&format!("\n{BOLD}5 of 5  First call{BOLD:#}\n"));
    match args.no_call {
        true => show_text(&format!("Skipped. {}\n", tested.later())),
        false => self::runtime()?.block_on(tested.call(global, args.yes))?,
    }
    show_text("\n");
    show_text(
        "For a real company: moothall consult AAPL --estimate   For all commands: moothall help\n",
    );
    Ok(CliExit::Fine)
}

/// The model to write; `None` keeps a configured list that starts with it.
fn changed_model(context: &CommandContext, model: &ModelName) -> Option<ModelName> {
    let configured = context.loaded.resolved.config.model.as_ref();
    let configured = configured.and_then(|models| models.parse().ok());
    let is_kept =
        configured.is_some_and(|models| models.first() == model && !models.fallbacks().is_empty());
    (!is_kept).then(|| model.clone())
}

/// The model that a user chose.
struct TestedModel {
    model: ModelName,
    /// The URL of the user's own server.
    base_url: Option<String>,
}

impl TestedModel {
    fn later(&self) -> String {
        format!("To test the model later: moothall models --check {}", self.model)
    }

    /// Makes one short call and shows latency, tokens and cost. A failure is shown and does not fail
    /// `init`: the configuration is complete.
    async fn call(&self, global: &GlobalArgs, yes: bool) -> Result<(), CliError> {
        let Self { model, base_url } = self;
        if model.is_demo() {
            show_text("Skipped: the demo model makes no API calls.\n");
            return Ok(());
        }
        let mut flags = ConfigFlags::default();
        if let Some(base_url) = base_url {
            flags.set_base_url(Some(model), "--model", base_url)?;
        }
        // Read again, because the file has changed.
        let context = CommandContext::load(global.config.as_deref(), flags.into_table())?;
        let gateway = match context.gateway(model, RecordingMode::Off) {
            Ok(gateway) => gateway,
            Err(refused) => {
                show_text(&format!("Skipped: {}. {}\n", refused.message, self.later()));
                return Ok(());
            }
        };
        let request = models::probe_request(model);
        let cost = match gateway.max_cost(&request).usd {
            Some(MicroUsd::ZERO) => None,
            Some(most) => Some(format!("costs at most {most}")),
            None => Some("has an unknown price".to_owned()),
        };
        if let Some(cost) = cost.filter(|_| !yes) {
            let question = format!("One short call to {model} {cost}. Make it now?");
            let answer = prompt::confirm_default_yes(&question).await;
            if !answer.ok_or_else(cancelled_error)? {
                show_text(&format!("Skipped. {}\n", self.later()));
                return Ok(());
            }
        }
        let progress = WorkProgress::start(&format!("waiting for {model}"), false);
        let ledger = RunLedger::new(context.budget());
        let called = interruptible(gateway.call(&request, &ledger, None)).await;
        drop(progress);
        let InterruptibleResult::Done(report) = called else { return Err(cancelled_error()) };
        match report.result {
            Ok(reply) => show_text(&models::answer_line(model, &reply, report.timing)),
            Err(failed) => {
                let error = failure::of_call(&context, model, &failed);
                show_text(&format!("{YELLOW}{}{YELLOW:#}\n", text::sanitize_line(&error.message)));
                let hint = error.hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
                show_text(&format!("{}{}\n", text::sanitize(&hint), self.later()));
            }
        }
        Ok(())
    }
}

fn show_text(text: &str) {
    terminal::show(text);
}

fn cancelled_error() -> CliError {
    CliError::new(CliExit::Cancelled, "cancelled; changes that were already written are kept")
}

/// Asks for the model, for the URL of the user's own server, and for a missing API key.
async fn model(
    context: &CommandContext,
    yes: bool,
) -> Result<(ModelName, Option<OwnServer>), CliError> {
    let demo = || ModelName::DEMO.parse::<ModelName>().map_err(usage_error);
    // The configured model, else one with a key, else the demo model.
    let default = match context.model(None) {
        Ok(models) => models.first().clone(),
        Err(_) => demo()?,
    };
    if yes {
        show_text(&format!("{default}\n"));
        return Ok((default, None));
    }
    show_text(&format!(
        "  1  demo: scripted answers, no API key, network or cost\n  \
           2  your own server: llama.cpp, vLLM, LM Studio or another OpenAI-compatible server\n  \
           3  a provider, with your API key:\n{}",
        provider_list(context)
    ));
    for _ in 0..TRIES {
        let prompt_text = format!("1, 2, 3 or provider/name [{default}] ");
        let answer = prompt::ask_line(&prompt_text).await.ok_or_else(cancelled_error)?;
        match answer.as_str() {
            "" => return Ok((default, None)),
            "1" => return Ok((demo()?, None)),
            "2" => return own_server(context).await,
            "3" => match provider(context).await? {
                Some(model) => return Ok((model, None)),
                None => continue,
            },
            named => match named.parse() {
                Ok(model) => {
                    offer_key(context, &model).await?;
                    return Ok((model, None));
                }
                Err(error) => show_invalid(&format!("{error}")),
            },
        }
    }
    show_text(&format!("using {default}\n"));
    Ok((default, None))
}

fn provider_list(context: &CommandContext) -> String {
    let lines = context.catalog.providers().map(|provider| {
        let state = match context.keys.source(&provider.name) {
            Some(source) => format!("key from {}", source_label(source)),
            None if provider.is_on_this_machine() => "on this machine, needs no key".to_owned(),
            None => "no key yet".to_owned(),
        };
        format!("     {DIM}{:<15} {state}{DIM:#}\n", provider.name)
    });
    lines.collect()
}

async fn own_server(context: &CommandContext) -> Result<(ModelName, Option<OwnServer>), CliError> {
    let prompt_text = format!("Server URL [{OWN_ADDRESS}] ");
    let mut address = prompt::ask_line(&prompt_text).await.ok_or_else(cancelled_error)?;
    for _ in 1..TRIES {
        if address.is_empty() || is_usable(&address) {
            break;
        }
        show_invalid("a server URL starts with http:// or https:// and contains no password");
        address = prompt::ask_line(&prompt_text).await.ok_or_else(cancelled_error)?;
    }
    if !is_usable(&address) {
        address = OWN_ADDRESS.to_owned();
    }
    let served = served_models(context, &address).await;
    let default = served.first().map_or("default", |one| one.name.as_str());
    let name = prompt::ask_line(&format!("Model name on this server [{default}] ")).await;
    let name = name.ok_or_else(cancelled_error)?;
    let name = if name.is_empty() { default } else { &name };
    let model = format!("{OWN_PROVIDER}/{name}").parse().map_err(usage_error)?;
    let window = served.iter().find(|one| one.name == name).and_then(|one| one.context);
    if let Some(window) = window {
        show_text(&format!("{name} reads {window} tokens at a time; prompts are fitted to that\n"));
    }
    show_text(&format!("{DIM}test it: moothall models --check {model}{DIM:#}\n"));
    let is_free = Url::parse(&address).is_ok_and(|url| is_loopback(&url));
    Ok((model, Some(OwnServer { base_url: address, context: window, is_free })))
}

/// What the server offers. A server that is not running yet is no reason to stop.
async fn served_models(context: &CommandContext, address: &str) -> Vec<ServedModel> {
    let served = match list_models(address, &context.connections).await {
        Ok(served) => served,
        Err(failure) => {
            let detail = text::sanitize_line(&failure.detail);
            show_text(&format!("{YELLOW}the server does not answer yet: {detail}{YELLOW:#}\n"));
            return Vec::new();
        }
    };
    let served = models::usable_models(OWN_PROVIDER, served);
    if served.len() > 1 {
        show_text(&format!("models on this server: {}\n", models::served_names(&served)));
    }
    served
}

/// The same rules as in the configuration.
fn is_usable(address: &str) -> bool {
    let plain = !address.contains(['@', '?', '#', ' ', '"', '\\']);
    plain
        && ["http://", "https://"]
            .iter()
            .any(|scheme| address.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

async fn provider(context: &CommandContext) -> Result<Option<ModelName>, CliError> {
    let name = prompt::ask_line("Provider [anthropic] ").await.ok_or_else(cancelled_error)?;
    let name = if name.is_empty() { "anthropic" } else { &name };
    let known = context.catalog.provider(name);
    let Some(model) = known.and_then(|provider| provider.default_model.as_deref()) else {
        let names: Vec<&str> = context.catalog.providers().map(|one| one.name.as_str()).collect();
        show_invalid(&format!("known providers: {}", names.join(", ")));
        return Ok(None);
    };
    let model: ModelName = format!("{name}/{model}").parse().map_err(usage_error)?;
    offer_key(context, &model).await?;
    Ok(Some(model))
}

/// Shows where the key of the model comes from, and offers to store a missing one.
async fn offer_key(context: &CommandContext, model: &ModelName) -> Result<(), CliError> {
    let name = model.provider();
    let Some(provider) = context.catalog.provider(name) else {
        show_text(&format!("{model}\n"));
        return Ok(());
    };
    if let Some(source) = context.keys.source(name) {
        show_text(&format!("{model}; the API key comes from {}\n", source_label(source)));
        return Ok(());
    }
    show_text(&format!("{model}\n"));
    if !provider.needs_key() {
        return Ok(());
    }
    let question = format!("No API key of {name} yet. Enter it now?");
    if !prompt::confirm_default_yes(&question).await.ok_or_else(cancelled_error)? {
        show_text(&format!("{YELLOW}later: moothall key set {name}{YELLOW:#}\n"));
        return Ok(());
    }
    let typed = prompt::ask_hidden(&format!("API key of {name} (not shown): "));
    let typed = typed
        .map_err(|error| CliError::failed("cannot read from the terminal").with_source(error))?
        .ok_or_else(cancelled_error)?;
    match keys::to_secret(&typed, "the input") {
        Ok(Some(key)) => {
            show_text(&key::store(context, name, &key, KeyStorageChoice::Automatic)?);
        }
        Ok(None) => show_text(&format!("{YELLOW}later: moothall key set {name}{YELLOW:#}\n")),
        Err(error) => show_invalid(&error.message),
    }
    Ok(())
}

/// Asks for the contact address in requests to the SEC.
async fn contact(context: &CommandContext, yes: bool) -> Result<Option<String>, CliError> {
    let current = context.loaded.resolved.config.evidence.contact.clone();
    let shown = current.as_deref().unwrap_or("none");
    show_text(
        "The SEC requires a contact address with every request for filings. Your address is sent to the SEC\n\
         only. Without it, you cannot analyze real companies.\n",
    );
    if yes {
        show_text(&format!("{shown}\n"));
        return Ok(None);
    }
    for _ in 0..TRIES {
        let answer = prompt::ask_line(&format!("Email address [{shown}] "))
            .await
            .ok_or_else(cancelled_error)?;
        if answer.is_empty() {
            return Ok(None);
        }
        match SecContact::parse(&answer) {
            Ok(contact) => return Ok(Some(contact.to_string())),
            Err(_) => show_invalid("expected an address such as ada@example.com"),
        }
    }
    Ok(None)
}

/// A two-line version of `moothall doctor`.
async fn test_sandboxes(context: &CommandContext) {
    let found = async {
        let policy = isolation::policy(&context.loaded, None, false)?;
        let host = isolation::host(&context.loaded)?;
        host.images().find(IMAGE).map_err(isolation::failure)?;
        show_text(&format!("{DIM}testing sandboxes …{DIM:#}\n"));
        let _progress = WorkProgress::start("starting a sandbox and trying to break out", false);
        host.choose(&policy, IMAGE).await.map_err(isolation::failure)
    };
    match tokio::time::timeout(SANDBOX_TEST_TIMEOUT, found).await {
        Ok(Ok(chosen)) => {
            let (engine, class) = (&chosen.report.engine, chosen.report.class);
            show_text(&format!(
                "Programs and debates run in {engine} sandboxes (isolation class {class}).\n"
            ));
            show_text(&format!("{DIM}details: moothall doctor{DIM:#}\n"));
        }
        Ok(Err(error)) => {
            show_text("No sandbox is set up: consultations run inside the moothall process.\n");
            let why = error.hint.unwrap_or(error.message);
            show_text(&format!("{DIM}to run programs (moothall run): {why}{DIM:#}\n"));
        }
        Err(_) => {
            show_text("Testing sandboxes takes too long on this machine and was skipped.\n");
            show_text(&format!("{DIM}test them later: moothall doctor{DIM:#}\n"));
        }
    }
}

/// Shows the changes, asks for confirmation, and writes them.
async fn write(file: ConfigFile, answers: &InitAnswers, yes: bool) -> Result<(), CliError> {
    let change = file.change(|before| config_edit::with(before, answers))?;
    show_text(&format!("\n{}", change.preview()));
    if change.is_empty() {
        return Ok(());
    }
    if !yes
        && !prompt::confirm_default_yes("Write these changes?").await.ok_or_else(cancelled_error)?
    {
        show_text("Nothing was written.\n");
        return Ok(());
    }
    change.write()
}

/// Runs the command that the user would type.
fn run_demo(global: &GlobalArgs, memo: &Path) -> anyhow::Result<()> {
    if let Some(folder) = memo.parent() {
        fs_err::create_dir_all(folder)?;
    }
    show_text(&format!("{DIM}$ moothall consult HLXI --model demo{DIM:#}\n"));
    let argv = ["moothall", "consult", "HLXI", "--model", "demo", "--yes", "--memo"];
    let mut cli = Cli::try_parse_from(argv.iter().map(OsStr::new).chain([memo.as_os_str()]))?;
    cli.global = global.clone();
    super::run(cli)?;
    Ok(())
}

fn show_invalid(message: &str) {
    show_text(&format!("{YELLOW}{}{YELLOW:#}\n", text::sanitize_line(message)));
}

fn usage_error(error: impl std::fmt::Display) -> CliError {
    CliError::usage(error.to_string())
}
