//! The three things that Rust cannot check for us. Everything else in this crate is safe code.
#![expect(
    unsafe_code,
    reason = "a machine instruction, files that a parent left open, a call by number"
)]

use std::io;

/// The CPU's counter of ticks.
pub(crate) fn cpu_ticks() -> u64 {
    // SAFETY: the instruction reads a counter and touches no memory. Every x86-64 CPU has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Takes all files that this process inherited, other than the standard three, and sees to it that
/// no program after this one inherits them. Those that are wanted are then asked for by number.
pub(crate) fn take_inherited_files() -> io::Result<()> {
    // SAFETY: called first in a process whose only purpose is to become another program; nobody in it
    // has opened anything yet.
    unsafe { command_fds::inherited::init_inherited_fds() }
}

/// Asks the kernel for the number of this process by the numbers of another ABI, which begin there.
pub(crate) fn call_of_another_abi(begin: u32) -> io::Result<()> {
    // SAFETY: `getpid` takes no argument and touches no memory, by whatever number it is called.
    let said = unsafe { libc::syscall(i64::from(begin) | libc::SYS_getpid) };
    if said < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
