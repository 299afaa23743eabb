//! What a process used, as the kernel counts it, and what machine it ran on.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// The kernel's clock tick for process times, fixed at 100 a second on Linux for user space.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of a process, all threads, user and kernel.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"))?;
    // The command's name stands in parentheses and may contain spaces; the numbers begin behind it.
    let numbers = stat.rsplit_once(')').context("/proc/PID/stat has no name")?.1;
    let field = |index: usize| -> Result<u32> {
        numbers
            .split_whitespace()
            .nth(index)
            .context("/proc/PID/stat is short")?
            .parse()
            .context("/proc/PID/stat")
    };
    Ok(TICK * (field(11)? + field(12)?))
}

/// CPU time of this process, all threads, to the microsecond.
pub(crate) fn own_cpu_time() -> Result<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(u64::try_from(time.tv_sec)?, u32::try_from(time.tv_nsec)?))
}

/// Memory of a process that is really there.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS")?;
    Ok(kibibytes * 1024)
}

/// Processor and number of cores, for the head of a result.
pub(crate) fn description() -> String {
    let info = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |name| name.trim_start_matches([':', ' ', '\t']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{name}, {cores} cores")
}
