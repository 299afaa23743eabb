//! A running program: starts it, passes input and output, and applies its limits.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use moothall_core::guest::{ExitCause, GuestStream};
use moothall_core::sandbox::SandboxLimits;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, WaitStatus};

use crate::sys::{self, ProcessRestrictions};

/// Default environment variables of programs.
const DEFAULT_VARIABLES: [(&str, &str); 7] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/workspace"),
    ("LANG", "C.UTF-8"),
    ("TMPDIR", "/tmp"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("MPLCONFIGDIR", "/tmp"),
    ("MPLBACKEND", "Agg"),
];

/// Upper bound of the time limit, whatever the host requests.
const MAX_WALL_TIME: Duration = Duration::from_secs(24 * 3600);

/// The agent's ends of a program's standard streams.
#[derive(Debug)]
pub(crate) struct ProgramStreams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Starts a process with only its three standard streams open.
pub(crate) fn start(
    argv: &[String],
    variables: &BTreeMap<String, String>,
    restrictions: ProcessRestrictions,
) -> std::io::Result<(Pid, ProgramStreams)> {
    let (program, arguments) = argv.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let (stdin_read, stdin) = pipe(PipeEnd::Write)?;
    let (stdout, stdout_write) = pipe(PipeEnd::Read)?;
    let (stderr, stderr_write) = pipe(PipeEnd::Read)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(DEFAULT_VARIABLES)
        .envs(variables)
        .stdin(Stdio::from(stdin_read))
        .stdout(Stdio::from(stdout_write))
        .stderr(Stdio::from(stderr_write));
    sys::apply_before_exec(&mut command, restrictions);
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((pid.ok_or(std::io::ErrorKind::Other)?, ProgramStreams { stdin, stdout, stderr }))
}

/// Which end the agent keeps.
enum PipeEnd {
    Read,
    Write,
}

fn pipe(ours: PipeEnd) -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let end = match ours {
        PipeEnd::Read => &read,
        PipeEnd::Write => &write,
    };
    rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK)?;
    Ok((read, write))
}

/// Whether other sandboxes share the kernel and its per-user process counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelSharing {
    /// The sandbox's own kernel: no other process has the program's user.
    Own,
    /// The host's kernel: a per-user process limit would also count other sandboxes with the same
    /// user, so the host enforces it with a cgroup.
    Shared,
}

/// Resource limits of the program. Limits can only be lowered, so they are capped at the current
/// ones.
pub(crate) fn process_limits(
    limits: &SandboxLimits,
    kernel: KernelSharing,
    cpu_seconds_used: u64,
) -> Vec<(Resource, Rlimit)> {
    let cpu = limits.cpu_seconds.saturating_add(cpu_seconds_used);
    let mut requested = vec![
        (Resource::Core, 0, 0),
        (Resource::Nofile, limits.open_files.into(), limits.open_files.into()),
        (Resource::Fsize, limits.file_bytes, limits.file_bytes),
        // SIGXCPU first, which shows the reason, and SIGKILL one second later.
        (Resource::Cpu, cpu, cpu.saturating_add(1)),
    ];
    if kernel == KernelSharing::Own {
        requested.push((Resource::Nproc, limits.pids.into(), limits.pids.into()));
    }
    requested
        .into_iter()
        .map(|(resource, soft, hard)| {
            // Capped at `i64::MAX`, which the Python loader can also represent.
            let max = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let max = max.min(i64::MAX.unsigned_abs());
            let limit = Rlimit { current: Some(soft.min(max)), maximum: Some(hard.min(max)) };
            (resource, limit)
        })
        .collect()
}

#[derive(Debug)]
pub(crate) struct RunningProgram {
    pub(crate) pid: Pid,
    stdin: Option<OwnedFd>,
    pending_input: VecDeque<u8>,
    input_over: bool,
    stdout: ProgramOutput,
    stderr: ProgramOutput,
    deadline: Instant,
    killed: bool,
    status: Option<WaitStatus>,
    /// Out-of-memory kills in the cgroup before this program.
    pub(crate) oom_kills_before: u64,
    /// Signals that the program is stalled on memory. `None` in a container, where the host handles
    /// it.
    pub(crate) memory_pressure: Option<OwnedFd>,
    is_out_of_memory: bool,
}

#[derive(Debug)]
struct ProgramOutput {
    fd: Option<OwnedFd>,
    left: u64,
    truncated: bool,
}

impl RunningProgram {
    pub(crate) fn new(pid: Pid, streams: ProgramStreams, limits: &SandboxLimits) -> Self {
        let output =
            |fd| ProgramOutput { fd: Some(fd), left: limits.output_bytes, truncated: false };
        Self {
            pid,
            stdin: Some(streams.stdin),
            pending_input: VecDeque::new(),
            input_over: false,
            stdout: output(streams.stdout),
            stderr: output(streams.stderr),
            deadline: Instant::now() + Duration::from_millis(limits.wall_ms).min(MAX_WALL_TIME),
            killed: false,
            status: None,
            oom_kills_before: 0,
            memory_pressure: None,
            is_out_of_memory: false,
        }
    }

    /// Remaining run time.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(crate) fn kill(&mut self) {
        self.killed = true;
    }

    /// Marks the program as permanently stalled on memory.
    pub(crate) fn mark_out_of_memory(&mut self) {
        self.is_out_of_memory = true;
    }

    pub(crate) fn set_exit_status(&mut self, status: WaitStatus) {
        self.status.get_or_insert(status);
    }

    /// How the program ended, or `None` while it runs.
    pub(crate) fn exit_cause(&self) -> Option<ExitCause> {
        if let Some(status) = self.status {
            return Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => ExitCause::Exited(code),
                (None, Some(signal)) => ExitCause::Signalled(signal),
                // Unreachable: only exited processes are waited for.
                (None, None) => ExitCause::Killed,
            });
        }
        if self.killed {
            return Some(ExitCause::Killed);
        }
        if self.is_out_of_memory {
            return Some(ExitCause::OutOfMemory);
        }
        self.time_left().is_zero().then_some(ExitCause::TimedOut)
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.stdin.is_some() {
            self.pending_input.extend(bytes);
        }
    }

    pub(crate) fn end_of_input(&mut self) {
        self.input_over = true;
        self.close_input_if_done();
    }

    pub(crate) fn backlog(&self) -> usize {
        self.pending_input.len()
    }

    /// Standard input, if there is data to write.
    pub(crate) fn stdin_to_write(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().filter(|_| !self.pending_input.is_empty()).map(AsFd::as_fd)
    }

    /// Writes as much input as the program accepts now.
    pub(crate) fn write_input(&mut self) {
        while let Some(stdin) = &self.stdin {
            let (piece, _) = self.pending_input.as_slices();
            if piece.is_empty() {
                break;
            }
            match rustix::io::write(stdin, piece) {
                Ok(length) => {
                    self.pending_input.drain(..length.min(self.pending_input.len()));
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // The program closed its input.
                Err(_) => {
                    self.stdin = None;
                    self.pending_input.clear();
                }
            }
        }
        self.close_input_if_done();
    }

    fn close_input_if_done(&mut self) {
        if self.input_over && self.pending_input.is_empty() {
            self.stdin = None;
        }
    }

    /// The output stream, if it is open.
    pub(crate) fn output(&self, channel: GuestStream) -> Option<BorrowedFd<'_>> {
        match channel {
            GuestStream::Stdout => self.stdout.fd.as_ref().map(AsFd::as_fd),
            GuestStream::Stderr => self.stderr.fd.as_ref().map(AsFd::as_fd),
            GuestStream::Stdin | GuestStream::File => None,
        }
    }

    /// Reads once and returns how many bytes to keep, or `None` if nothing can be read. Output
    /// beyond the limit is read and discarded, so the program does not block and runs until
    /// its time limit.
    pub(crate) fn read_output(&mut self, channel: GuestStream, piece: &mut [u8]) -> Option<usize> {
        let output = match channel {
            GuestStream::Stdout => &mut self.stdout,
            GuestStream::Stderr => &mut self.stderr,
            GuestStream::Stdin | GuestStream::File => return None,
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
