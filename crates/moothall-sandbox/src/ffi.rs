//! The only unsafe code in this crate.
#![expect(
    unsafe_code,
    reason = "the `rdtsc` instruction, inherited file descriptors, namespaces and raw system calls need unsafe code"
)]

use std::io;
use std::os::fd::AsRawFd as _;

use rustix::thread::UnshareFlags;

/// The CPU's time stamp counter.
pub(crate) fn cpu_ticks() -> u64 {
    // SAFETY: the instruction reads a counter and touches no memory. Every x86-64 CPU has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Marks all inherited file descriptors except the standard three as close-on-exec. The needed ones
/// are then claimed by number.
pub(crate) fn take_inherited_files() -> io::Result<()> {
    // SAFETY: called first in a process whose only purpose is to exec another program; nothing in
    // it has opened a file yet.
    unsafe { command_fds::inherited::init_inherited_fds() }
}

/// Calls `getpid` through another ABI, whose system call numbers start at `begin`.
pub(crate) fn call_x32_abi(begin: u32) -> io::Result<()> {
    // SAFETY: `getpid` takes no argument and touches no memory, under any number.
    let said = unsafe { libc::syscall(i64::from(begin) | libc::SYS_getpid) };
    if said < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves this process, which has one thread, into new namespaces.
pub(crate) fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: only a new table of file descriptors would be unsafe, and no caller asks for one.
    unsafe { rustix::thread::unshare_unsafe(namespaces.difference(UnshareFlags::FILES)) }
}

/// Makes a mount and everything mounted below it read-only. Flags that it already has are kept.
pub(crate) fn make_read_only(path: &std::ffi::CStr) -> io::Result<()> {
    #[repr(C)]
    struct MountAttributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    const READ_ONLY: u64 = 1;
    let attributes =
        MountAttributes { set: READ_ONLY, clear: 0, propagation: 0, user_namespace: 0 };
    let (flags, size) = (libc::AT_RECURSIVE, size_of::<MountAttributes>());
    // SAFETY: the path ends with a zero byte, and the kernel reads `size` bytes of the structure.
    // Both outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Turns the loopback interface of this network namespace on.
pub(crate) fn enable_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: all bytes of the structure may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads one complete `ifreq`, which outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
