//! A parked interpreter: started, with common modules imported, and waiting for a program.
//!
//! MicroVM templates are saved with one, so a clone runs a program without starting an interpreter,
//! which takes most of the time on an emulated CPU. The program must not be able to tell the
//! difference.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use moothall_core::guest::GuestRunRequest;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use serde_json::json;

use crate::error::{GuestError, GuestRefusal};
use crate::processes;
use crate::program::{self, ProgramStreams};
use crate::sys::ProcessRestrictions;

const LOADER: &str = include_str!("loader.py");

/// Default modules to import.
const DEFAULT_MODULES: &[&str] = &[
    "bisect",
    "collections",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "io",
    "itertools",
    "json",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
    "textwrap",
    "time",
    "traceback",
    "typing",
];

/// Time limit for an interpreter to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum size of a launch message. It fits into the pipe buffer, so the write never blocks.
const MAX_LAUNCH_BYTES: usize = 32 << 10;

/// Variables that are read when the interpreter, its libraries or the C library start.
const EARLY_VARIABLES: &[&str] = &[
    "BLIS_",
    "GLIBC_",
    "HOME",
    "LANG",
    "LC_",
    "LD_",
    "MALLOC_",
    "MKL_",
    "MPL",
    "NUMEXPR_",
    "NUMPY_",
    "OMP_",
    "OPENBLAS_",
    "OPENSSL_",
    "PATH",
    "PYTHON",
    "TMPDIR",
    "TZ",
];

#[derive(Debug)]
pub(crate) struct ParkedInterpreter {
    pub(crate) pid: Pid,
    interpreter: String,
    streams: ProgramStreams,
    launch: OwnedFd,
}

impl ParkedInterpreter {
    /// Starts the interpreter and waits until it has stopped itself.
    pub(crate) fn start(
        argv: &[String],
        restrictions: ProcessRestrictions,
        children: BorrowedFd<'_>,
    ) -> Result<Self, GuestRefusal> {
        let action = "park the interpreter";
        let (interpreter, modules) =
            argv.split_first().ok_or_else(|| GuestRefusal::new("the command is empty"))?;
        let (read, launch) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(GuestRefusal::because(action))?;
        rustix::fs::fcntl_setfl(&launch, OFlags::NONBLOCK)
            .map_err(GuestRefusal::because(action))?;
        // The interpreter inherits this end; our copy is closed before another process is started.
        rustix::io::fcntl_setfd(&read, FdFlags::empty()).map_err(GuestRefusal::because(action))?;
        let mut command = vec![
            interpreter.clone(),
            "-c".to_owned(),
            LOADER.to_owned(),
            read.as_raw_fd().to_string(),
        ];
        if modules.is_empty() {
            command.extend(DEFAULT_MODULES.iter().map(|&name| name.to_owned()));
        } else {
            command.extend_from_slice(modules);
        }
        let (pid, streams) = program::start(&command, &BTreeMap::new(), restrictions)
            .map_err(GuestRefusal::because(format_args!("start `{interpreter}`")))?;
        drop(read);
        let parked = Self { pid, interpreter: interpreter.clone(), streams, launch };
        parked.wait_until_stopped(children)?;
        Ok(parked)
    }

    fn wait_until_stopped(&self, children: BorrowedFd<'_>) -> Result<(), GuestRefusal> {
        let deadline = Instant::now() + START_TIMEOUT;
        let mut output = Vec::new();
        while Instant::now() < deadline {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            let status = rustix::process::waitpid(Some(self.pid), options)
                .map_err(GuestRefusal::because("wait for the interpreter"))?;
            // Output of the imports does not belong to the program.
            self.discard_output(&mut output);
            match status {
                Some((_, status)) if status.stopped() => return Ok(()),
                Some(_) => {
                    let output = String::from_utf8_lossy(&output);
                    return Err(GuestRefusal::new(format_args!(
                        "the interpreter exited: {output}"
                    )));
                }
                None => self.wait(children).map_err(GuestRefusal::because("wait"))?,
            }
        }
        Err(GuestRefusal::new("the interpreter was not ready in time"))
    }

    fn wait(&self, children: BorrowedFd<'_>) -> Result<(), GuestError> {
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        let mut fds = [
            PollFd::from_borrowed_fd(children, PollFlags::IN),
            PollFd::new(&self.streams.stdout, PollFlags::IN),
            PollFd::new(&self.streams.stderr, PollFlags::IN),
        ];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        processes::drain_notifications(children);
        Ok(())
    }

    fn discard_output(&self, output: &mut Vec<u8>) {
        let mut piece = [0; 4096];
        for stream in [&self.streams.stdout, &self.streams.stderr] {
            while let Ok(length @ 1..) = rustix::io::read(stream, &mut piece) {
                output.extend_from_slice(piece.get(..length).unwrap_or(&[]));
                let long = output.len().saturating_sub(400);
                output.drain(..long);
            }
        }
    }

    /// Whether the parked interpreter can run this program without a visible difference.
    pub(crate) fn can_run(&self, request: &GuestRunRequest) -> bool {
        let [interpreter, script, ..] = request.argv.as_slice() else { return false };
        let early = |name: &String| EARLY_VARIABLES.iter().any(|early| name.starts_with(early));
        *interpreter == self.interpreter
            && !script.starts_with('-')
            && !request.env.keys().any(early)
            && launch_text(request, &[]).is_some()
    }

    /// CPU time used so far, in seconds, rounded up.
    pub(crate) fn cpu_seconds_used(&self) -> u64 {
        let used = || {
            let path = format!("/proc/{}/stat", self.pid.as_raw_nonzero());
            let stat = fs_err::read_to_string(path).ok()?;
            let (_, after_name) = stat.rsplit_once(')')?;
            let mut fields = after_name.split_whitespace().skip(11);
            let user: u64 = fields.next()?.parse().ok()?;
            let system: u64 = fields.next()?.parse().ok()?;
            // `/proc` always counts in hundredths of a second.
            Some((user + system).div_ceil(100))
        };
        used().unwrap_or(0)
    }

    /// Sends the program to the interpreter and resumes it.
    pub(crate) fn launch(
        self,
        request: &GuestRunRequest,
        limits: &[(Resource, Rlimit)],
    ) -> std::io::Result<(Pid, ProgramStreams)> {
        let text = launch_text(request, limits).ok_or(std::io::ErrorKind::InvalidInput)?;
        let written = rustix::io::write(&self.launch, text.as_bytes())?;
        if written != text.len() {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        drop(self.launch);
        rustix::process::kill_process(self.pid, Signal::CONT)?;
        Ok((self.pid, self.streams))
    }
}

/// The launch message for the loader. The loader lowers its own limits before it reads the program,
/// because an agent that runs as another user would need more privileges to do so.
fn launch_text(request: &GuestRunRequest, limits: &[(Resource, Rlimit)]) -> Option<String> {
    let limits: Vec<_> = limits
        .iter()
        .map(|(resource, limit)| (*resource as u32, limit.current, limit.maximum))
        .collect();
    let launch = json!({ "argv": request.argv, "env": request.env, "limits": limits });
    Some(launch.to_string()).filter(|text| text.len() <= MAX_LAUNCH_BYTES)
}
