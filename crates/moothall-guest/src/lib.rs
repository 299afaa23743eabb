//! The agent inside a sandbox.
//!
//! As PID 1 of a microVM it boots the machine; in a container it is the entry point. Either way it
//! then speaks the protocol of [`moothall_core::guest`] with the host: files in, a program run
//! behind walls, files out; and it can hold a workflow whose effects the host performs.
//!
//! The host does not trust it, and it does not trust the program: what runs has another user, and
//! nothing of it is left when its end is told.

#![warn(missing_docs)]

mod agent;
mod boot;
mod cgroup;
mod error;
mod files;
mod machine;
mod parked;
mod processes;
mod program;
mod serve;
mod sys;

use std::os::fd::AsFd;

use rustix::process::DumpableBehavior;

use crate::machine::Machine;

pub use crate::agent::{Agent, Incoming, World};
pub use crate::error::{GuestError, Refusal};

/// Runs the agent until the host is gone. The arguments are those of the process, without its name:
///
/// - `serve`: in a container. Where the agent is root there, programs run as somebody else, who can
///   neither stop it nor look into it; that takes the rights to change a program's user, to kill it
///   and to use its files.
/// - `serve --workspace FOLDER`: without any walls, for trying the agent out.
/// - anything else, as PID 1 of a machine whose kernel was told `moothall.agent=vm`: boots it.
pub fn run(arguments: impl Iterator<Item = String>) -> GuestError {
    let arguments: Vec<String> = arguments.take(8).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve"] => over_pipes(Machine::in_container),
        ["serve", "--workspace", folder] => over_pipes(|| Machine::in_folder(folder)),
        ["serve", ..] => GuestError::Usage,
        // Kernels hand words that they do not know to PID 1.
        _ if rustix::process::getpid().is_init() => in_microvm(),
        _ => GuestError::Usage,
    }
}

fn over_pipes(machine: impl FnOnce() -> Result<Machine, GuestError>) -> GuestError {
    sys::close_inherited();
    let opened = || {
        // The program may have the same user: it must not be able to look into this process.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // Orphans come here even where this is not PID 1.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let from_host = std::io::stdin().as_fd().try_clone_to_owned()?;
        let to_host = std::io::stdout().as_fd().try_clone_to_owned()?;
        let line = serve::Line::new(from_host, to_host, serve::Silence::Gone)?;
        Ok((machine()?, line))
    };
    match opened() {
        Ok((machine, line)) => serve::serve(machine, &line),
        Err(error) => error,
    }
}

fn in_microvm() -> GuestError {
    let ended = match boot::boot() {
        Ok((machine, line)) => serve::serve(machine, &line),
        Err(error) => error,
    };
    if !matches!(ended, GuestError::Usage) {
        boot::give_up(&ended);
    }
    ended
}
