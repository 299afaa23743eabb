//! The agent inside a sandbox.
//!
//! It is PID 1 of a microVM, which it boots, or the entry point of a container. It speaks the
//! protocol of [`moothall_core::guest`] with the host: it receives files, runs a program with
//! restrictions and sends files back. It can also run a workflow whose effects the host performs.
//!
//! The host does not trust the agent, and the agent does not trust the program: the program runs as
//! another user, and all of its processes are dead before its end is reported.

#![warn(missing_docs)]

mod agent;
mod boot;
mod cgroup;
mod error;
mod event_loop;
mod files;
mod machine;
mod parked_interpreter;
mod probe;
mod processes;
mod program;
mod sys;

use std::os::fd::AsFd;

use rustix::process::DumpableBehavior;

use crate::machine::SandboxBackend;

pub use crate::agent::{GuestAgent, GuestBackend, Incoming};
pub use crate::error::{GuestError, GuestRefusal};

/// Runs the agent until the host closes the connection. The arguments are those of the process,
/// without its name:
///
/// - `serve`: in a container. If the agent is root, programs run as another user who can neither
///   kill nor inspect it; this needs the capabilities to change a program's user, kill it and
///   access its files.
/// - `serve --workspace FOLDER`: without isolation, for trying out the agent.
/// - anything else, as PID 1 of a machine whose kernel command line has `moothall.agent=vm`: boots
///   the machine.
pub fn run(arguments: impl Iterator<Item = String>) -> GuestError {
    let arguments: Vec<String> = arguments.take(8).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve"] => over_pipes(SandboxBackend::in_container),
        ["serve", "--workspace", folder] => over_pipes(|| SandboxBackend::in_folder(folder)),
        ["serve", ..] => GuestError::Usage,
        // Kernels pass unknown parameters to PID 1.
        _ if rustix::process::getpid().is_init() => in_microvm(),
        _ => GuestError::Usage,
    }
}

fn over_pipes(machine: impl FnOnce() -> Result<SandboxBackend, GuestError>) -> GuestError {
    sys::close_inherited();
    let opened = || {
        // The program may run as the same user and must not be able to inspect this process.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        // Orphans become children of this process even if it is not PID 1.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let from_host = std::io::stdin().as_fd().try_clone_to_owned()?;
        let to_host = std::io::stdout().as_fd().try_clone_to_owned()?;
        let connection = event_loop::HostConnection::new(
            from_host,
            to_host,
            event_loop::DisconnectPolicy::Gone,
        )?;
        Ok((machine()?, connection))
    };
    match opened() {
        Ok((machine, connection)) => event_loop::serve(machine, &connection),
        Err(error) => error,
    }
}

fn in_microvm() -> GuestError {
    let ended = match boot::boot() {
        Ok((machine, connection)) => event_loop::serve(machine, &connection),
        Err(error) => error,
    };
    if !matches!(ended, GuestError::Usage) {
        boot::log_and_reboot(&ended);
    }
    ended
}
