//! Runs moothall commands for an agent whose process cannot run anything itself.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_mcp::{
    CheckTextOut, CheckTextToolArgs, FactsOut, FactsToolArgs, IpcRequest, IpcResponse,
    SandboxRunOut, SandboxRunToolArgs, ToolName,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::GlobalArgs;
use crate::error::CliError;

/// Limit for commands per hour; stops an agent that loops.
const MOST_PER_HOUR: usize = 240;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Limit for the output that is read.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;

pub(crate) struct CommandRunner {
    program: PathBuf,
    config: Option<PathBuf>,
    begun: Mutex<VecDeque<Instant>>,
}

struct CommandOutput {
    stdout: String,
    stderr: String,
}

impl CommandRunner {
    pub(crate) fn new(global: &GlobalArgs) -> Result<Self, CliError> {
        let program = std::env::current_exe().map_err(|error| {
            CliError::failed("cannot find the moothall executable").with_source(error)
        })?;
        Ok(Self { program, config: global.config.clone(), begun: Mutex::default() })
    }

    pub(crate) fn answer(&self, ask: IpcRequest) -> IpcResponse {
        let IpcRequest::Call { tool, arguments, .. } = ask else {
            return IpcResponse::Broken { words: "the runner has no draft tools".to_owned() };
        };
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if !begin(&mut begun, Instant::now()) {
            let words = format!("too many commands per hour (limit: {MOST_PER_HOUR})");
            let hint = "continue without it, or try again later".to_owned();
            return IpcResponse::Refused { words, hint: Some(hint) };
        }
        drop(begun);
        let arguments = Value::Object(arguments);
        let answered = match tool {
            ToolName::SandboxRun => read(arguments).and_then(|args| self.sandbox_run(&args)),
            ToolName::Facts => read(arguments).and_then(|args| self.facts(&args)),
            ToolName::Check => read(arguments).and_then(|args| self.check(&args)),
            _ => Err("the runner has no draft tools".to_owned()),
        };
        answered.unwrap_or_else(|words| IpcResponse::Refused { words, hint: None })
    }

    fn sandbox_run(&self, args: &SandboxRunToolArgs) -> Result<IpcResponse, String> {
        let broken = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(broken)?;
        let file = folder.path().join("main.py");
        fs_err::write(&file, &args.program).map_err(broken)?;
        let mut command = self.command(&["exec", "--json"]);
        command.arg(format!("--timeout={}", args.timeout_s)).arg(&file).arg("--").args(&args.args);
        let ran = finish(command, &args.stdin)?;
        let told = value_of(&ran)?;
        let text = |at: &Value| at.as_str().unwrap_or_default().to_owned();
        let out = SandboxRunOut {
            exit: text(&told["exit"]["exit"]),
            code: told["exit"]["code"].as_i64(),
            stdout: text(&told["stdout"]["text"]),
            stderr: text(&told["stderr"]["text"]),
            isolation: text(&told["attestation"]["class"]),
        };
        Ok(IpcResponse::done(&out))
    }

    fn facts(&self, args: &FactsToolArgs) -> Result<IpcResponse, String> {
        let mut command = self.command(&["facts"]);
        if let Some(day) = &args.as_of {
            command.arg(format!("--as-of={day}"));
        }
        command.arg("--").arg(&args.ticker);
        let ran = finish(command, "")?;
        match ran.stdout.is_empty() {
            true => Err(ran.stderr),
            false => Ok(IpcResponse::done(&FactsOut { sheet: ran.stdout })),
        }
    }

    fn check(&self, args: &CheckTextToolArgs) -> Result<IpcResponse, String> {
        let mut command = self.command(&["check", "--json"]);
        command.arg(format!("--facts={}", args.ticker)).arg("-");
        let told = value_of(&finish(command, &args.text)?)?;
        let out: CheckTextOut = serde_json::from_value(told).map_err(|error| error.to_string())?;
        Ok(IpcResponse::done(&out))
    }

    /// A moothall command. Input from the agent is always a single argument, never a flag.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--color=never");
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command
    }
}

/// Records a start. Returns `false` if the limit is reached.
fn begin(begun: &mut VecDeque<Instant>, now: Instant) -> bool {
    begun.retain(|at| now.duration_since(*at) < HOUR);
    let may = begun.len() < MOST_PER_HOUR;
    if may {
        begun.push_back(now);
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

fn value_of(ran: &CommandOutput) -> Result<Value, String> {
    serde_json::from_str(&ran.stdout).map_err(|_| ran.stderr.trim().to_owned())
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
