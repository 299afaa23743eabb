//! Runs programs and moothall commands for an agent whose process cannot run anything itself.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_core::MicroUsd;
use moothall_core::sandbox::{ExecuteRequest, ExecutionExit, InvalidGuestPath};
use moothall_mcp::{
    CheckTextOut, CheckTextToolArgs, FactsOut, FactsToolArgs, IpcRequest, IpcResponse,
    RunStatusOut, SandboxRunOut, SandboxRunToolArgs, ToolName,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle;

use super::consultations::AgentConsultations;
use crate::args::GlobalArgs;
use crate::error::CliError;
use crate::{config, isolation};

/// Limit for commands per hour; stops an agent that loops.
const MAX_COMMANDS_PER_HOUR: usize = 240;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Limit for the output that is read.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;

/// Limit for a program's seconds, as the schema of the tool says.
const MAX_SECONDS: u64 = 600;
/// Limit for the program and for its standard input.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Limit for the arguments together, which the kernel enforces too.
const MAX_ARGS_BYTES: usize = 128 << 10;
/// The image of the programs.
const IMAGE: &str = "python";

pub(crate) struct CommandRunner {
    runtime: Handle,
    program: PathBuf,
    config: Option<PathBuf>,
    starts: Mutex<VecDeque<Instant>>,
    consultations: AgentConsultations,
}

struct CommandOutput {
    stdout: String,
    stderr: String,
}

impl CommandRunner {
    /// `budget` limits the cost of all consultations together.
    pub(crate) fn new(
        global: &GlobalArgs,
        runtime: Handle,
        budget: MicroUsd,
    ) -> Result<Self, CliError> {
        let program = std::env::current_exe().map_err(|error| {
            CliError::failed("cannot find the moothall executable").with_source(error)
        })?;
        let config = global.config.clone();
        let consultations = AgentConsultations::new(program.clone(), config.clone(), budget);
        Ok(Self { runtime, program, config, starts: Mutex::default(), consultations })
    }

    pub(crate) fn answer(&self, ask: IpcRequest) -> IpcResponse {
        let IpcRequest::Call { tool, arguments, .. } = ask else {
            return IpcResponse::Broken { words: "the runner has no draft tools".to_owned() };
        };
        if tool == ToolName::RunStatus {
            // Reading is not limited: a waiting call polls.
            return read(Value::Object(arguments)).map_or_else(refusal, |args| {
                answer_of(self.runtime.block_on(self.consultations.status(&args)))
            });
        }
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        if !try_start(&mut starts, Instant::now()) {
            let words = format!("too many commands per hour (limit: {MAX_COMMANDS_PER_HOUR})");
            let hint = "continue without it, or try again later".to_owned();
            return IpcResponse::Refused { words, hint: Some(hint) };
        }
        drop(starts);
        let arguments = Value::Object(arguments);
        let answered = match tool {
            ToolName::SandboxRun => read(arguments).and_then(|args| self.sandbox_run(&args)),
            ToolName::Facts => read(arguments).and_then(|args| self.facts(&args)),
            ToolName::Check => read(arguments).and_then(|args| self.check(&args)),
            ToolName::Consult => read(arguments).map(|args| {
                answer_of(self.runtime.block_on(Box::pin(self.consultations.start(args))))
            }),
            _ => Err("the runner has no draft tools".to_owned()),
        };
        answered.unwrap_or_else(refusal)
    }

    /// Runs in this process, which keeps a sandbox ready.
    fn sandbox_run(&self, args: &SandboxRunToolArgs) -> Result<IpcResponse, String> {
        if !(1..=MAX_SECONDS).contains(&args.timeout_s) {
            return Err(format!("`timeout_s` must be from 1 to {MAX_SECONDS} seconds"));
        }
        let args_bytes = args.args.iter().map(String::len).sum::<usize>();
        for (name, bytes, max_bytes) in [
            ("program", args.program.len(), MAX_TEXT_BYTES),
            ("stdin", args.stdin.len(), MAX_TEXT_BYTES),
            ("args", args_bytes, MAX_ARGS_BYTES),
        ] {
            if bytes > max_bytes {
                return Err(format!("`{name}` has {bytes} bytes (limit: {max_bytes})"));
            }
        }
        let work = async {
            let loaded = config::load(self.config.as_deref(), toml::Table::new())?;
            let policy = isolation::policy(&loaded, None, false)?;
            let path = "main.py".parse().map_err(|error: InvalidGuestPath| {
                CliError::failed("the file name of the program is not valid").with_source(error)
            })?;
            let mut request = ExecuteRequest::python(IMAGE, path, args.program.clone());
            request.argv.extend_from_slice(&args.args);
            request.stdin = args.stdin.clone();
            request.limits = isolation::limits_with_timeout(args.timeout_s);
            let labels = [("project", "moothall"), ("purpose", "program of an agent")];
            isolation::execute(&loaded, &policy, &labels, &request, &BTreeMap::new(), None).await
        };
        Ok(match self.runtime.block_on(work) {
            Ok((execution, _)) => IpcResponse::done(&SandboxRunOut {
                exit: exit_kind(&execution.exit).to_owned(),
                code: match execution.exit {
                    ExecutionExit::Exited { code } => Some(code.into()),
                    _ => None,
                },
                stdout: execution.stdout.text,
                stderr: execution.stderr.text,
                isolation: execution.attestation.class.to_string(),
            }),
            Err(error) => IpcResponse::Refused { words: error.full_message(), hint: error.hint },
        })
    }

    fn facts(&self, args: &FactsToolArgs) -> Result<IpcResponse, String> {
        let mut command = self.command(&["facts"]);
        if let Some(day) = &args.as_of {
            command.arg(format!("--as-of={day}"));
        }
        command.arg("--").arg(&args.ticker);
        let output = finish(command, "")?;
        match output.stdout.is_empty() {
            true => Err(output.stderr),
            false => Ok(IpcResponse::done(&FactsOut { sheet: output.stdout })),
        }
    }

    fn check(&self, args: &CheckTextToolArgs) -> Result<IpcResponse, String> {
        let mut command = self.command(&["check", "--json"]);
        command.arg(format!("--facts={}", args.ticker)).arg("-");
        let report = value_of(&finish(command, &args.text)?)?;
        let out: CheckTextOut =
            serde_json::from_value(report).map_err(|error| error.to_string())?;
        Ok(IpcResponse::done(&out))
    }

    /// A moothall command. Input from the agent is always a single argument, never a flag.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--color=never");
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command
    }
}

fn refusal(words: String) -> IpcResponse {
    IpcResponse::Refused { words, hint: None }
}

fn answer_of(result: Result<RunStatusOut, CliError>) -> IpcResponse {
    match result {
        Ok(status) => IpcResponse::done(&status),
        Err(error) => IpcResponse::Refused { words: error.full_message(), hint: error.hint },
    }
}

/// The exit kind, spelled as in the tool's schema.
fn exit_kind(exit: &ExecutionExit) -> &'static str {
    match exit {
        ExecutionExit::Exited { .. } => "exited",
        ExecutionExit::Signalled { .. } => "signalled",
        ExecutionExit::TimedOut => "timed_out",
        ExecutionExit::OutOfMemory => "out_of_memory",
        ExecutionExit::SandboxDied { .. } => "sandbox_died",
    }
}

/// Records a start. Returns `false` if the limit is reached.
fn try_start(starts: &mut VecDeque<Instant>, now: Instant) -> bool {
    starts.retain(|at| now.duration_since(*at) < HOUR);
    let may = starts.len() < MAX_COMMANDS_PER_HOUR;
    if may {
        starts.push_back(now);
    }
    may
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| format!("invalid arguments: {error}"))
}

/// Waits for a command. The exit code is ignored, because a negative verdict is a valid answer.
fn finish(mut command: Command, input: &str) -> Result<CommandOutput, String> {
    let broken = |error: std::io::Error| error.to_string();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(broken)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // All three pipes are served concurrently, because a full pipe would block the others.
    let (stdout, stderr) = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stdin.map(|mut pipe| pipe.write_all(input.as_bytes()));
        });
        let stderr = scope.spawn(move || read(stderr.map(|pipe| Box::new(pipe) as _)));
        let stdout = read(stdout.map(|pipe| Box::new(pipe) as _));
        (stdout, stderr.join().unwrap_or_default())
    });
    child.wait().map_err(broken)?;
    Ok(CommandOutput { stdout, stderr })
}

fn value_of(output: &CommandOutput) -> Result<Value, String> {
    serde_json::from_str(&output.stdout).map_err(|_| output.stderr.trim().to_owned())
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
