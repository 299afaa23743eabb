//! Programs that print an API key, such as the command line of a password manager.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use moothall_core::model::{FailureKind, ModelFailure};
use moothall_core::text::sanitize_line;
use moothall_models::settings::ProviderSettings;
use moothall_models::{ApiKey, KeyFuture, KeyResolver};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::to_secret;
use crate::error::CliError;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Access tokens have about 2 KB.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Of standard error; only its last line is shown.
const MAX_ERROR_BYTES: usize = 4 * 1024;
const MAX_HINT_CHARS: usize = 160;

/// A program that prints a secret on standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyProgram {
    /// The setting that names it, such as `provider.openai.key_command`.
    setting: String,
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
    /// Variables with keys of providers, which the program does not need.
    hidden: Vec<String>,
}

impl KeyProgram {
    pub(crate) fn new(
        setting: String,
        command: &str,
        settings: &ProviderSettings,
        hidden: Vec<String>,
    ) -> Result<Self, CliError> {
        let words = match settings.key_command_shell {
            Some(true) if !command.trim().is_empty() => {
                Some(["sh", "-c", command].map(str::to_owned).to_vec())
            }
            _ => shlex::split(command),
        };
        let mut words = words.unwrap_or_default().into_iter();
        let Some(program) = words.next() else {
            return Err(CliError::usage(format!("`{setting}` is not a command"))
                .with_hint("write a program and its arguments, with matching quotes"));
        };
        let timeout = settings.key_command_timeout.unwrap_or(DEFAULT_TIMEOUT);
        Ok(Self { setting, program, arguments: words.collect(), timeout, hidden })
    }

    /// Identifies the program in a cache.
    pub(crate) fn id(&self) -> String {
        format!("{self:?}")
    }

    /// Runs the program and returns its output, or what went wrong.
    pub(crate) async fn run(&self) -> Result<ApiKey, String> {
        let setting = &self.setting;
        let output = match tokio::time::timeout(self.timeout, self.output()).await {
            Ok(output) => output?,
            Err(_) => {
                let limit = humantime::format_duration(self.timeout);
                return Err(format!("`{setting}` did not finish within {limit}"));
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let ended = match output.status.code() {
                Some(code) => format!("failed with exit code {code}"),
                None => "was ended by a signal".to_owned(),
            };
            let hint = last_line(&output.stderr, text.trim());
            return Err(format!("`{setting}` {ended}{hint}"));
        }
        match to_secret(&text, &format!("the output of `{setting}`")) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => Err(format!("`{setting}` printed nothing")),
            Err(error) => Err(error.message),
        }
    }

    async fn output(&self) -> Result<ProgramOutput, String> {
        let setting = &self.setting;
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for variable in &self.hidden {
            command.env_remove(variable);
        }
        let mut child = command
            .spawn()
            .map_err(|error| format!("`{setting}` cannot be started: {}", error.kind()))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let failed = |error: std::io::Error| format!("`{setting}` failed: {}", error.kind());
        let stdout = async {
            let mut bytes = Vec::new();
            if let Some(stdout) = stdout {
                let limit = MAX_OUTPUT_BYTES as u64 + 1;
                stdout.take(limit).read_to_end(&mut bytes).await.map_err(failed)?;
            }
            match bytes.len() > MAX_OUTPUT_BYTES {
                true => {
                    Err(format!("`{setting}` printed more than {} KiB", MAX_OUTPUT_BYTES >> 10))
                }
                false => Ok(bytes),
            }
        };
        let stderr = async {
            match stderr {
                Some(stderr) => read_end(stderr).await.map_err(failed),
                None => Ok(Vec::new()),
            }
        };
        let status = async { child.wait().await.map_err(failed) };
        let (stdout, stderr, status) = tokio::try_join!(stdout, stderr, status)?;
        Ok(ProgramOutput { stdout, stderr, status })
    }
}

struct ProgramOutput {
    stdout: Vec<u8>,
    /// Only the end.
    stderr: Vec<u8>,
    status: ExitStatus,
}

/// Reads everything and keeps the end, so that a program that writes a lot is not stopped.
async fn read_end(mut pipe: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let read = pipe.read(&mut piece).await?;
        if read == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&piece[..read]);
        let excess = kept.len().saturating_sub(MAX_ERROR_BYTES);
        kept.drain(..excess);
    }
}

/// The last line of standard error, without anything that the program printed as the secret.
fn last_line(stderr: &[u8], output: &str) -> String {
    let text = String::from_utf8_lossy(stderr);
    let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let line = if output.is_empty() { line.to_owned() } else { line.replace(output, "***") };
    let line: String = sanitize_line(line.trim()).chars().take(MAX_HINT_CHARS).collect();
    format!(": {line}")
}

impl KeyResolver for KeyProgram {
    fn resolve(&self) -> KeyFuture<'_> {
        Box::pin(async {
            self.run().await.map_err(|detail| ModelFailure::new(FailureKind::Auth, detail))
        })
    }
}

#[cfg(test)]
#[path = "key_program_tests.rs"]
mod tests;
