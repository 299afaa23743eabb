//! The runner: commands of this program, run for an agent that may not run anything.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use moothall_mcp::{
    Answer, Ask, CheckTextArgs, CheckTextOut, FactsArgs, FactsOut, SandboxRunArgs, SandboxRunOut,
    ToolName,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::Global;
use crate::error::CliError;

/// The most commands that are begun within an hour: an agent in a circle is told so.
const MOST_PER_HOUR: usize = 240;
const HOUR: Duration = Duration::from_secs(60 * 60);
/// The most that is read of what a command prints.
const MAX_OUTPUT_BYTES: u64 = 8 << 20;

pub(super) struct Runner {
    program: PathBuf,
    config: Option<PathBuf>,
    begun: Mutex<VecDeque<Instant>>,
}

/// What a command came to.
struct Ran {
    stdout: String,
    stderr: String,
}

impl Runner {
    pub(super) fn new(global: &Global) -> Result<Self, CliError> {
        let program = std::env::current_exe()
            .map_err(|error| CliError::failed("this program cannot be found").with_source(error))?;
        Ok(Self { program, config: global.config.clone(), begun: Mutex::default() })
    }

    pub(super) fn answer(&self, ask: Ask) -> Answer {
        let Ask::Call { tool, arguments, .. } = ask else {
            return Answer::Broken { words: "the runner holds no drafts".to_owned() };
        };
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if !begin(&mut begun, Instant::now()) {
            let words = format!("commands within an hour: {MOST_PER_HOUR} are the most");
            let hint = "go on without, or wait a while".to_owned();
            return Answer::Refused { words, hint: Some(hint) };
        }
        drop(begun);
        let arguments = Value::Object(arguments);
        let answered = match tool {
            ToolName::SandboxRun => read(arguments).and_then(|args| self.sandbox_run(&args)),
            ToolName::Facts => read(arguments).and_then(|args| self.facts(&args)),
            ToolName::Check => read(arguments).and_then(|args| self.check(&args)),
            _ => Err("the runner holds no drafts".to_owned()),
        };
        answered.unwrap_or_else(|words| Answer::Refused { words, hint: None })
    }

    fn sandbox_run(&self, args: &SandboxRunArgs) -> Result<Answer, String> {
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
        Ok(Answer::done(&out))
    }

    fn facts(&self, args: &FactsArgs) -> Result<Answer, String> {
        let mut command = self.command(&["facts"]);
        if let Some(day) = &args.as_of {
            command.arg(format!("--as-of={day}"));
        }
        command.arg("--").arg(&args.ticker);
        let ran = finish(command, "")?;
        match ran.stdout.is_empty() {
            true => Err(ran.stderr),
            false => Ok(Answer::done(&FactsOut { sheet: ran.stdout })),
        }
    }

    fn check(&self, args: &CheckTextArgs) -> Result<Answer, String> {
        let mut command = self.command(&["check", "--json"]);
        command.arg(format!("--facts={}", args.ticker)).arg("-");
        let told = value_of(&finish(command, &args.text)?)?;
        let out: CheckTextOut = serde_json::from_value(told).map_err(|error| error.to_string())?;
        Ok(Answer::done(&out))
    }

    /// A command of this program. What an agent says is one argument of it, and never a flag.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--color=never");
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command
    }
}

/// Counts a beginning; `false`: there were as many as there may be.
fn begin(begun: &mut VecDeque<Instant>, now: Instant) -> bool {
    begun.retain(|at| now.duration_since(*at) < HOUR);
    let may = begun.len() < MOST_PER_HOUR;
    if may {
        begun.push_back(now);
    }
    may
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments)
        .map_err(|error| format!("the arguments cannot be used: {error}"))
}

/// Runs a command to its end. A negative verdict is an answer, so its exit code says nothing here.
fn finish(mut command: Command, input: &str) -> Result<Ran, String> {
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
    // All three at once: a pipe that nobody reads or writes holds the others up.
    let (stdout, stderr) = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stdin.map(|mut pipe| pipe.write_all(input.as_bytes()));
        });
        let stderr = scope.spawn(move || read(stderr.map(|pipe| Box::new(pipe) as _)));
        let stdout = read(stdout.map(|pipe| Box::new(pipe) as _));
        (stdout, stderr.join().unwrap_or_default())
    });
    child.wait().map_err(broken)?;
    Ok(Ran { stdout, stderr })
}

fn value_of(ran: &Ran) -> Result<Value, String> {
    serde_json::from_str(&ran.stdout).map_err(|_| ran.stderr.trim().to_owned())
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
