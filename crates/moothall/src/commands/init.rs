//! `moothall init`: the first steps of a newcomer, from nothing to a finished demonstration.

mod edit;

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use moothall_core::model::ModelName;
use moothall_core::text;
use moothall_models::connection::is_loopback;
use moothall_sources::edgar::Contact;

use self::edit::Answers;
use super::{question, runtime};
use crate::args::{Cli, Global, InitArgs};
use crate::config::{Config, FILE_NAME};
use crate::context::Context;
use crate::error::{CliError, Exit};
use crate::terminal::{self, BOLD, DIM, GREEN, YELLOW};
use crate::{isolation, logging};

/// How often somebody is asked again who mistyped.
const TRIES: usize = 3;

/// The name of a server of one's own.
const OWN: &str = "local";
const OWN_ADDRESS: &str = "http://127.0.0.1:8080/v1";

/// The image that sandboxes are tried out with, and how long that may take.
const IMAGE: &str = "python";
const TRYING_OUT: Duration = Duration::from_secs(45);

pub(super) fn run(global: &Global, args: &InitArgs) -> anyhow::Result<Exit> {
    if !args.yes && !question::somebody_is_there() {
        return Err(CliError::usage("init asks questions, and nobody is here to answer them")
            .with_hint("run it in a terminal, or take every default with `--yes`")
            .into());
    }
    let context = Context::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&context.loaded.resolved.config.log, global.verbose);
    let own_file = context.loaded.places.folders.config.join(FILE_NAME);
    let file = global.config.clone().unwrap_or(own_file);
    let before = read(&file)?;
    let runtime = runtime()?;
    let demonstrate = runtime.block_on(async {
        say(&format!("{BOLD}1 of 4  The model that answers{BOLD:#}\n"));
        let (model, base_url) = model(&context, args.yes).await?;
        say(&format!("\n{BOLD}2 of 4  Your mail address for the SEC{BOLD:#}\n"));
        let contact = contact(&context, args.yes).await?;
        say(&format!("\n{BOLD}3 of 4  This machine{BOLD:#}\n"));
        this_machine(&context).await;
        write(&file, &before, &Answers { model: Some(model), base_url, contact }, args.yes).await?;
        say(&format!("\n{BOLD}4 of 4  A demonstration{BOLD:#}\n"));
        if args.no_demo {
            return Ok(false);
        }
        say("HLXI does not exist, and no model is asked: it takes seconds and costs nothing.\n");
        match args.yes {
            true => Ok(true),
            false => question::agreed_or_left("Consult HLXI now?").await.ok_or_else(left),
        }
    });
    drop(runtime);
    let demonstrate = demonstrate?;
    let memo = context.loaded.places.folders.data.join("demonstration.md");
    if demonstrate {
        demonstration(global, &memo)?;
        say(&format!(
            "\n{GREEN}Done.{GREEN:#} The memo of the demonstration: {}\n",
            memo.display()
        ));
    } else {
        say("\nWhenever you like: moothall consult HLXI --model demo\n");
    }
    say("A real company: moothall consult AAPL --estimate   Everything else: moothall help\n");
    Ok(Exit::Fine)
}

fn say(words: &str) {
    terminal::note(words);
}

fn left() -> CliError {
    CliError::new(
        Exit::Cancelled,
        "cancelled; what was written before stays, and nothing is half done",
    )
}

/// Which model, and where it is if the person runs it. Keys are never asked for: they stay where they
/// are.
async fn model(context: &Context, yes: bool) -> Result<(ModelName, Option<String>), CliError> {
    let demo = || ModelName::DEMO.parse::<ModelName>().map_err(broken);
    // What is configured, else the one whose key is there, else the demonstration.
    let default = context.model(None).or_else(|_| demo())?;
    if yes {
        say(&format!("{default}\n"));
        return Ok((default, None));
    }
    say(&format!(
        "  1  demo: a demonstration, without key, network or cost\n  \
           2  a server of your own: llama.cpp, vLLM, LM Studio, anything that speaks OpenAI's language\n  \
           3  a provider. Keys are read from your environment and written nowhere:\n{}",
        keys(context)
    ));
    for _ in 0..TRIES {
        let asked = format!("1, 2, 3 or provider/name [{default}] ");
        let answer = question::asked(&asked).await.ok_or_else(left)?;
        match answer.as_str() {
            "" => return Ok((default, None)),
            "1" => return Ok((demo()?, None)),
            "2" => return own_server().await,
            "3" => match provider(context).await? {
                Some(model) => return Ok((model, None)),
                None => continue,
            },
            named => match named.parse() {
                Ok(model) => {
                    say_where_the_key_is(context, &model);
                    return Ok((model, None));
                }
                Err(error) => complain(&format!("{error}")),
            },
        }
    }
    say(&format!("{default} it is\n"));
    Ok((default, None))
}

fn keys(context: &Context) -> String {
    let lines = context.catalog.providers().filter_map(|provider| {
        let variable = provider.key_env.first()?;
        let on_this_machine =
            reqwest::Url::parse(&provider.base_url).is_ok_and(|url| is_loopback(&url));
        let state = match context.keys.get(&provider.name) {
            Some(_) => format!("{variable} (is set)"),
            None if on_this_machine => "on this machine, needs no key".to_owned(),
            None => format!("{variable} (not set)"),
        };
        Some(format!("     {DIM}{:<11} {state}{DIM:#}\n", provider.name))
    });
    lines.collect()
}

async fn own_server() -> Result<(ModelName, Option<String>), CliError> {
    let asked = format!("Its address [{OWN_ADDRESS}] ");
    let mut address = question::asked(&asked).await.ok_or_else(left)?;
    for _ in 1..TRIES {
        if address.is_empty() || is_usable(&address) {
            break;
        }
        complain("an address begins with http:// or https:// and holds no password");
        address = question::asked(&asked).await.ok_or_else(left)?;
    }
    if !is_usable(&address) {
        address = OWN_ADDRESS.to_owned();
    }
    let name = question::asked("What the model is called there [default] ").await;
    let name = name.ok_or_else(left)?;
    let name = if name.is_empty() { "default" } else { &name };
    let model = format!("{OWN}/{name}").parse().map_err(broken)?;
    say(&format!("{DIM}try it: moothall models --check {model}{DIM:#}\n"));
    Ok((model, Some(address)))
}

/// As the configuration takes it.
fn is_usable(address: &str) -> bool {
    let plain = !address.contains(['@', '?', '#', ' ', '"', '\\']);
    plain
        && ["http://", "https://"]
            .iter()
            .any(|scheme| address.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

async fn provider(context: &Context) -> Result<Option<ModelName>, CliError> {
    let name = question::asked("Which provider [anthropic] ").await.ok_or_else(left)?;
    let name = if name.is_empty() { "anthropic" } else { &name };
    let known = context.catalog.provider(name);
    let Some(model) = known.and_then(|provider| provider.default_model.as_deref()) else {
        let names: Vec<&str> = context.catalog.providers().map(|one| one.name.as_str()).collect();
        complain(&format!("known are {}", names.join(", ")));
        return Ok(None);
    };
    let model: ModelName = format!("{name}/{model}").parse().map_err(broken)?;
    say_where_the_key_is(context, &model);
    Ok(Some(model))
}

fn say_where_the_key_is(context: &Context, model: &ModelName) {
    let provider = model.provider();
    match (context.keys.source(provider), context.keys.hint(provider)) {
        (Some(source), _) => say(&format!("{model}; its key is read from {source}\n")),
        // A server on this machine needs none.
        (None, _) if provider == "ollama" => say(&format!("{model}\n")),
        (None, Some(hint)) => {
            say(&format!("{model}\n{YELLOW}it has no key yet: {hint}{YELLOW:#}\n"));
        }
        (None, None) => say(&format!("{model}\n")),
    }
}

/// The address that requests to the SEC carry; nothing where none is given.
async fn contact(context: &Context, yes: bool) -> Result<Option<String>, CliError> {
    let there = context.loaded.resolved.config.evidence.contact.clone();
    let shown = there.as_deref().unwrap_or("none");
    say(
        "The SEC asks everyone who fetches filings to say who they are. Your address goes to the SEC\n\
         with each request, and to nobody else. Without it real companies cannot be consulted.\n",
    );
    if yes {
        say(&format!("{shown}\n"));
        return Ok(None);
    }
    for _ in 0..TRIES {
        let answer = question::asked(&format!("Mail address [{shown}] ")).await.ok_or_else(left)?;
        if answer.is_empty() {
            return Ok(None);
        }
        match Contact::parse(&answer) {
            Ok(contact) => return Ok(Some(contact.to_string())),
            Err(_) => complain("write it like ada@example.com"),
        }
    }
    Ok(None)
}

/// What `doctor` would say, in two lines.
async fn this_machine(context: &Context) {
    let found = async {
        let policy = isolation::policy(&context.loaded, None, false)?;
        let host = isolation::host(&context.loaded)?;
        host.images().find(IMAGE).map_err(isolation::failure)?;
        say(&format!("{DIM}trying out sandboxes …{DIM:#}\n"));
        host.choose(&policy, IMAGE).await.map_err(isolation::failure)
    };
    match tokio::time::timeout(TRYING_OUT, found).await {
        Ok(Ok(chosen)) => {
            let (engine, class) = (&chosen.report.engine, chosen.report.class);
            say(&format!("Programs and debates run in sandboxes of {engine}: class {class}.\n"));
            say(&format!("{DIM}more: moothall doctor{DIM:#}\n"));
        }
        Ok(Err(error)) => {
            say("There is no sandbox yet: consultations run in this program's own process.\n");
            let why = error.hint.unwrap_or(error.message);
            say(&format!("{DIM}for programs (moothall run): {why}{DIM:#}\n"));
        }
        Err(_) => {
            say("Trying out sandboxes takes long here, so it was left.\n");
            say(&format!("{DIM}later: moothall doctor{DIM:#}\n"));
        }
    }
}

/// Shows what would change, asks, and writes it as a whole.
async fn write(file: &Path, before: &str, answers: &Answers, yes: bool) -> Result<(), CliError> {
    let unusable = |error: anyhow::Error| {
        CliError::usage(format!("{} cannot be changed", file.display())).with_source(error)
    };
    let after = edit::with(before, answers).map_err(|error| unusable(error.into()))?;
    toml::from_str::<Config>(&after).map_err(|error| unusable(error.into()))?;
    let lines = edit::difference(before, &after);
    if lines.is_empty() {
        say(&format!("\n{} stays as it is.\n", file.display()));
        return Ok(());
    }
    say(&format!("\n{}:\n", file.display()));
    for line in lines {
        let style = if line.starts_with('+') { GREEN } else { YELLOW };
        say(&format!("  {style}{}{style:#}\n", text::shown_line(&line)));
    }
    if !yes && !question::agreed_or_left("Write this?").await.ok_or_else(left)? {
        say("Nothing was written.\n");
        return Ok(());
    }
    replace(file, before, &after).map_err(|error| {
        CliError::failed(format!("{} cannot be written", file.display())).with_source(error)
    })
}

/// Under another name first, so that there is the old file or the new one and never half of one.
fn replace(file: &Path, before: &str, after: &str) -> io::Result<()> {
    let target = match fs_err::canonicalize(file) {
        // A link stays one.
        Ok(target) => target,
        Err(_) => std::path::absolute(file)?,
    };
    let folder = target.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs_err::create_dir_all(&folder)?;
    // Somebody may have written while the questions were answered.
    if read_text(&target)? != before {
        return Err(io::Error::other("it was changed meanwhile"));
    }
    let mut fresh = tempfile::NamedTempFile::new_in(&folder)?;
    if let Ok(there) = fs_err::metadata(&target) {
        fresh.as_file().set_permissions(there.permissions())?;
    }
    fresh.write_all(after.as_bytes())?;
    fresh.as_file().sync_all()?;
    fresh.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

fn read(file: &Path) -> Result<String, CliError> {
    read_text(file)
        .map_err(|error| CliError::usage("cannot read the configuration").with_source(error))
}

fn read_text(file: &Path) -> io::Result<String> {
    match fs_err::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// The same command that a person would type.
fn demonstration(global: &Global, memo: &Path) -> anyhow::Result<()> {
    if let Some(folder) = memo.parent() {
        fs_err::create_dir_all(folder)?;
    }
    say(&format!("{DIM}$ moothall consult HLXI --model demo{DIM:#}\n"));
    let words = ["moothall", "consult", "HLXI", "--model", "demo", "--yes", "--memo"];
    let mut cli = Cli::try_parse_from(words.iter().map(OsStr::new).chain([memo.as_os_str()]))?;
    cli.global = global.clone();
    super::run(cli)?;
    Ok(())
}

fn complain(words: &str) {
    say(&format!("{YELLOW}{}{YELLOW:#}\n", text::shown_line(words)));
}

fn broken(error: impl std::fmt::Display) -> CliError {
    CliError::usage(error.to_string())
}
