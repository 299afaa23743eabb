//! A process that outlives the command that started it.
//!
//! Its standard input is a file that it keeps locked while it lives and that contains its PID. The
//! lock shows whether the process is alive, an interrupted start loses nothing, and a signal never
//! reaches another process that has reused the PID.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::{Instant, sleep};

use crate::error::CliError;

/// Polling interval.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long child processes of a killed process may keep its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a killed process may take to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the log's end that are shown in errors.
const LOG_TAIL_BYTES: u64 = 2_000;

/// Ignores SIGHUP, writes the PID to standard input (the lock file) and executes the program.
const START_SCRIPT: &str = r#"trap "" HUP && echo "$$" >&0 && exec "$@""#;

#[derive(Debug, Clone)]
pub(crate) struct ClusterProcess {
    pub(crate) name: String,
    folder: PathBuf,
}

impl ClusterProcess {
    pub(crate) fn new(folder: &Path, name: impl Into<String>) -> Self {
        Self { name: name.into(), folder: folder.to_owned() }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    fn lock(&self) -> PathBuf {
        self.folder.join(format!("{}.pid", self.name))
    }

    /// The PID of the running process.
    pub(crate) fn pid(&self) -> Option<Pid> {
        let file = fs_err::File::open(self.lock()).ok()?;
        // Shared, so that concurrent readers do not mistake each other for the process.
        if flock(&file, FlockOperation::NonBlockingLockShared) != Err(Errno::WOULDBLOCK) {
            return None;
        }
        self.recorded_pid().filter(|pid| test_kill_process(*pid) != Err(Errno::SRCH))
    }

    /// The PID of the last start.
    fn recorded_pid(&self) -> Option<Pid> {
        let pid = fs_err::read_to_string(self.lock()).ok()?.trim().parse().ok()?;
        Pid::from_raw(pid)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.pid().is_some()
    }

    /// Starts the program in its own process group, so that Ctrl-C does not reach it.
    pub(crate) async fn start(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        configure: impl FnOnce(&mut Command),
    ) -> Result<(), CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!("cannot start {}", self.name)).with_source(error)
        };
        let lock = self.acquire_lock().await?;
        self.wait_until_reaped().await;
        lock.set_len(0).map_err(failed)?;
        let log = private_file().append(true).open(self.log()).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", START_SCRIPT, "sh"]).arg(program).args(arguments).process_group(0);
        command.stdin(Stdio::from(lock)).stdout(log).stderr(errors);
        configure(&mut command);
        // Not waited for: init adopts it when this process exits.
        command.spawn().map(drop).map_err(failed)
    }

    async fn acquire_lock(&self) -> Result<File, CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!("cannot start {}", self.name)).with_source(error)
        };
        let file = private_file().read(true).write(true).open(self.lock()).map_err(failed)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
                Err(error) => {
                    return Err(failed(error.into()).with_hint(
                        "one of its child processes is still running; try again later",
                    ));
                }
            }
        }
    }

    /// A killed process keeps its PID until init reaps it, and PostgreSQL refuses to start while
    /// that PID exists. Another process may have reused the PID, so the wait is bounded.
    async fn wait_until_reaped(&self) {
        let Some(before) = self.recorded_pid() else { return };
        let deadline = Instant::now() + KILL_TIMEOUT;
        while test_kill_process(before).is_ok() && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Sends the signal, waits, then kills. Returns whether a process was running.
    pub(crate) async fn stop(
        &self,
        stop_signal: Signal,
        timeout: Duration,
    ) -> Result<bool, CliError> {
        for (signal, timeout) in [(stop_signal, timeout), (Signal::KILL, KILL_TIMEOUT)] {
            let Some(pid) = self.pid() else { return Ok(signal != stop_signal) };
            match kill_process(pid, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => {
                    let message = format!("cannot stop {} (process {pid})", self.name);
                    let error = std::io::Error::from(error);
                    return Err(CliError::failed(message).with_source(error));
                }
            }
            let deadline = Instant::now() + timeout;
            while self.is_alive() && Instant::now() < deadline {
                sleep(POLL_INTERVAL).await;
            }
            if !self.is_alive() {
                return Ok(true);
            }
        }
        Err(CliError::failed(format!("{} still runs after it was killed", self.name))
            .with_hint("wait a moment, then run `moothall cluster down` again"))
    }

    /// Waits until the process is healthy. If it exits first, the error shows the end of its log.
    pub(crate) async fn wait_until_healthy(
        &self,
        timeout: Duration,
        mut is_healthy: impl AsyncFnMut() -> bool,
    ) -> Result<(), CliError> {
        let deadline = Instant::now() + timeout;
        // The PID is written shortly after the start.
        let mut seen_alive = false;
        while Instant::now() < deadline {
            let is_alive = self.is_alive();
            if seen_alive && !is_alive {
                break;
            }
            seen_alive |= is_alive;
            if is_alive && is_healthy().await {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
        let message = match self.is_alive() {
            true => format!("{} is not healthy after {} seconds", self.name, timeout.as_secs()),
            false => format!("{} exited unexpectedly", self.name),
        };
        Err(CliError::failed(message).with_hint(format!(
            "the log is {}; it ends with\n{}",
            self.log().display(),
            self.log_tail()
        )))
    }

    fn log_tail(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut log = fs_err::File::open(self.log())?;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
            let mut end = Vec::new();
            log.read_to_end(&mut end)?;
            Ok(end)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// Options for a file that only its owner can read.
fn private_file() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).mode(0o600);
    options
}
