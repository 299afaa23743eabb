//! The control group of the program, in a microVM. The program cannot see it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use moothall_core::sandbox::Limits;
use rustix::fs::{Mode, OFlags};

use crate::error::{GuestError, Refusal};

const PERIOD_MICROSECONDS: u64 = 100_000;

/// The kernel takes no shorter quota.
const SHORTEST_QUOTA_MICROSECONDS: u64 = 1000;

/// The whole program waited for memory for this long of that long, in microseconds. A program at its
/// limit can lose the pages of its own code as fast as it reads them back, for ever: the kernel kills
/// nobody as long as there is a page to take away. Such a program was seen to wait half of its time.
const STARVING: &str = "full 3000000 10000000";

/// The group in which the program runs.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Makes the group below a mounted hierarchy.
    pub(crate) fn create(hierarchy: &Path) -> Result<Self, GuestError> {
        let setup = |error| GuestError::setup("make the program's control group")(error);
        write(&hierarchy.join("cgroup.subtree_control"), "+cpu +memory +pids").map_err(setup)?;
        let folder = hierarchy.join("program");
        fs_err::create_dir_all(&folder).map_err(setup)?;
        // One process that is killed for its memory takes all others along: half a program is no
        // program.
        write(&folder.join("memory.oom.group"), "1").map_err(setup)?;
        Ok(Self { folder })
    }

    /// Where a process writes itself in.
    pub(crate) fn procs(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(self.folder.join("cgroup.procs"), flags, Mode::empty())?)
    }

    /// Puts the limits in force.
    pub(crate) fn limit(&self, limits: &Limits) -> Result<(), Refusal> {
        let quota = (u64::from(limits.cpu_permille) * PERIOD_MICROSECONDS / 1000)
            .max(SHORTEST_QUOTA_MICROSECONDS);
        self.set("memory.max", &limits.memory_bytes.to_string())?;
        self.set("memory.swap.max", "0")?;
        self.set("pids.max", &limits.pids.to_string())?;
        self.set("cpu.max", &format!("{quota} {PERIOD_MICROSECONDS}"))
    }

    /// Lifts the limits: what is parked is not a program yet.
    pub(crate) fn lift(&self) -> Result<(), Refusal> {
        ["memory.max", "pids.max", "cpu.max"].into_iter().try_for_each(|name| self.set(name, "max"))
    }

    /// How many processes were killed for their memory so far.
    pub(crate) fn killed_for_memory(&self) -> u64 {
        fs_err::read_to_string(self.folder.join("memory.events"))
            .ok()
            .and_then(|events| {
                let line = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
                line.trim().parse().ok()
            })
            .unwrap_or(0)
    }

    /// Has something to say (`POLLPRI`) when the program does nothing but wait for memory.
    pub(crate) fn hunger(&self) -> Result<OwnedFd, Refusal> {
        let because = || Refusal::because("watch the program's memory");
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let path = self.folder.join("memory.pressure");
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(because())?;
        rustix::io::write(&file, STARVING.as_bytes()).map_err(because())?;
        Ok(file)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), Refusal> {
        write(&self.folder.join(name), value)
            .map_err(Refusal::because(format_args!("set `{name}`")))
    }
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}
