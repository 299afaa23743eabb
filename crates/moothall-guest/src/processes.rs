//! Reaps and kills the processes of the program.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::error::GuestError;
use crate::sys;

/// How long to wait for killed processes. Only those blocked in the kernel take long.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Result of [`kill_everything`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct KillSummary {
    /// How the program's first process ended, if it was still running.
    pub(crate) first: Option<WaitStatus>,
    /// Number of other processes that were running.
    pub(crate) others: u32,
}

/// Reaps the next child that has exited.
pub(crate) fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}

/// Kills all descendants of the agent and waits until they are gone. As PID 1 or subreaper, the
/// agent is an ancestor of everything that a program starts.
pub(crate) fn kill_everything(
    children: BorrowedFd<'_>,
    first: Option<Pid>,
) -> Result<KillSummary, GuestError> {
    let mut killed = KillSummary { first: None, others: 0 };
    // Processes that are already dead do not count as left running.
    while let Some((pid, status)) = reap() {
        if Some(pid) == first {
            killed.first = Some(status);
        }
    }
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while Instant::now() < deadline {
        kill_descendants();
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == first => killed.first = Some(status),
                Ok(Some(_)) => killed.others = killed.others.saturating_add(1),
                Ok(None) => break,
                Err(Errno::CHILD) => return Ok(killed),
                Err(error) => return Err(error.into()),
            }
        }
        wait_for_change(children, Duration::from_millis(20))?;
    }
    Err(GuestError::KillTimeout)
}

/// Waits until a child changes state, at most for `max_wait`.
pub(crate) fn wait_for_change(
    children: BorrowedFd<'_>,
    max_wait: Duration,
) -> Result<(), GuestError> {
    let timeout = Timespec::try_from(max_wait).ok();
    let mut fds = [PollFd::from_borrowed_fd(children, PollFlags::IN)];
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    drain_notifications(children);
    Ok(())
}

/// Drains the pipe that signals child changes.
pub(crate) fn drain_notifications(children: BorrowedFd<'_>) {
    let mut bytes = [0; 256];
    while rustix::io::read(children, &mut bytes).is_ok_and(|length| length > 0) {}
}

fn kill_descendants() {
    if rustix::process::getpid().is_init() {
        sys::kill_all_others();
    } else {
        for pid in descendants(rustix::process::getpid()) {
            // It may already be gone.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// All descendants of a process. Needed only outside of a sandbox, where other processes exist.
fn descendants(of: Pid) -> Vec<Pid> {
    let mut parents = Vec::new();
    for entry in fs_err::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs_err::read_to_string(entry.path().join("stat")) else { continue };
        // The name may contain spaces and brackets; the parent is the second field after the last
        // bracket.
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<i32>().ok());
        if let (Some(pid), Some(parent)) = (Pid::from_raw(pid), parent.and_then(Pid::from_raw)) {
            parents.push((pid, parent));
        }
    }
    let mut found: Vec<Pid> = Vec::new();
    let mut at = 0;
    let mut ancestor = of;
    loop {
        let children =
            parents.iter().filter(|(_, parent)| *parent == ancestor).map(|(pid, _)| *pid);
        found.extend(children);
        match found.get(at) {
            Some(next) => ancestor = *next,
            None => return found,
        }
        at += 1;
    }
}
