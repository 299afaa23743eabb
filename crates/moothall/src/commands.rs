//! One module per command.

mod ask;
mod config;
mod docs;
mod failure;
mod models;
mod run_record;
mod verify;

use std::future::Future;

use clap::CommandFactory as _;

use crate::args::{Cli, Command};
use crate::error::{CliError, Exit};
use crate::terminal;

pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    let Cli { global, command } = cli;
    match command {
        Command::Ask(args) => ask::run(&global, &args),
        Command::Models(args) => models::run(&global, &args),
        Command::Verify(args) => verify::run(&args),
        Command::Config(command) => config::run(&global, &command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "moothall", &mut script);
            terminal::print(&String::from_utf8_lossy(&script))?;
            Ok(Exit::Fine)
        }
        Command::Man { command } => man(command.as_deref()),
        Command::Docs(command) => docs::run(&command),
    }
}

fn man(command: Option<&str>) -> anyhow::Result<Exit> {
    let mut root = Cli::command();
    root.build();
    let wanted = match command {
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| {
            CliError::usage(format!("there is no command called `{name}`"))
                .with_hint("`moothall help` lists them")
        })?,
        None => root,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(wanted).render(&mut page)?;
    terminal::print(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Fine)
}

/// What came of work that a person may interrupt.
enum Interruptible<T> {
    Done(T),
    /// Ctrl-C: the future was dropped, which stops its calls.
    Cancelled,
}

/// Runs a future on a runtime of its own until it is done or the person presses Ctrl-C.
fn block_on<T>(future: impl Future<Output = T>) -> Result<Interruptible<T>, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed("the async runtime cannot start").with_source(error))?;
    Ok(runtime.block_on(async {
        tokio::select! {
            done = future => Interruptible::Done(done),
            _ = tokio::signal::ctrl_c() => Interruptible::Cancelled,
        }
    }))
}
