//! The calls that the compiler cannot check: between fork and exec, the signal handler, two ioctls.

#![allow(unsafe_code, reason = "fork, a signal handler and ioctls have no safe form")]

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

/// The walls around a program, put up by the program's own process before it becomes the program.
#[derive(Debug)]
pub(crate) struct Walls {
    /// The `cgroup.procs` of its group, open for writing.
    pub(crate) cgroup: Option<OwnedFd>,
    /// What it sees as `/`, where that is not what the agent sees.
    pub(crate) root: Option<CString>,
    /// Where it starts, as it sees it.
    pub(crate) folder: CString,
    /// Whom it becomes, where that is not who the agent is.
    pub(crate) user: Option<(Uid, Gid)>,
    /// What its process may use.
    pub(crate) limits: Vec<(Resource, Rlimit)>,
}

/// Makes the command put up these walls first. What cannot be put up fails the start.
pub(crate) fn put_behind(command: &mut Command, walls: Walls) {
    // SAFETY: between fork and exec only system calls are made, through rustix's thin wrappers, with
    // memory that was made before the fork; nothing allocates, locks or unwinds.
    unsafe { command.pre_exec(move || walls.put_up()) };
}

impl Walls {
    fn put_up(&self) -> io::Result<()> {
        rustix::process::setsid()?;
        // The kernel shall take the program before the agent. The file belongs to root as long as
        // the process is as closed as the agent is; the exec opens it up anyway. Nothing depends on
        // it: where it cannot be said, the host sees that the sandbox died.
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
                    // A capability that this kernel does not know, or an agent that may not: then
                    // whoever built the container has taken them, and none can be gained anyway.
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

/// The end of the pipe that the signal handler writes to.
static CHILD_CHANGED: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_child(_: libc::c_int) {
    // SAFETY: errno is this thread's own, and the interrupted code must find it as it was; `write`
    // may be called in a signal handler, and the byte is static. The pipe never blocks.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::write(CHILD_CHANGED.load(Ordering::Relaxed), c"!".as_ptr().cast(), 1);
        *errno = before;
    }
}

/// A pipe that becomes readable whenever a child ended or stopped. Call it once.
pub(crate) fn watch_children() -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    // The handler uses it as long as the process lives, so nobody closes it.
    CHILD_CHANGED.store(write.into_raw_fd(), Ordering::Relaxed);
    // SAFETY: all of `action` is set before it is used; the handler does only what a handler may.
    let set = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_child as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut())
    };
    if set == 0 { Ok(read) } else { Err(io::Error::last_os_error()) }
}

/// Kills every process but this one. Only PID 1 may: for anyone else that is the whole machine.
pub(crate) fn kill_all_others() {
    if rustix::process::getpid().is_init() {
        // SAFETY: a signal to others touches no memory of ours.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Closes whatever was left open by whoever started the agent, beside the three usual streams.
/// Call it before anything is opened.
pub(crate) fn close_inherited() {
    // SAFETY: nothing of this process is open yet beside the three streams, so nobody's descriptor
    // is closed under them. Closing what is not open does nothing.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) != 0 {
            for fd in 3..1024 {
                libc::close(fd);
            }
        }
    }
}

/// What `RNDADDENTROPY` takes.
#[repr(C)]
struct Entropy {
    bits: libc::c_int,
    bytes: libc::c_int,
    seed: [u8; 32],
}

const RNDADDENTROPY: rustix::ioctl::Opcode = 0x4008_5203;
const RNDRESEEDCRNG: rustix::ioctl::Opcode = 0x5207;

/// Mixes a seed into the kernel's randomness and makes the kernel use it at once.
pub(crate) fn add_entropy(random: impl AsFd, seed: &[u8; 32]) -> io::Result<()> {
    let entropy = Entropy { bits: 256, bytes: 32, seed: *seed };
    // SAFETY: the kernel reads two integers and as many bytes as the second says, which is what
    // `Entropy` holds.
    unsafe {
        let add = rustix::ioctl::Setter::<RNDADDENTROPY, Entropy>::new(entropy);
        rustix::ioctl::ioctl(&random, add)?;
    }
    // SAFETY: this one takes no argument.
    unsafe {
        let reseed = rustix::ioctl::NoArg::<RNDRESEEDCRNG>::new();
        rustix::ioctl::ioctl(&random, reseed)?;
    }
    Ok(())
}
