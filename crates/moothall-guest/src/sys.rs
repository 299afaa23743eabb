//! Unsafe system calls: between fork and exec, in the signal handler, and two ioctls.

#![allow(unsafe_code, reason = "fork, signal handlers and these ioctls have no safe API")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, Gid, Uid};

/// Restrictions of a program, applied by its own process before exec.
#[derive(Debug)]
pub(crate) struct ProcessRestrictions {
    /// The cgroup's `cgroup.procs`, opened for writing.
    pub(crate) cgroup: Option<OwnedFd>,
    /// The program's root folder, if it differs from the agent's.
    pub(crate) root: Option<CString>,
    /// The working directory inside that root.
    pub(crate) folder: CString,
    /// The program's user and group, if they differ from the agent's.
    pub(crate) user: Option<(Uid, Gid)>,
    /// Resource limits.
    pub(crate) limits: Vec<(Resource, Rlimit)>,
}

/// Makes the command apply these restrictions before exec. If one cannot be applied, the start
/// fails.
pub(crate) fn apply_before_exec(command: &mut Command, restrictions: ProcessRestrictions) {
    // SAFETY: between fork and exec only system calls are made, through rustix's thin wrappers,
    // with memory that was allocated before the fork; nothing allocates, locks or unwinds.
    unsafe { command.pre_exec(move || restrictions.apply()) };
}

impl ProcessRestrictions {
    fn apply(&self) -> io::Result<()> {
        rustix::process::setsid()?;
        // Makes the kernel kill the program before the agent when memory runs out. `oom_score_adj`
        // belongs to root while the process is not dumpable; exec would make it dumpable anyway.
        // Best effort: if it fails, the host sees that the sandbox died.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        if let Ok(score) = rustix::fs::open(c"/proc/self/oom_score_adj", flags, Mode::empty()) {
            let _ = rustix::io::write(&score, b"1000");
        }
        if let Some(cgroup) = &self.cgroup {
            rustix::io::write(cgroup, b"0")?;
        }
        if let Some(root) = &self.root {
            rustix::process::chroot(root.as_c_str())?;
        }
        rustix::process::chdir(self.folder.as_c_str())?;
        if let Some((user, group)) = self.user {
            for capability in CapabilitySet::all().iter() {
                match rustix::thread::remove_capability_from_bounding_set(capability) {
                    // The kernel does not know the capability, or the agent may not drop it. In
                    // that case the container runtime has removed it and it cannot be regained.
                    Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            rustix::thread::set_thread_groups(&[])?;
            rustix::thread::set_thread_res_gid(group, group, group)?;
            rustix::thread::set_thread_res_uid(user, user, user)?;
        }
        rustix::thread::set_no_new_privs(true)?;
        for (resource, limit) in &self.limits {
            rustix::process::setrlimit(*resource, *limit)?;
        }
        Ok(())
    }
}

/// Write end of the pipe used by the signal handler.
static CHILD_CHANGED: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_child(_: libc::c_int) {
    // SAFETY: `errno` belongs to this thread and is restored for the interrupted code; `write` is
    // async-signal-safe, and the byte is static. The pipe never blocks.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(CHILD_CHANGED.load(Ordering::Relaxed), c"!".as_ptr().cast(), 1);
        *errno = before;
    }
}

/// Returns a pipe that becomes readable whenever a child exits or stops. Call it only once.
pub(crate) fn watch_children() -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // Never closed, because the handler uses it for the life of the process.
    CHILD_CHANGED.store(write.into_raw_fd(), Ordering::Relaxed);
    // SAFETY: `action` is fully initialized before it is used; the handler is async-signal-safe.
    let set = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_child as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut())
    };
    if set == 0 { Ok(read) } else { Err(io::Error::last_os_error()) }
}

/// Kills every other process. Restricted to PID 1, because otherwise it would affect the whole
/// machine.
pub(crate) fn kill_all_others() {
    if rustix::process::getpid().is_init() {
        // SAFETY: sending a signal touches no memory of this process.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Closes all inherited file descriptors except the standard three. Call it before anything is
/// opened.
pub(crate) fn close_inherited() {
    // SAFETY: this process has not opened anything beyond the three streams yet, so no descriptor
    // in use is closed. Closing an unused descriptor does nothing.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) != 0 {
            for fd in 3..1024 {
                libc::close(fd);
            }
        }
    }
}

/// Argument of `RNDADDENTROPY`.
#[repr(C)]
struct RandPoolInfo {
    bits: libc::c_int,
    bytes: libc::c_int,
    seed: [u8; 32],
}

const RNDADDENTROPY: rustix::ioctl::Opcode = 0x4008_5203;
const RNDRESEEDCRNG: rustix::ioctl::Opcode = 0x5207;

/// Adds a seed to the kernel's random pool and reseeds its generator immediately.
pub(crate) fn add_entropy(random: impl AsFd, seed: &[u8; 32]) -> io::Result<()> {
    let entropy = RandPoolInfo { bits: 256, bytes: 32, seed: *seed };
    // SAFETY: the kernel reads two integers and as many bytes as the second one says, which matches
    // the layout of `RandPoolInfo`.
    unsafe {
        let add = rustix::ioctl::Setter::<RNDADDENTROPY, RandPoolInfo>::new(entropy);
        rustix::ioctl::ioctl(&random, add)?;
    }
    // SAFETY: this ioctl takes no argument.
    unsafe {
        let reseed = rustix::ioctl::NoArg::<RNDRESEEDCRNG>::new();
        rustix::ioctl::ioctl(&random, reseed)?;
    }
    Ok(())
}
