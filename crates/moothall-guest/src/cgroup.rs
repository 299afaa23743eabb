//! The program's cgroup in a microVM. The program cannot see it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use moothall_core::sandbox::SandboxLimits;
use rustix::fs::{Mode, OFlags};

use crate::error::{GuestError, GuestRefusal};

/// The longest that the kernel accepts. A short program then runs at full speed, because it ends
/// before it has used the quota of one period.
const PERIOD_MICROSECONDS: u64 = 1_000_000;

/// Minimum quota that the kernel accepts.
const MIN_QUOTA_MICROSECONDS: u64 = 1000;

/// Memory pressure threshold: all processes stalled for 3 s within 10 s (in microseconds). A
/// program at its limit can keep evicting and reloading its own code pages forever, because the
/// kernel kills nothing while a page can be reclaimed. Such a program was observed to stall for
/// half of its time.
const MEMORY_PRESSURE_TRIGGER: &str = "full 3000000 10000000";

#[derive(Debug)]
pub(crate) struct ProgramCgroup {
    folder: PathBuf,
}

impl ProgramCgroup {
    /// Creates the group in a mounted hierarchy.
    pub(crate) fn create(hierarchy: &Path) -> Result<Self, GuestError> {
        let setup = |error| GuestError::setup("create the program's cgroup")(error);
        write(&hierarchy.join("cgroup.subtree_control"), "+cpu +memory +pids").map_err(setup)?;
        let folder = hierarchy.join("program");
        fs_err::create_dir_all(&folder).map_err(setup)?;
        // An out-of-memory kill ends the whole program, not only one of its processes.
        write(&folder.join("memory.oom.group"), "1").map_err(setup)?;
        Ok(Self { folder })
    }

    /// The file that processes write to in order to join the group.
    pub(crate) fn procs(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(self.folder.join("cgroup.procs"), flags, Mode::empty())?)
    }

    pub(crate) fn limit(&self, limits: &SandboxLimits) -> Result<(), GuestRefusal> {
        let quota = (u64::from(limits.cpu_permille) * PERIOD_MICROSECONDS / 1000)
            .max(MIN_QUOTA_MICROSECONDS);
        self.set("memory.max", &limits.memory_bytes.to_string())?;
        self.set("memory.swap.max", "0")?;
        self.set("pids.max", &limits.pids.to_string())?;
        self.set("cpu.max", &format!("{quota} {PERIOD_MICROSECONDS}"))
    }

    /// Removes the limits, because a parked interpreter is not a program yet.
    pub(crate) fn remove_limits(&self) -> Result<(), GuestRefusal> {
        ["memory.max", "pids.max", "cpu.max"].into_iter().try_for_each(|name| self.set(name, "max"))
    }

    /// Number of out-of-memory kills so far.
    pub(crate) fn oom_kills(&self) -> u64 {
        fs_err::read_to_string(self.folder.join("memory.events"))
            .ok()
            .and_then(|events| {
                let line = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
                line.trim().parse().ok()
            })
            .unwrap_or(0)
    }

    /// A file that reports `POLLPRI` when the program is stalled on memory.
    pub(crate) fn memory_pressure(&self) -> Result<OwnedFd, GuestRefusal> {
        let because = || GuestRefusal::because("watch the program's memory pressure");
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = self.folder.join("memory.pressure");
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(because())?;
        rustix::io::write(&file, MEMORY_PRESSURE_TRIGGER.as_bytes()).map_err(because())?;
        Ok(file)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), GuestRefusal> {
        write(&self.folder.join(name), value)
            .map_err(GuestRefusal::because(format_args!("set `{name}`")))
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}
