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
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// How long child processes of a killed process may keep its lock.
const UNTIL_FREE: Duration = Duration::from_secs(10);

/// How long a killed process may take to exit.
const UNTIL_GONE: Duration = Duration::from_secs(10);

/// Bytes of the log's end that are shown in errors.
const LAST_WORDS: u64 = 2_000;

/// Ignores SIGHUP, writes the PID to standard input (the lock file) and executes the program.
const BECOME: &str = r#"trap "" HUP && echo "$$" >&0 && exec "$@""#;

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
        self.written_pid().filter(|pid| test_kill_process(*pid) != Err(Errno::SRCH))
    }

    /// The PID of the last start.
    fn written_pid(&self) -> Option<Pid> {
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
        more: impl FnOnce(&mut Command),
    ) -> Result<(), CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!("cannot start {}", self.name)).with_source(error)
        };
        let lock = self.locked().await?;
        self.until_reaped().await;
        lock.set_len(0).map_err(failed)?;
        let log = own_file().append(true).open(self.log()).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", BECOME, "sh"]).arg(program).args(arguments).process_group(0);
        command.stdin(Stdio::from(lock)).stdout(log).stderr(errors);
        more(&mut command);
        // Not waited for: init adopts it when this process exits.
        command.spawn().map(drop).map_err(failed)
    }

    async fn locked(&self) -> Result<File, CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!("cannot start {}", self.name)).with_source(error)
        };
        let file = own_file().read(true).write(true).open(self.lock()).map_err(failed)?;
        let until = Instant::now() + UNTIL_FREE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => sleep(LOOK).await,
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
    async fn until_reaped(&self) {
        let Some(before) = self.written_pid() else { return };
        let until = Instant::now() + UNTIL_GONE;
        while test_kill_process(before).is_ok() && Instant::now() < until {
            sleep(LOOK).await;
        }
    }

    /// Sends the signal, waits, then kills. Returns whether a process was running.
    pub(crate) async fn stop(&self, ask: Signal, patience: Duration) -> Result<bool, CliError> {
        for (signal, patience) in [(ask, patience), (Signal::KILL, UNTIL_GONE)] {
            let Some(pid) = self.pid() else { return Ok(signal != ask) };
            match kill_process(pid, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => {
                    let words = format!("cannot stop {} (process {pid})", self.name);
                    let error = std::io::Error::from(error);
                    return Err(CliError::failed(words).with_source(error));
                }
            }
            let until = Instant::now() + patience;
            while self.is_alive() && Instant::now() < until {
                sleep(LOOK).await;
            }
            if !self.is_alive() {
                return Ok(true);
            }
        }
        Err(CliError::failed(format!("{} does not stop", self.name)))
    }

    /// Waits until the process is healthy. If it exits first, the error shows the end of its log.
    pub(crate) async fn until_well(
        &self,
        patience: Duration,
        mut is_well: impl AsyncFnMut() -> bool,
    ) -> Result<(), CliError> {
        let until = Instant::now() + patience;
        // The PID is written shortly after the start.
        let mut seen_alive = false;
        while Instant::now() < until {
            let is_alive = self.is_alive();
            if seen_alive && !is_alive {
                break;
            }
            seen_alive |= is_alive;
            if is_alive && is_well().await {
                return Ok(());
            }
            sleep(LOOK).await;
        }
        let words = match self.is_alive() {
            true => format!("{} is not healthy after {} seconds", self.name, patience.as_secs()),
            false => format!("{} exited unexpectedly", self.name),
        };
        Err(CliError::failed(words).with_hint(format!(
            "the log is {}; it ends with\n{}",
            self.log().display(),
            self.last_words()
        )))
    }

    fn last_words(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut log = fs_err::File::open(self.log())?;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
            let mut end = Vec::new();
            log.read_to_end(&mut end)?;
            Ok(end)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }
}

/// Options for a file that only its owner can read.
fn own_file() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).mode(0o600);
    options
}
