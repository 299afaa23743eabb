//! `moothall mcp`: offers drafts as tools to agents, using three processes.
//!
//! The gate and the runner start first and have full access. Then this process confines itself, and
//! only then accepts input.

mod consultations;
mod runner;
mod transport;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use moothall_mcp::{
    DraftGate, DraftGateSettings, IpcClient, IpcRequest, McpFrontend, ToolNames, answer_all,
    serve_streams, wait_until_ready,
};
use moothall_sandbox::SandboxError;
use moothall_sandbox::confine::confine;
use tokio::runtime::Builder as RuntimeBuilder;

use self::transport::McpTransport;
use super::draft::store;
use super::{build_runtime, runtime, wait_for_cleanup};
use crate::args::{
    GlobalArgs, HandoffArg, McpArgs, McpPart, McpPartArgs, ToolNamesArg, ToolsArg, WorkspaceFlags,
};
use crate::error::{CliError, CliExit};
use crate::terminal::{self, GREEN, YELLOW};
use crate::{config, logging, process_resources};

/// Concurrent calls in the gate; the store executes them one by one.
const GATE_CONCURRENCY: usize = 8;
/// Concurrent programs.
const RUNNER_CONCURRENCY: usize = 2;

/// The privileged processes.
struct McpBackends {
    gate: UnixStream,
    runner: Option<UnixStream>,
}

pub(crate) fn run(global: &GlobalArgs, args: &McpArgs) -> anyhow::Result<CliExit> {
    let flags = WorkspaceFlags { workspace: args.workspace.clone(), json: false };
    let (options, loaded) = store::options(global, &flags)?;
    let backends = McpBackends {
        gate: start(global, args, &options.workspace, McpPart::Gate)?,
        runner: match args.tools {
            ToolsArg::Drafts => None,
            ToolsArg::All => Some(start(global, args, &options.workspace, McpPart::Runner)?),
        },
    };
    // Sockets must be opened before the process is confined.
    let opened_transport = McpTransport::open(args, &loaded.locations.folders.state)?;
    let denied = confine_process(args, &options.workspace, &options.state)?;
    if args.check {
        return print_denied(&denied);
    }
    opened_transport.introduce();
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let frontend = open_frontend(backends, args)?;
        let served = match opened_transport {
            McpTransport::Streams => {
                serve_streams(frontend, tokio::io::stdin(), tokio::io::stdout()).await
            }
            opened_transport => transport::serve(opened_transport, frontend).await,
        };
        served
            .map_err(|error| CliError::failed("the server stopped unexpectedly").with_source(error))
    });
    // The thread that reads standard input may block forever.
    runtime.shutdown_background();
    served?;
    Ok(CliExit::Fine)
}

fn open_frontend(backends: McpBackends, args: &McpArgs) -> Result<McpFrontend, CliError> {
    let names = match args.tool_names {
        ToolNamesArg::Neutral => ToolNames::Neutral,
        ToolNamesArg::Seed => ToolNames::Seed,
        ToolNamesArg::Both => ToolNames::Both,
    };
    let opened = || -> std::io::Result<McpFrontend> {
        let gate = IpcClient::open(backends.gate)?;
        McpFrontend::new(gate, backends.runner.map(IpcClient::open).transpose()?, names)
    };
    opened().map_err(|error| CliError::failed("cannot start the server").with_source(error))
}

/// Entry point of the gate and the runner.
pub(crate) fn run_part(global: &GlobalArgs, args: &McpPartArgs) -> anyhow::Result<CliExit> {
    let broken = |error: std::io::Error| {
        CliError::usage("this command is internal; use `moothall mcp`").with_source(error)
    };
    let stream = rustix::stdio::stdin().try_clone_to_owned().map_err(broken)?;
    let stream = UnixStream::from(stream);
    stream.peer_addr().map_err(broken)?;
    let runtime = build_runtime(RuntimeBuilder::new_multi_thread().worker_threads(1))?;
    process_resources::keep_sandboxes(runtime.handle().clone());
    let ended = match args.part {
        McpPart::Gate => {
            let flags = WorkspaceFlags { workspace: args.workspace.clone(), json: false };
            let opened = store::open_with_view(global, &flags, &args.view)?;
            opened.warn_about_policy();
            let worker = opened.worker(&args.worker)?.principal;
            let user = opened.user();
            let uid = rustix::process::getuid().as_raw();
            let settings =
                DraftGateSettings { worker, user, uid, review_url: args.review_url.clone() };
            let gate = DraftGate::new(opened.store, settings);
            answer_all(
                stream,
                GATE_CONCURRENCY,
                |ask: IpcRequest| tool_span(&ask).in_scope(|| gate.answer(ask)),
                || gate.leave(),
            )
        }
        McpPart::Runner => {
            let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
            logging::start(&loaded.resolved.config.log, global.verbose);
            let budget = args.budget.unwrap_or_default();
            let runner = runner::CommandRunner::new(global, runtime.handle().clone(), budget)?;
            let answer = |ask: IpcRequest| tool_span(&ask).in_scope(|| runner.answer(ask));
            answer_all(stream, RUNNER_CONCURRENCY, answer, || {})
        }
    };
    runtime.block_on(process_resources::end_kept_sandboxes());
    wait_for_cleanup(&runtime);
    ended.map_err(|error| {
        CliError::failed("lost the connection to `moothall mcp`").with_source(error)
    })?;
    Ok(CliExit::Fine)
}

/// The span of a tool call by an agent. Other requests come from the frontend itself.
fn tool_span(request: &IpcRequest) -> tracing::Span {
    match request {
        IpcRequest::Call { tool, .. } => {
            tracing::info_span!(target: "moothall::mcp", "tool_call", tool = tool.name())
        }
        _ => tracing::Span::none(),
    }
}

/// Starts the gate or the runner with one end of a socket as standard input, and waits until it is
/// ready. It prints its own errors to the shared standard error.
fn start(
    global: &GlobalArgs,
    args: &McpArgs,
    workspace: &Path,
    part: McpPart,
) -> Result<UnixStream, CliError> {
    let cannot = |error: std::io::Error| {
        CliError::failed("cannot start a server process").with_source(error)
    };
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
    if let Some(budget) = args.budget {
        command.arg("--budget").arg(budget.decimal());
    }
    if let Some(config) = &global.config {
        command.arg("--config").arg(config);
    }
    if let Some(otlp) = &global.otlp {
        command.arg("--otlp").arg(otlp);
    }
    // Ctrl-C in the terminal reaches only the frontend; the parts end when it closes their socket,
    // and clean up.
    command.process_group(0).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    let mut child = command.spawn().map_err(cannot)?;
    // `command` keeps the other end of the socket open, which would hide that the process has
    // exited.
    drop(command);
    if wait_until_ready(&mut ours).map_err(cannot)? {
        return Ok(ours);
    }
    let ended = child.wait().map_err(cannot)?;
    let exit = if ended.code() == Some(2) { CliExit::Usage } else { CliExit::Failed };
    Err(CliError::new(exit, "a server process did not start").with_hint("see its error above"))
}

fn confine_process(
    args: &McpArgs,
    workspace: &Path,
    state: &Path,
) -> Result<Vec<&'static str>, CliError> {
    match confine(workspace, state) {
        Ok(denied) => Ok(denied),
        Err(error) if args.allow_unconfined => {
            let why = error.failure().detail;
            terminal::note(&format!(
                "{YELLOW}warning: the server is not confined: {why}{YELLOW:#}\n"
            ));
            Ok(Vec::new())
        }
        Err(error) => {
            let fix = match error {
                SandboxError::LandlockDisabled => "add `landlock` to the `lsm=` boot parameter",
                _ => "use Linux 6.7 or newer",
            };
            Err(CliError::failed("cannot confine the server")
                .with_source(error)
                .with_hint(format!("{fix}, or run without confinement with `--allow-unconfined`")))
        }
    }
}

fn print_denied(denied: &[&str]) -> anyhow::Result<CliExit> {
    if denied.is_empty() {
        return Ok(CliExit::VerdictNegative);
    }
    let mut text = String::from("the process that agents talk to cannot:\n");
    for what in denied {
        text.push_str(&format!("  {GREEN}{what}{GREEN:#}\n"));
    }
    terminal::print(&text)?;
    Ok(CliExit::Fine)
}
