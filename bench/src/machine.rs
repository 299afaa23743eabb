//! Resource usage of processes, as counted by the kernel, and a description of the machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The kernel's clock tick for process times, fixed at 100 per second for user space on Linux.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of all threads of a process, user and kernel.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = Stat::read(pid)?;
    Ok(TICK * stat.own_ticks)
}

/// CPU time of a process and all its descendants, including exited ones.
pub(crate) fn family_cpu_time(pid: u32) -> Result<Duration> {
    let mut ticks = 0;
    for member in family(pid)? {
        // A process that has just exited is counted by its parent.
        if let Ok(stat) = Stat::read(member) {
            ticks += stat.own_ticks + stat.dead_children_ticks;
        }
    }
    Ok(TICK * ticks)
}

/// A process and all its descendants.
pub(crate) fn family(pid: u32) -> Result<Vec<u32>> {
    let mut parents = BTreeMap::new();
    for entry in fs_err::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok())
            && let Ok(stat) = Stat::read(pid)
        {
            parents.insert(pid, stat.parent);
        }
    }
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(child, _)| *child));
        next += 1;
    }
    Ok(family)
}

/// The contents of `/proc/PID/stat`.
struct Stat {
    parent: u32,
    own_ticks: u32,
    dead_children_ticks: u32,
}

impl Stat {
    fn read(pid: u32) -> Result<Self> {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"))?;
        // The command name is in parentheses and may contain spaces; the numbers follow it.
        let numbers = stat.rsplit_once(')').context("/proc/PID/stat has no name")?.1;
        let field = |index: usize| -> Result<u32> {
            numbers
                .split_whitespace()
                .nth(index)
                .context("/proc/PID/stat is short")?
                .parse()
                .context("/proc/PID/stat")
        };
        Ok(Self {
            parent: field(1)?,
            own_ticks: field(11)? + field(12)?,
            dead_children_ticks: field(13)? + field(14)?,
        })
    }
}

/// CPU time of all threads of this process, with microsecond precision.
pub(crate) fn own_cpu_time() -> Result<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(Duration::new(u64::try_from(time.tv_sec)?, u32::try_from(time.tv_nsec)?))
}

/// Resident memory of a process.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    bytes_of(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// Like [`resident_bytes`], with shared memory divided among the processes that share it.
pub(crate) fn proportional_bytes(pid: u32) -> Result<u64> {
    bytes_of(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// Reads a value that the kernel reports in KiB after a name.
fn bytes_of(path: &str, name: &str) -> Result<u64> {
    let text = fs_err::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such number")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("a number")?;
    Ok(kibibytes * 1024)
}

/// The name of a process's program, truncated to 15 bytes.
pub(crate) fn name(pid: u32) -> Result<String> {
    Ok(fs_err::read_to_string(format!("/proc/{pid}/comm"))?.trim().to_owned())
}

/// Total size of all files in a directory: the bytes written, not the disk space that a database
/// has reserved. Files that are deleted while it counts are skipped.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs_err::read_dir(folder)?.flatten() {
        bytes += match entry.metadata() {
            Ok(data) if data.is_dir() => folder_bytes(&entry.path()).unwrap_or_default(),
            Ok(data) => data.len(),
            Err(_) => 0,
        };
    }
    Ok(bytes)
}

/// Processor and number of cores, for the header of a report.
pub(crate) fn description() -> String {
    let info = fs_err::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |name| name.trim_start_matches([':', ' ', '\t']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{name}, {cores} cores")
}
