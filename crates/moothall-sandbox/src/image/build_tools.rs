//! Runs the host programs that build an image.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::SandboxError;

/// Time limit for one program. Downloads may be slow.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(45 * 60);

/// How much of a program's output is kept. The end is kept because it has the error message.
const OUTPUT_TAIL_BYTES: usize = 16 * 1024;

/// Environment variables passed to programs. Others could change their output.
const ALLOWED_VARIABLES: [&str; 8] = [
    "HOME",
    "PATH",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Finds and starts programs.
#[derive(Debug, Clone)]
pub(crate) struct BuildTools {
    environment: BTreeMap<String, OsString>,
}

/// Result of a program.
#[derive(Debug)]
pub(crate) struct ToolOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl BuildTools {
    /// Takes the allowed variables from `environment`.
    pub(crate) fn new(environment: &BTreeMap<String, OsString>) -> Self {
        let allowed =
            environment.iter().filter(|(name, _)| ALLOWED_VARIABLES.contains(&name.as_str()));
        let mut environment: BTreeMap<_, _> =
            allowed.map(|(name, value)| (name.clone(), value.clone())).collect();
        // Some tools call programs that are installed in `sbin` folders.
        let mut path = environment.remove("PATH").unwrap_or_default();
        if !path.is_empty() {
            path.push(":");
        }
        path.push("/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin");
        environment.insert("PATH".to_owned(), path);
        environment.insert("LC_ALL".to_owned(), "C.UTF-8".into());
        Self { environment }
    }

    pub(crate) fn find(&self, program: &str) -> Result<PathBuf, SandboxError> {
        let path = self.environment.get("PATH").map(OsString::as_os_str).unwrap_or_default();
        let is_program = |path: &PathBuf| {
            path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        };
        std::env::split_paths(path)
            .map(|folder| folder.join(program))
            .find(is_program)
            .ok_or_else(|| SandboxError::Missing { program: program.to_owned() })
    }

    /// Returns the first word that starts with a digit in the first line of the program's version
    /// output.
    pub(crate) async fn version(&self, program: &str, flag: &str) -> Result<String, SandboxError> {
        let ran = self.run(self.command(self.find(program)?).arg(flag)).await?;
        let output = if ran.stdout.trim().is_empty() { &ran.stderr } else { &ran.stdout };
        let line = output.lines().next().unwrap_or_default();
        let words = &mut line.split_whitespace();
        let version = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        Ok(version.unwrap_or("unknown").to_owned())
    }

    /// A command with only the allowed environment variables.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment);
        command
    }

    /// Runs a command to completion. Dropping the future kills it and its process group.
    pub(crate) async fn run(&self, command: &mut Command) -> Result<ToolOutput, SandboxError> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let broke = |error| SandboxError::host(format!("cannot run `{program}`"))(error);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(broke)?;
        let _group = ProcessGroupGuard(child.id());
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let (stdout, stderr, status) =
                tokio::join!(tail(&mut stdout), tail(&mut stderr), child.wait());
            Ok(ToolOutput { status: status?, stdout: stdout?, stderr: stderr? })
        };
        match tokio::time::timeout(COMMAND_TIMEOUT, work).await {
            Ok(ran) => ran.map_err(broke),
            Err(_) => Err(broke(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }

    /// Runs a command that must succeed. `what` is the error message if it fails.
    pub(crate) async fn run_checked(
        &self,
        what: &str,
        command: &mut Command,
    ) -> Result<ToolOutput, SandboxError> {
        let ran = self.run(command).await?;
        if ran.status.success() {
            return Ok(ran);
        }
        let output = last_lines(&ran.stderr, 12);
        Err(SandboxError::host(what)(io::Error::other(format!("{}\n{output}", ran.status))))
    }
}

/// Kills a process group on drop. After a normal exit the group is empty.
struct ProcessGroupGuard(Option<u32>);

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        let pid = self.0.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails if the group is already gone.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// Reads a stream to its end and keeps the last [`OUTPUT_TAIL_BYTES`].
async fn tail(stream: &mut Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; OUTPUT_TAIL_BYTES];
    while let Some(stream) = stream {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(OUTPUT_TAIL_BYTES);
        kept.drain(..surplus);
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
#[path = "build_tools_tests.rs"]
mod tests;
