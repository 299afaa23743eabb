//! A program: how it is started, fed, listened to and limited.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use moothall_core::guest::{Channel, WayToEnd};
use moothall_core::sandbox::Limits;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, WaitStatus};

use crate::sys::{self, Walls};

/// What every program finds in its environment.
const VARIABLES: [(&str, &str); 7] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/workspace"),
    ("LANG", "C.UTF-8"),
    ("TMPDIR", "/tmp"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("MPLCONFIGDIR", "/tmp"),
    ("MPLBACKEND", "Agg"),
];

/// Nobody waits longer for a program, whatever the host says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The agent's ends of a program's three streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Starts a process with nothing open but its three streams, and what `handed_over` holds.
pub(crate) fn start(
    argv: &[String],
    variables: &BTreeMap<String, String>,
    walls: Walls,
) -> std::io::Result<(Pid, Streams)> {
    let (program, arguments) = argv.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let (stdin_read, stdin) = pipe(End::Write)?;
    let (stdout, stdout_write) = pipe(End::Read)?;
    let (stderr, stderr_write) = pipe(End::Read)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(VARIABLES)
        .envs(variables)
        .stdin(Stdio::from(stdin_read))
        .stdout(Stdio::from(stdout_write))
        .stderr(Stdio::from(stderr_write));
    sys::put_behind(&mut command, walls);
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((pid.ok_or(std::io::ErrorKind::Other)?, Streams { stdin, stdout, stderr }))
}

/// Which end stays with the agent.
enum End {
    Read,
    Write,
}

fn pipe(ours: End) -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let end = match ours {
        End::Read => &read,
        End::Write => &write,
    };
    rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK)?;
    Ok((read, write))
}

/// Who counts a user's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// A kernel of our own: the program is the only one of its user.
    Own,
    /// The host's: other sandboxes may have the same user, so a limit on a user's processes would
    /// count theirs. The host holds that limit with a control group.
    Shared,
}

/// The limits of one process. They can only be lowered, so what is in force already is the most.
pub(crate) fn process_limits(
    limits: &Limits,
    kernel: Kernel,
    cpu_seconds_used: u64,
) -> Vec<(Resource, Rlimit)> {
    let cpu = limits.cpu_seconds.saturating_add(cpu_seconds_used);
    let mut wanted = vec![
        (Resource::Core, 0, 0),
        (Resource::Nofile, limits.open_files.into(), limits.open_files.into()),
        (Resource::Fsize, limits.file_bytes, limits.file_bytes),
        // First SIGXCPU, which says why; a second later SIGKILL.
        (Resource::Cpu, cpu, cpu.saturating_add(1)),
    ];
    if kernel == Kernel::Own {
        wanted.push((Resource::Nproc, limits.pids.into(), limits.pids.into()));
    }
    wanted
        .into_iter()
        .map(|(resource, soft, hard)| {
            // No limit is written as the largest number that every language can read.
            let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let most = most.min(i64::MAX.unsigned_abs());
            let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
            (resource, limit)
        })
        .collect()
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) pid: Pid,
    stdin: Option<OwnedFd>,
    unread: VecDeque<u8>,
    input_over: bool,
    stdout: Output,
    stderr: Output,
    deadline: Instant,
    killed: bool,
    status: Option<WaitStatus>,
    /// What the control group had counted before.
    pub(crate) killed_for_memory_before: u64,
    /// Tells that it only waits for memory; where the kernel is the host's, so is that matter.
    pub(crate) hunger: Option<OwnedFd>,
    starved: bool,
}

#[derive(Debug)]
struct Output {
    fd: Option<OwnedFd>,
    left: u64,
    truncated: bool,
}

impl Program {
    pub(crate) fn new(pid: Pid, streams: Streams, limits: &Limits) -> Self {
        let output = |fd| Output { fd: Some(fd), left: limits.output_bytes, truncated: false };
        Self {
            pid,
            stdin: Some(streams.stdin),
            unread: VecDeque::new(),
            input_over: false,
            stdout: output(streams.stdout),
            stderr: output(streams.stderr),
            deadline: Instant::now() + Duration::from_millis(limits.wall_ms).min(LONGEST),
            killed: false,
            status: None,
            killed_for_memory_before: 0,
            hunger: None,
            starved: false,
        }
    }

    /// How long it may still run.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(crate) fn kill(&mut self) {
        self.killed = true;
    }

    /// It waits for memory and will do nothing else any more.
    pub(crate) fn starves(&mut self) {
        self.starved = true;
    }

    pub(crate) fn is_gone(&mut self, status: WaitStatus) {
        self.status.get_or_insert(status);
    }

    /// The way in which it is over, if it is.
    pub(crate) fn way_to_end(&self) -> Option<WayToEnd> {
        if let Some(status) = self.status {
            return Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => WayToEnd::Exited(code),
                (None, Some(signal)) => WayToEnd::Signalled(signal),
                // Only ends are waited for, so there is no other case.
                (None, None) => WayToEnd::Killed,
            });
        }
        if self.killed {
            return Some(WayToEnd::Killed);
        }
        if self.starved {
            return Some(WayToEnd::OutOfMemory);
        }
        self.time_left().is_zero().then_some(WayToEnd::TimedOut)
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.stdin.is_some() {
            self.unread.extend(bytes);
        }
    }

    pub(crate) fn end_of_input(&mut self) {
        self.input_over = true;
        self.close_input_if_done();
    }

    pub(crate) fn backlog(&self) -> usize {
        self.unread.len()
    }

    /// Where input can be written, while there is some.
    pub(crate) fn hungry(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().filter(|_| !self.unread.is_empty()).map(AsFd::as_fd)
    }

    /// Writes what the program takes now.
    pub(crate) fn write_input(&mut self) {
        while let Some(stdin) = &self.stdin {
            let (piece, _) = self.unread.as_slices();
            if piece.is_empty() {
                break;
            }
            match rustix::io::write(stdin, piece) {
                Ok(length) => {
                    self.unread.drain(..length.min(self.unread.len()));
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // It does not want any.
                Err(_) => {
                    self.stdin = None;
                    self.unread.clear();
                }
            }
        }
        self.close_input_if_done();
    }

    fn close_input_if_done(&mut self) {
        if self.input_over && self.unread.is_empty() {
            self.stdin = None;
        }
    }

    /// Where output can be read.
    pub(crate) fn output(&self, channel: Channel) -> Option<BorrowedFd<'_>> {
        match channel {
            Channel::Stdout => self.stdout.fd.as_ref().map(AsFd::as_fd),
            Channel::Stderr => self.stderr.fd.as_ref().map(AsFd::as_fd),
            Channel::Stdin | Channel::File => None,
        }
    }

    /// Reads once. Gives how many bytes count, or nothing where nothing can be read now or ever.
    /// What is beyond the limit is read and does not count, so that the program goes on and runs
    /// into the limit of its time.
    pub(crate) fn read_output(&mut self, channel: Channel, piece: &mut [u8]) -> Option<usize> {
        let output = match channel {
            Channel::Stdout => &mut self.stdout,
            Channel::Stderr => &mut self.stderr,
            Channel::Stdin | Channel::File => return None,
        };
        match rustix::io::read(output.fd.as_ref()?, piece) {
            Ok(0) => {
                output.fd = None;
                None
            }
            Ok(length) => {
                let counted = usize::try_from(output.left).unwrap_or(usize::MAX).min(length);
                output.left -= counted as u64;
                output.truncated |= counted < length;
                Some(counted)
            }
            Err(Errno::INTR) => Some(0),
            Err(Errno::AGAIN) => None,
            Err(_) => {
                output.fd = None;
                None
            }
        }
    }

    pub(crate) fn stdout_truncated(&self) -> bool {
        self.stdout.truncated
    }

    pub(crate) fn stderr_truncated(&self) -> bool {
        self.stderr.truncated
    }
}
