//! The commands of the tour, as child processes of this program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal as ProcessSignal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::demo_folder::DemoFolder;
use crate::app_dirs::DATA_DIR_VARIABLE;
use crate::args::{ColorWhen, GlobalArgs};
use crate::error::CliError;

/// How long a program in a sandbox may take to remove it after an interruption.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(4);

/// Settings of the user that must not change the tour. Keys are not needed, and an invalid one
/// would be an error.
const IGNORED_PREFIXES: [&str; 2] = ["MOOTHALL_", "OTEL_"];
const IGNORED_SUFFIX: &str = "_API_KEY";

/// Whose settings and data a command uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepScope {
    /// The directory of the tour.
    Tour,
    /// The user's configuration, images and working directory: for sandboxes.
    User,
}

/// Prepares a command in its own process group, so that Ctrl-C reaches only the tour.
pub(crate) fn command(
    global: &GlobalArgs,
    folder: &DemoFolder,
    scope: StepScope,
    arguments: &[&str],
) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).args(global_flags(global));
    command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    match scope {
        StepScope::Tour => {
            for (name, _) in std::env::vars_os() {
                let shown = name.to_string_lossy();
                if IGNORED_PREFIXES.iter().any(|prefix| shown.starts_with(prefix))
                    || shown.ends_with(IGNORED_SUFFIX)
                {
                    command.env_remove(&name);
                }
            }
            command
                .current_dir(folder.path())
                .env(DATA_DIR_VARIABLE, folder.data())
                .env("XDG_CONFIG_HOME", folder.config())
                // The tour downloads nothing.
                .env("MOOTHALL_ISOLATION__BUILD", "false");
        }
        StepScope::User => {
            if let Some(config) = &global.config {
                command.arg("--config").arg(config);
            }
        }
    }
    command
}

/// The path of this program. Without `/proc`, as in a plain chroot, the name it was started with.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| {
        let name = std::env::args_os().next().unwrap_or_else(|| OsString::from("moothall"));
        let path = PathBuf::from(&name);
        match path.components().count() {
            // Found in PATH.
            0 | 1 => path,
            _ => std::path::absolute(&path).unwrap_or(path),
        }
    })
}

fn global_flags(global: &GlobalArgs) -> Vec<&'static str> {
    let mut flags = match global.color {
        ColorWhen::Auto => Vec::new(),
        ColorWhen::Always => vec!["--color", "always"],
        ColorWhen::Never => vec!["--color", "never"],
    };
    flags.extend(global.quiet.then_some("--quiet"));
    flags
}

pub(crate) fn spawn(mut command: Command) -> Result<Child, CliError> {
    command.spawn().map_err(|error| {
        CliError::failed("cannot start a step of the demo")
            .with_source(error)
            .with_hint("check that the moothall executable was not moved or replaced")
    })
}

/// Stops a command. A program in a sandbox gets time to remove it.
pub(crate) async fn stop(child: &mut Child, scope: StepScope) {
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let (StepScope::User, Some(pid)) = (scope, pid) {
        let _ = kill_process(pid, ProcessSignal::INT);
        if tokio::time::timeout(CLEANUP_TIMEOUT, child.wait()).await.is_ok() {
            return;
        }
    }
    let _ = child.kill().await;
}

/// The exit code; 128 and the signal for a command that a signal ended, as in a shell.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Signals that end the tour. Its directory is removed also when the terminal is closed.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    pub(crate) fn listen() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CliError::failed("cannot listen for signals").with_source(error))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
