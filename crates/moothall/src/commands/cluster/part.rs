//! A process that outlives the command which started it.
//!
//! Its standard input is a file that it holds locked as long as it lives, and into which it wrote its
//! number before it became what it is. So whoever looks knows whether it lives, whoever was killed in
//! the middle of starting it has lost nothing, and no stranger with the same number is ever signalled.

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

/// Between two looks.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// How long the children of a process that was killed may hold its lock.
const UNTIL_FREE: Duration = Duration::from_secs(10);

/// How long a killed process may take to be gone.
const UNTIL_GONE: Duration = Duration::from_secs(10);

/// The end of a log that is shown to a person.
const LAST_WORDS: u64 = 2_000;

/// Says who it is, does not care about terminals, and becomes the program.
const BECOME: &str = r#"trap "" HUP && echo "$$" >&0 && exec "$@""#;

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) name: String,
    folder: PathBuf,
}

impl Part {
    pub(super) fn new(folder: &Path, name: impl Into<String>) -> Self {
        Self { name: name.into(), folder: folder.to_owned() }
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    fn lock(&self) -> PathBuf {
        self.folder.join(format!("{}.pid", self.name))
    }

    /// Who it is, where it lives.
    pub(super) fn pid(&self) -> Option<Pid> {
        let file = fs_err::File::open(self.lock()).ok()?;
        // Shared, so that nobody who looks is taken for the process.
        if flock(&file, FlockOperation::NonBlockingLockShared) != Err(Errno::WOULDBLOCK) {
            return None;
        }
        let pid = fs_err::read_to_string(self.lock()).ok()?.trim().parse().ok()?;
        Pid::from_raw(pid).filter(|pid| test_kill_process(*pid) != Err(Errno::SRCH))
    }

    pub(super) fn is_alive(&self) -> bool {
        self.pid().is_some()
    }

    /// Starts the program, with whatever else is said about it, in a group of its own: Ctrl-C here is
    /// none of its business.
    pub(super) async fn start(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item: AsRef<OsStr>>,
        more: impl FnOnce(&mut Command),
    ) -> Result<(), CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!("{} cannot be started", self.name)).with_source(error)
        };
        let lock = self.locked().await?;
        lock.set_len(0).map_err(failed)?;
        let log = own_file().append(true).open(self.log()).map_err(failed)?;
        let errors = log.try_clone().map_err(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", BECOME, "sh"]).arg(program).args(arguments).process_group(0);
        command.stdin(Stdio::from(lock)).stdout(log).stderr(errors);
        more(&mut command);
        // Nobody waits for it: it is init's when we are gone.
        command.spawn().map(drop).map_err(failed)
    }

    async fn locked(&self) -> Result<File, CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!("{} cannot be started", self.name)).with_source(error)
        };
        let file = own_file().read(true).write(true).open(self.lock()).map_err(failed)?;
        let until = Instant::now() + UNTIL_FREE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => sleep(LOOK).await,
                Err(error) => {
                    return Err(failed(error.into())
                        .with_hint("a process that it started is still there; try again later"));
                }
            }
        }
    }

    /// Asks it to end, waits, and ends it. Returns whether there was anything to end.
    pub(super) async fn stop(&self, ask: Signal, patience: Duration) -> Result<bool, CliError> {
        for (signal, patience) in [(ask, patience), (Signal::KILL, UNTIL_GONE)] {
            let Some(pid) = self.pid() else { return Ok(signal != ask) };
            match kill_process(pid, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => {
                    let words = format!("{} (process {pid}) cannot be ended", self.name);
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
        Err(CliError::failed(format!("{} does not end", self.name)))
    }

    /// Waits until it is well. One that ends before says why in its log.
    pub(super) async fn until_well(
        &self,
        patience: Duration,
        mut is_well: impl AsyncFnMut() -> bool,
    ) -> Result<(), CliError> {
        let until = Instant::now() + patience;
        // It writes its number a moment after it was started.
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
            true => format!("{} is not well after {} seconds", self.name, patience.as_secs()),
            false => format!("{} ended by itself", self.name),
        };
        Err(CliError::failed(words).with_hint(format!(
            "its log is {}, and ends with\n{}",
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

/// A file that is nobody else's to read.
fn own_file() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).mode(0o600);
    options
}
