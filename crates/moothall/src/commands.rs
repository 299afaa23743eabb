//! One module per command.

mod approve;
mod ask;
mod attempts;
mod audit;
mod backup;
mod cancel;
mod check;
mod cluster;
pub(crate) mod committee;
mod config;
mod consult;
mod diff;
mod docs;
mod doctor;
pub(crate) mod draft;
mod edit;
mod events;
mod exec;
mod facts;
mod failure;
mod found_run;
mod image;
mod init;
mod login;
mod mcp;
mod models;
mod moves;
mod pause;
mod policy;
mod question;
mod replay;
mod report;
mod restore;
mod resume;
mod review;
mod run;
mod runs;
mod sandbox;
mod serve;
mod show;
mod team;
mod token;
mod verify;
mod worker;

use std::future::Future;
use std::time::Duration;

use clap::CommandFactory as _;

use crate::args::{Cli, Command};
use crate::error::{CliError, Exit};
use crate::terminal;

pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    let Cli { global, command } = cli;
    match command {
        Command::Init(args) => init::run(&global, &args),
        Command::Serve(args) => serve::run(&global, &args),
        Command::Worker(args) => worker::run(&global, &args),
        Command::Login(args) => login::run(&global, &args),
        Command::Consult(args) => consult::run(&global, &args),
        Command::Committee(command) => committee::run(&command),
        Command::Cluster(command) => cluster::run(&global, &command),
        Command::Pause(args) => pause::run(&global, &args),
        Command::Moves(args) => moves::run(&global, &args),
        Command::Approve(args) => approve::run(&global, &args),
        Command::Replay(args) => replay::run(&global, &args),
        Command::Facts(args) => facts::run(&global, &args),
        Command::Check(args) => check::run(&global, &args),
        Command::Run(args) => run::run(&global, &args),
        Command::Runs(args) => runs::run(&global, &args),
        Command::Show(args) => show::run(&global, &args),
        Command::Report(args) => report::run(&global, &args),
        Command::Events(args) => events::run(&global, &args),
        Command::Cancel(args) => cancel::run(&global, &args),
        Command::Resume(args) => resume::run(&global, &args),
        Command::Diff(args) => diff::run(&global, &args),
        Command::Backup(args) => backup::run(&global, &args),
        Command::Restore(args) => restore::run(&global, &args),
        Command::Token(command) => token::run(&global, &command),
        Command::Team(command) => team::run(&global, &command),
        Command::Edit(args) => edit::run(&global, &args),
        Command::Draft(args) => draft::run(&global, &args),
        Command::Review(args) => review::run(&global, &args),
        Command::Policy(args) => policy::run(&global, &args),
        Command::Audit(args) => audit::run(&global, &args),
        Command::Mcp(args) => mcp::run(&global, &args),
        Command::McpPart(args) => mcp::part(&global, &args),
        Command::Ask(args) => ask::run(&global, &args),
        Command::Models(args) => models::run(&global, &args),
        Command::Verify(args) => verify::run(&args),
        Command::Exec(args) => exec::run(&global, &args),
        Command::Doctor(args) => doctor::run(&global, &args),
        Command::Sandbox(command) => sandbox::run(&global, &command),
        Command::Image(command) => image::run(&global, &command),
        Command::Config(command) => config::run(&global, &command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "moothall", &mut script);
            terminal::print(&String::from_utf8_lossy(&script))?;
            Ok(Exit::Fine)
        }
        Command::Man { command } => man(command.as_deref()),
        Command::Jail { args } => match moothall_sandbox::jail::enter(args)? {},
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

/// How long a cancelled command waits for its sandboxes to be gone.
const CLEANING_UP: Duration = Duration::from_secs(3);

/// What came of work that a person may interrupt.
enum Interruptible<T> {
    Done(T),
    /// Ctrl-C: the future was dropped, which stops its calls.
    Cancelled,
}

/// Where async work of a command runs.
fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed("the async runtime cannot start").with_source(error))
}

/// Waits for a future until it is done or the person presses Ctrl-C.
async fn interruptible<T>(future: impl Future<Output = T>) -> Interruptible<T> {
    tokio::select! {
        done = future => Interruptible::Done(done),
        _ = tokio::signal::ctrl_c() => Interruptible::Cancelled,
    }
}

/// The same, and says every so often that it still goes on.
async fn watched<T>(
    future: impl Future<Output = T>,
    every: Duration,
    mut tick: impl FnMut(),
) -> Interruptible<T> {
    let ticking = async {
        let mut moments = tokio::time::interval(every);
        loop {
            moments.tick().await;
            tick();
        }
    };
    interruptible(async {
        tokio::select! {
            done = future => done,
            never = ticking => never,
        }
    })
    .await
}

/// Runs a future on a runtime of its own until it is done or the person presses Ctrl-C.
fn block_on<T>(future: impl Future<Output = T>) -> Result<Interruptible<T>, CliError> {
    let runtime = runtime()?;
    let done = runtime.block_on(interruptible(future));
    if matches!(done, Interruptible::Cancelled) {
        let_clean_up(&runtime);
    }
    Ok(done)
}

/// What was dropped cleans up after itself; that is worth a moment, and not more.
fn let_clean_up(runtime: &tokio::runtime::Runtime) {
    runtime.block_on(async {
        let until = tokio::time::Instant::now() + CLEANING_UP;
        while runtime.metrics().num_alive_tasks() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}
