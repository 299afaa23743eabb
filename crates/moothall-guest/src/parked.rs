//! An interpreter that has started, has imported what programs usually import, and waits.
//!
//! A template of microVMs is saved with one: a clone then runs a program without starting an
//! interpreter, which on an emulated CPU is most of the time. The program must not notice.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use moothall_core::guest::RunRequest;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use serde_json::json;

use crate::error::{GuestError, Refusal};
use crate::processes;
use crate::program::{self, Streams};
use crate::sys::Walls;

const LOADER: &str = include_str!("loader.py");

/// What is imported where the host names nothing.
const USUAL_MODULES: &[&str] = &[
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

/// How long an interpreter may take to get ready.
const STARTING: Duration = Duration::from_secs(120);

/// A launch that fits into a pipe at once; a longer one is not worth a wait.
const LAUNCH_BYTES: usize = 32 << 10;

/// Variables that an interpreter, its libraries or the C library read when they start.
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

/// The one that waits.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) pid: Pid,
    interpreter: String,
    streams: Streams,
    launch: OwnedFd,
}

impl Parked {
    /// Starts it and waits until it has stopped itself.
    pub(crate) fn start(
        argv: &[String],
        walls: Walls,
        children: BorrowedFd<'_>,
    ) -> Result<Self, Refusal> {
        let trying = "park the interpreter";
        let (interpreter, modules) =
            argv.split_first().ok_or_else(|| Refusal::new("there is no command"))?;
        let (read, launch) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(Refusal::because(trying))?;
        rustix::fs::fcntl_setfl(&launch, OFlags::NONBLOCK).map_err(Refusal::because(trying))?;
        // This end goes with the interpreter; ours is closed before anything else is started.
        rustix::io::fcntl_setfd(&read, FdFlags::empty()).map_err(Refusal::because(trying))?;
        let mut command = vec![
            interpreter.clone(),
            "-c".to_owned(),
            LOADER.to_owned(),
            read.as_raw_fd().to_string(),
        ];
        if modules.is_empty() {
            command.extend(USUAL_MODULES.iter().map(|&name| name.to_owned()));
        } else {
            command.extend_from_slice(modules);
        }
        let (pid, streams) = program::start(&command, &BTreeMap::new(), walls)
            .map_err(Refusal::because(format_args!("start `{interpreter}`")))?;
        drop(read);
        let parked = Self { pid, interpreter: interpreter.clone(), streams, launch };
        parked.wait_until_stopped(children)?;
        Ok(parked)
    }

    fn wait_until_stopped(&self, children: BorrowedFd<'_>) -> Result<(), Refusal> {
        let deadline = Instant::now() + STARTING;
        let mut complaint = Vec::new();
        while Instant::now() < deadline {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            let status = rustix::process::waitpid(Some(self.pid), options)
                .map_err(Refusal::because("wait for the interpreter"))?;
            // What it printed so far is nobody's output.
            self.discard_output(&mut complaint);
            match status {
                Some((_, status)) if status.stopped() => return Ok(()),
                Some(_) => {
                    let complaint = String::from_utf8_lossy(&complaint);
                    return Err(Refusal::new(format_args!("the interpreter ended: {complaint}")));
                }
                None => self.wait(children).map_err(Refusal::because("wait"))?,
            }
        }
        Err(Refusal::new("the interpreter did not get ready in time"))
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
        processes::forget_changes(children);
        Ok(())
    }

    fn discard_output(&self, complaint: &mut Vec<u8>) {
        let mut piece = [0; 4096];
        for stream in [&self.streams.stdout, &self.streams.stderr] {
            while let Ok(length @ 1..) = rustix::io::read(stream, &mut piece) {
                complaint.extend_from_slice(piece.get(..length).unwrap_or(&[]));
                let long = complaint.len().saturating_sub(400);
                complaint.drain(..long);
            }
        }
    }

    /// Whether a program can be run by it without noticing.
    pub(crate) fn fits(&self, request: &RunRequest) -> bool {
        let [interpreter, script, ..] = request.argv.as_slice() else { return false };
        let early = |name: &String| EARLY_VARIABLES.iter().any(|early| name.starts_with(early));
        *interpreter == self.interpreter
            && !script.starts_with('-')
            && !request.env.keys().any(early)
            && launch_text(request, &[]).is_some()
    }

    /// How much CPU time it has used for getting ready, in whole seconds, rounded up.
    pub(crate) fn cpu_seconds_used(&self) -> u64 {
        let used = || {
            let path = format!("/proc/{}/stat", self.pid.as_raw_nonzero());
            let stat = fs_err::read_to_string(path).ok()?;
            let (_, after_name) = stat.rsplit_once(')')?;
            let mut words = after_name.split_whitespace().skip(11);
            let user: u64 = words.next()?.parse().ok()?;
            let system: u64 = words.next()?.parse().ok()?;
            // The kernel counts in hundredths, whatever its clock does.
            Some((user + system).div_ceil(100))
        };
        used().unwrap_or(0)
    }

    /// Hands over the program and lets it go on.
    pub(crate) fn launch(
        self,
        request: &RunRequest,
        limits: &[(Resource, Rlimit)],
    ) -> std::io::Result<(Pid, Streams)> {
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

/// What the loader reads. It lowers its own limits before it looks at the program: an agent that is
/// not its user could not without more rights than it needs otherwise.
fn launch_text(request: &RunRequest, limits: &[(Resource, Rlimit)]) -> Option<String> {
    let limits: Vec<_> = limits
        .iter()
        .map(|(resource, limit)| (*resource as u32, limit.current, limit.maximum))
        .collect();
    let launch = json!({ "argv": request.argv, "env": request.env, "limits": limits });
    Some(launch.to_string()).filter(|text| text.len() <= LAUNCH_BYTES)
}
