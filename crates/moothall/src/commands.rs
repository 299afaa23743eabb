//! One module per command.

mod approve;
mod ask;
mod attempts;
mod audit;
mod backup;
mod calls;
mod cancel;
mod check;
mod cluster;
pub(crate) mod committee;
mod config;
mod config_edit;
mod connect;
mod consult;
mod demo;
mod diff;
mod docs;
mod doctor;
pub(crate) mod draft;
mod edit;
mod eval;
mod events;
mod exec;
mod facts;
mod failure;
mod gate;
#[cfg(target_os = "linux")]
pub(crate) mod guard;
#[cfg(not(target_os = "linux"))]
#[path = "commands/guard_unsupported.rs"]
pub(crate) mod guard;
mod hook;
mod image;
mod init;
mod key;
mod login;
mod mcp;
mod models;
mod moves;
mod notify;
mod outcome;
mod panel;
mod pausable_run;
mod pause;
mod policy;
mod prompt;
mod prompts;
mod replay;
mod report;
mod restore;
mod resumable_run;
mod resume;
mod review;
mod run;
mod runs;
mod sandbox;
mod serve;
mod show;
mod start_page;
mod team;
mod token;
mod verify;
mod worker;

use std::future::Future;
use std::time::Duration;

use clap::CommandFactory as _;
use tokio::runtime::{Builder as RuntimeBuilder, Runtime};

use crate::args::{self, Cli, CliCommand};
use crate::error::{CliError, CliExit};
use crate::terminal;

pub(crate) fn run(cli: Cli) -> anyhow::Result<CliExit> {
    let Cli { global, command } = cli;
    let Some(command) = command else { return start_page::run(&global) };
    match command {
        CliCommand::Demo(args) => demo::run(&global, &args),
        CliCommand::Init(args) => init::run(&global, &args),
        CliCommand::Key(command) => key::run(&global, &command),
        CliCommand::Serve(args) => serve::run(&global, &args),
        CliCommand::Worker(args) => worker::run(&global, &args),
        CliCommand::Login(args) => login::run(&global, &args),
        CliCommand::Consult(args) => consult::run(&global, &args),
        CliCommand::Fork(args) => consult::fork(&global, &args),
        CliCommand::Committee(command) => committee::run(&global, &command),
        CliCommand::Prompts(command) => prompts::run(&global, &command),
        CliCommand::Cluster(command) => cluster::run(&global, &command),
        CliCommand::Pause(args) => pause::run(&global, &args),
        CliCommand::Moves(args) => moves::run(&global, &args),
        CliCommand::Approve(args) => approve::run(&global, &args),
        CliCommand::Replay(args) => replay::run(&global, &args),
        CliCommand::Facts(args) => facts::run(&global, &args),
        CliCommand::Check(args) => check::run(&global, &args),
        CliCommand::Run(args) => run::run(&global, &args),
        CliCommand::Runs(args) => runs::run(&global, &args),
        CliCommand::Show(args) => show::run(&global, &args),
        CliCommand::Report(args) => report::run(&global, &args),
        CliCommand::Events(args) => events::run(&global, &args),
        CliCommand::Calls(args) => calls::run(&global, &args),
        CliCommand::Cancel(args) => cancel::run(&global, &args),
        CliCommand::Resume(args) => resume::run(&global, &args),
        CliCommand::Diff(args) => diff::run(&global, &args),
        CliCommand::Eval(args) => eval::run(&global, &args),
        CliCommand::Outcome(command) => outcome::run(&global, &command),
        CliCommand::Panel(args) => panel::run(&global, &args),
        CliCommand::Backup(args) => backup::run(&global, &args),
        CliCommand::Restore(args) => restore::run(&global, &args),
        CliCommand::Token(command) => token::run(&global, &command),
        CliCommand::Team(command) => team::run(&global, &command),
        CliCommand::Edit(args) => edit::run(&global, &args),
        CliCommand::Guard(args) => guard::run(&global, &args),
        CliCommand::Draft(args) => draft::run(&global, &args),
        CliCommand::Gate(args) => gate::run(&global, &args),
        CliCommand::Review(args) => review::run(&global, &args),
        CliCommand::Policy(args) => policy::run(&global, &args),
        CliCommand::Audit(args) => audit::run(&global, &args),
        CliCommand::Mcp(args) => mcp::run(&global, &args),
        CliCommand::McpPart(args) => mcp::run_part(&global, &args),
        CliCommand::Connect(args) => connect::run(&global, &args),
        CliCommand::Hook(args) => hook::run(&global, &args),
        CliCommand::Notify(command) => notify::run(&global, &command),
        CliCommand::Ask(args) => ask::run(&global, &args),
        CliCommand::Models(args) => models::run(&global, &args),
        CliCommand::Verify(args) => verify::run(&global, &args),
        CliCommand::Exec(args) => exec::run(&global, &args),
        CliCommand::Doctor(args) => doctor::run(&global, &args),
        CliCommand::Sandbox(command) => sandbox::run(&global, &command),
        CliCommand::Image(command) => image::run(&global, &command),
        CliCommand::Config(command) => config::run(&global, &command),
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "moothall", &mut script);
            terminal::print(&String::from_utf8_lossy(&script))?;
            Ok(CliExit::Fine)
        }
        CliCommand::Man { command } => man(command.as_deref()),
        CliCommand::Help { all, command } => help(all, &command),
        CliCommand::Jail { args } => match moothall_sandbox::jail::enter(args)? {},
        CliCommand::Docs(command) => docs::run(&command),
    }
}

fn help(all: bool, names: &[String]) -> anyhow::Result<CliExit> {
    if all {
        terminal::print(&args::all_commands())?;
        return Ok(CliExit::Fine);
    }
    let command = args::command();
    let mut subcommand = &command;
    for name in names {
        subcommand = subcommand.find_subcommand(name).ok_or_else(|| unknown_command(name))?;
    }
    // Clap knows whether a command has a long help.
    let argv = ["moothall"].into_iter().chain(names.iter().map(String::as_str)).chain(["--help"]);
    if let Err(help) = command.try_get_matches_from(argv) {
        terminal::print(&help.render().ansi().to_string())?;
    }
    Ok(CliExit::Fine)
}

fn unknown_command(name: &str) -> CliError {
    CliError::usage(format!("unknown command `{name}`"))
        .with_hint("`moothall help --all` lists all commands")
}

fn man(command: Option<&str>) -> anyhow::Result<CliExit> {
    let mut root = Cli::command();
    root.build();
    let subcommand = match command {
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| unknown_command(name))?,
        None => root,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(subcommand).render(&mut page)?;
    terminal::print(&String::from_utf8_lossy(&page))?;
    Ok(CliExit::Fine)
}

/// How long an interrupted command waits for its sandboxes to be removed.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(3);

/// Result of work that the user can interrupt.
enum InterruptibleResult<T> {
    Done(T),
    /// Ctrl-C: the future was dropped, which stops its calls.
    Cancelled,
}

fn runtime() -> Result<Runtime, CliError> {
    build_runtime(&mut RuntimeBuilder::new_current_thread())
}

fn build_runtime(builder: &mut RuntimeBuilder) -> Result<Runtime, CliError> {
    builder.enable_all().build().map_err(|error| {
        CliError::failed("cannot start the async runtime")
            .with_source(error)
            .with_hint("check the limits on open files and processes: `ulimit -a`")
    })
}

/// Waits for a future until it is done or the user presses Ctrl-C.
async fn interruptible<T>(future: impl Future<Output = T>) -> InterruptibleResult<T> {
    tokio::select! {
        done = future => InterruptibleResult::Done(done),
        _ = tokio::signal::ctrl_c() => InterruptibleResult::Cancelled,
    }
}

/// Same as [`interruptible`], calling `tick` at an interval.
async fn interruptible_with_tick<T>(
    future: impl Future<Output = T>,
    every: Duration,
    mut tick: impl FnMut(),
) -> InterruptibleResult<T> {
    let ticking = async {
        let mut interval = tokio::time::interval(every);
        loop {
            interval.tick().await;
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

/// Runs a future on a new runtime until it is done or the user presses Ctrl-C.
fn block_on<T>(future: impl Future<Output = T>) -> Result<InterruptibleResult<T>, CliError> {
    let runtime = runtime()?;
    let done = runtime.block_on(interruptible(future));
    if matches!(done, InterruptibleResult::Cancelled) {
        wait_for_cleanup(&runtime);
    }
    Ok(done)
}

/// Gives tasks spawned by dropped futures a limited time to clean up.
fn wait_for_cleanup(runtime: &Runtime) {
    runtime.block_on(async {
        let deadline = tokio::time::Instant::now() + CLEANUP_TIMEOUT;
        while runtime.metrics().num_alive_tasks() > 0 && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}
