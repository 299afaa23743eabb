//! The only unsafe code in this crate.
#![expect(
    unsafe_code,
    reason = "the `rdtsc` instruction, inherited file descriptors and a raw system call need unsafe code"
)]

use std::io;

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
