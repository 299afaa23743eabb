//! `moothall mcp`: drafts as tools for agents, in three processes.
//!
//! The gate and the runner are started first and hold every right. Then this process builds walls
//! around itself, and only then listens to anybody.

mod http;
mod runner;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use moothall_mcp::{
    Ask, Front, Gate, Link, Terms, ToolNames, answer_all, serve_streams, wait_until_ready,
};
use moothall_sandbox::confine::confine;

use self::http::Door;
use super::draft::store;
use super::runtime;
use crate::args::{
    Global, HandoffArg, McpArgs, McpPart, McpPartArgs, ToolNamesArg, ToolsArg, WorkspaceFlags,
};
use crate::error::{CliError, Exit};
use crate::terminal::{self, GREEN, YELLOW};

/// Calls that the gate works on at a time; the store does one after the other.
const GATE_AT_ONCE: usize = 8;
/// Programs that run at a time.
const RUNNER_AT_ONCE: usize = 2;

/// The processes behind this one.
struct Behind {
    gate: UnixStream,
    runner: Option<UnixStream>,
}

pub(super) fn run(global: &Global, args: &McpArgs) -> anyhow::Result<Exit> {
    let flags = WorkspaceFlags { workspace: args.workspace.clone(), json: false };
    let (options, loaded) = store::options(global, &flags)?;
    let behind = Behind {
        gate: start(global, args, &options.workspace, McpPart::Gate)?,
        runner: match args.tools {
            ToolsArg::Drafts => None,
            ToolsArg::All => Some(start(global, args, &options.workspace, McpPart::Runner)?),
        },
    };
    // Sockets are made while this process can still make any.
    let door = Door::open(args, &loaded.places.folders.state)?;
    let denied = walls(args, &options.workspace, &options.state)?;
    if args.check {
        return tell(&denied);
    }
    door.introduce();
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let front = front(behind, args)?;
        let served = match door {
            Door::Streams => serve_streams(front, tokio::io::stdin(), tokio::io::stdout()).await,
            door => http::serve(door, front).await,
        };
        served.map_err(|error| CliError::failed("the server broke off").with_source(error))
    });
    // Standard input is read on a thread that may wait for a client forever.
    runtime.shutdown_background();
    served?;
    Ok(Exit::Fine)
}

fn front(behind: Behind, args: &McpArgs) -> Result<Front, CliError> {
    let names = match args.tool_names {
        ToolNamesArg::Neutral => ToolNames::Neutral,
        ToolNamesArg::Seed => ToolNames::Seed,
        ToolNamesArg::Both => ToolNames::Both,
    };
    let opened = || -> std::io::Result<Front> {
        let gate = Link::open(behind.gate)?;
        Front::new(gate, behind.runner.map(Link::open).transpose()?, names)
    };
    opened().map_err(|error| CliError::failed("the server cannot start").with_source(error))
}

/// One of the processes that do what this one may not.
pub(super) fn part(global: &Global, args: &McpPartArgs) -> anyhow::Result<Exit> {
    let broken = |error: std::io::Error| {
        CliError::usage("this command is started by `moothall mcp`").with_source(error)
    };
    let stream = rustix::stdio::stdin().try_clone_to_owned().map_err(broken)?;
    let stream = UnixStream::from(stream);
    stream.peer_addr().map_err(broken)?;
    let ended = match args.part {
        McpPart::Gate => {
            let flags = WorkspaceFlags { workspace: args.workspace.clone(), json: false };
            let opened = store::open_with_view(global, &flags, &args.view)?;
            opened.warn_about_policy();
            let worker = opened.worker(&args.worker)?.who;
            let user = opened.user();
            let uid = rustix::process::getuid().as_raw();
            let terms = Terms { worker, user, uid, review_url: args.review_url.clone() };
            let gate = Gate::new(opened.store, terms);
            answer_all(stream, GATE_AT_ONCE, |ask: Ask| gate.answer(ask), || gate.leave())
        }
        McpPart::Runner => {
            let runner = runner::Runner::new(global)?;
            answer_all(stream, RUNNER_AT_ONCE, |ask: Ask| runner.answer(ask), || {})
        }
    };
    ended.map_err(|error| CliError::failed("the process in front broke off").with_source(error))?;
    Ok(Exit::Fine)
}

/// Starts a part with one end of a socket as its standard input, and waits until it is ready. What
/// is wrong it says by itself, on the standard error that both share.
fn start(
    global: &Global,
    args: &McpArgs,
    workspace: &Path,
    part: McpPart,
) -> Result<UnixStream, CliError> {
    let cannot =
        |error: std::io::Error| CliError::failed("a part cannot be started").with_source(error);
    let (mut ours, theirs) = UnixStream::pair().map_err(cannot)?;
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.arg("mcp-part").arg(match part {
        McpPart::Gate => "gate",
        McpPart::Runner => "runner",
    });
    command.arg("--workspace").arg(workspace).arg("--worker").arg(&args.worker);
    match args.view.handoff {
        Some(HandoffArg::On) => command.arg("--handoff=on"),
        Some(HandoffArg::Off) => command.arg("--handoff=off"),
        None => &mut command,
    };
    if let Some(url) = &args.review_url {
        command.arg("--review-url").arg(url);
    }
    if let Some(config) = &global.config {
        command.arg("--config").arg(config);
    }
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let mut child = command.spawn().map_err(cannot)?;
    // The command holds the other end of the socket; while it does, nobody sees that the part ended.
    drop(command);
    if wait_until_ready(&mut ours).map_err(cannot)? {
        return Ok(ours);
    }
    let ended = child.wait().map_err(cannot)?;
    let exit = if ended.code() == Some(2) { Exit::Usage } else { Exit::Failed };
    Err(CliError::new(exit, "the gate did not start").with_hint("it said why, above"))
}

fn walls(args: &McpArgs, workspace: &Path, state: &Path) -> Result<Vec<&'static str>, CliError> {
    match confine(workspace, state) {
        Ok(denied) => Ok(denied),
        Err(error) if args.allow_unconfined => {
            let why = error.failure().detail;
            terminal::note(&format!("{YELLOW}note: served without walls: {why}{YELLOW:#}\n"));
            Ok(Vec::new())
        }
        Err(error) => Err(CliError::failed("the walls around the server cannot be built")
            .with_source(error)
            .with_hint("Linux 6.7 has what it takes; `--allow-unconfined` serves without walls")),
    }
}

fn tell(denied: &[&str]) -> anyhow::Result<Exit> {
    if denied.is_empty() {
        return Ok(Exit::VerdictNegative);
    }
    let mut text = String::from("the part that agents speak to cannot:\n");
    for what in denied {
        text.push_str(&format!("  {GREEN}{what}{GREEN:#}\n"));
    }
    terminal::print(&text)?;
    Ok(Exit::Fine)
}
