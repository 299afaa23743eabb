//! From what a request wants to what the commands are told. A request names no file: every field that
//! could is left as it is where no flag is given.

use std::path::PathBuf;

use clap::Parser as _;
use moothall_core::MicroUsd;
use moothall_core::consult::{Committee, board};
use moothall_core::model::ModelName;
use moothall_server::wire::{Source, StartCode, StartConsult};

use crate::args::{Cli, Command, ConsultArgs, DebateEngine, PauseAfter, RunArgs, SourceArg};
use crate::error::CliError;

/// The arguments of `moothall consult` that a request stands for.
pub(super) fn consult(
    request: &StartConsult,
    usual_model: Option<&ModelName>,
    committees: &[(Committee, PathBuf)],
) -> Result<ConsultArgs, CliError> {
    let mut args = match Cli::try_parse_from(["moothall", "consult"]).map(|cli| cli.command) {
        Ok(Command::Consult(args)) => *args,
        _ => return Err(CliError::failed("the flags of `consult` changed")),
    };
    args.ticker = Some(request.ticker.clone());
    args.model = model(request.model.as_deref(), usual_model)?;
    args.committee = match &request.committee {
        Some(name) if *name != board().name => Some(file_of(name, committees)?),
        name => name.clone(),
    };
    args.rounds = within("rounds", request.rounds, 20)?;
    args.moves = within("moves", request.moves, 40)?;
    if let Some(parallel) = within("parallel_moves", request.parallel_moves, 40)? {
        args.parallel_moves = parallel;
    }
    args.source = match request.source {
        None | Some(Source::Filings) => vec![SourceArg::Filings],
        Some(Source::Synthetic) => vec![SourceArg::Synthetic],
    };
    args.evidence.as_of = request.as_of;
    args.evidence.allow_stale = request.allow_stale;
    args.pause_after = request.pause_after_moves.then_some(PauseAfter::Moves);
    args.baseline = request.baseline;
    args.budget = budget(request.budget_usd.as_deref())?;
    args.isolation = match request.isolation.as_deref() {
        None => None,
        Some("auto") => Some(DebateEngine::Auto),
        Some("microvm") => Some(DebateEngine::Microvm),
        Some("runsc") => Some(DebateEngine::Runsc),
        Some("none") => Some(DebateEngine::None),
        Some(_) => {
            let words = "`isolation` is auto, microvm, runsc or none";
            return Err(CliError::usage(words).with_code("bad-isolation"));
        }
    };
    args.yes = true;
    Ok(args)
}

/// The file of a committee that the server was started with. What a request writes is compared with
/// names and never looked for on the disk.
fn file_of(name: &str, committees: &[(Committee, PathBuf)]) -> Result<String, CliError> {
    let found = committees.iter().find(|(one, _)| one.name == name);
    let path = found.and_then(|(_, path)| path.to_str()).map(str::to_owned);
    path.ok_or_else(|| {
        CliError::usage("there is no such committee")
            .with_hint("`GET /api/committees` lists them")
            .with_code("unknown-committee")
    })
}

/// The arguments of `moothall run` that a request stands for.
pub(super) fn code(
    request: &StartCode,
    usual_model: Option<&ModelName>,
) -> Result<RunArgs, CliError> {
    let mut args = match Cli::try_parse_from(["moothall", "run"]).map(|cli| cli.command) {
        Ok(Command::Run(args)) => *args,
        _ => return Err(CliError::failed("the flags of `run` changed")),
    };
    let task = request.task.trim();
    if task.is_empty() {
        return Err(CliError::usage("there is no task").with_code("no-task"));
    }
    args.task = Some(task.to_owned());
    args.model = model(request.model.as_deref(), usual_model)?;
    let most = moothall_core::reflexion::MAX_ATTEMPTS;
    if let Some(attempts) = within("attempts", request.attempts, most)? {
        args.attempts = attempts;
    }
    args.budget = budget(request.budget_usd.as_deref())?;
    Ok(args)
}

/// An amount of dollars as a request writes it.
pub(super) fn budget(written: Option<&str>) -> Result<Option<MicroUsd>, CliError> {
    let parse = |text: &str| {
        text.parse().map_err(|error: moothall_core::money::InvalidAmount| {
            CliError::usage(error.to_string()).with_code("bad-budget")
        })
    };
    written.map(parse).transpose()
}

fn model(written: Option<&str>, usual: Option<&ModelName>) -> Result<Option<ModelName>, CliError> {
    let Some(text) = written.filter(|text| !text.is_empty()) else { return Ok(usual.cloned()) };
    text.parse().map(Some).map_err(|error: moothall_core::model::InvalidModelName| {
        CliError::usage(error.to_string()).with_code("bad-model")
    })
}

fn within(name: &str, number: Option<u32>, most: u32) -> Result<Option<u32>, CliError> {
    match number {
        Some(number) if number == 0 || number > most => {
            Err(CliError::usage(format!("`{name}` is from 1 to {most}")).with_code("out-of-range"))
        }
        number => Ok(number),
    }
}
