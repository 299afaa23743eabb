//! Processes of the program: reaping them, and making sure that none is left.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::error::GuestError;
use crate::sys;

/// How long processes may take to die. A killed process lives on only inside the kernel.
const DYING: Duration = Duration::from_secs(20);

/// What [`kill_everything`] found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Killed {
    /// How the program's first process ended, where it was still there.
    pub(crate) first: Option<WaitStatus>,
    /// Others that were running.
    pub(crate) others: u32,
}

/// The next child that has ended, if there is one.
pub(crate) fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}

/// Kills every process below the agent and waits until all are gone. As PID 1, and as the one to
/// whom orphans are given, the agent is an ancestor of whatever a program can start.
pub(crate) fn kill_everything(
    children: BorrowedFd<'_>,
    first: Option<Pid>,
) -> Result<Killed, GuestError> {
    let mut killed = Killed { first: None, others: 0 };
    // Whoever is dead already was not left running.
    while let Some((pid, status)) = reap() {
        if Some(pid) == first {
            killed.first = Some(status);
        }
    }
    let deadline = Instant::now() + DYING;
    while Instant::now() < deadline {
        kill_all_below();
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
    Err(GuestError::Undead)
}

/// Waits until a child changed, or for so long.
pub(crate) fn wait_for_change(children: BorrowedFd<'_>, most: Duration) -> Result<(), GuestError> {
    let timeout = Timespec::try_from(most).ok();
    let mut fds = [PollFd::from_borrowed_fd(children, PollFlags::IN)];
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    forget_changes(children);
    Ok(())
}

/// Empties the pipe that says that children changed.
pub(crate) fn forget_changes(children: BorrowedFd<'_>) {
    let mut bytes = [0; 256];
    while rustix::io::read(children, &mut bytes).is_ok_and(|length| length > 0) {}
}

fn kill_all_below() {
    if rustix::process::getpid().is_init() {
        sys::kill_all_others();
    } else {
        for pid in descendants(rustix::process::getpid()) {
            // It may be gone by now.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Everyone below a process. Only outside a sandbox, where there are processes of others.
fn descendants(of: Pid) -> Vec<Pid> {
    let mut parents = Vec::new();
    for entry in fs_err::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs_err::read_to_string(entry.path().join("stat")) else { continue };
        // The name may hold spaces and brackets; the parent is the second word after the last one.
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
