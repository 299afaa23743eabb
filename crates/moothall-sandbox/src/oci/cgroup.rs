//! The host's control groups: which of them hold a limit here, and where a sandbox's are.
//!
//! There are two kinds of hierarchies, and hosts that have both. In the first kind every controller
//! has a hierarchy of its own; in the second all share one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use moothall_core::sandbox::Limits;
use serde_json::{Value, json};

use crate::SandboxError;

/// All groups of ours are below this one.
const PARENT: &str = crate::registry::CGROUP_PARENT;

/// The period over which a share of a CPU is counted, in microseconds.
const CPU_PERIOD: u64 = 100_000;

/// The kernel takes no shorter quota.
const SHORTEST_QUOTA: u64 = 1000;

/// What the host's control groups hold of a sandbox: the program's limits and what the sandbox itself
/// needs beside the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resources {
    pub(super) memory_bytes: u64,
    pub(super) pids: u64,
    /// Microseconds of CPU in each [`CPU_PERIOD`].
    pub(super) cpu_quota: u64,
}

impl Resources {
    pub(super) fn new(limits: &Limits, own_memory_bytes: u64, pids: u64) -> Self {
        let cpu_quota = (u64::from(limits.cpu_permille) * CPU_PERIOD / 1000).max(SHORTEST_QUOTA);
        Self { memory_bytes: limits.memory_bytes.saturating_add(own_memory_bytes), pids, cpu_quota }
    }

    /// The `linux.resources` section: only what the host can hold, because a runtime refuses the
    /// rest, and what nobody holds is said in the attestation.
    pub(super) fn section(&self, cgroups: &Cgroups) -> Value {
        let mut section = json!({ "devices": [{ "allow": false, "access": "rwm" }] });
        if cgroups.holds(Controller::Memory) {
            section["memory"] = json!({ "limit": self.memory_bytes });
            if cgroups.counts_swap() {
                section["memory"]["swap"] = self.memory_bytes.into();
            }
        }
        if cgroups.holds(Controller::Pids) {
            section["pids"] = json!({ "limit": self.pids });
        }
        if cgroups.holds(Controller::Cpu) {
            section["cpu"] = json!({ "period": CPU_PERIOD, "quota": self.cpu_quota });
        }
        section
    }
}

/// A controller that holds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Controller {
    Cpu,
    Memory,
    Pids,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Pids];

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// What this host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cgroups {
    /// Where the hierarchies are mounted.
    mounts: BTreeSet<PathBuf>,
    /// Which controllers can be used, where, and of which kind.
    held: BTreeMap<Controller, Hierarchy>,
    /// Whether swap can be limited too.
    swap: bool,
    /// Whether both kinds are in use at once.
    hybrid: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    mount: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    First,
    Second,
}

impl Cgroups {
    /// Finds out by trying: makes the group that all others are below.
    pub(super) fn detect() -> Result<Self, SandboxError> {
        let table = fs::read_to_string("/proc/self/mountinfo")
            .map_err(SandboxError::host("the mounts of this host cannot be read"))?;
        let (own, shared) = hierarchies(&table);
        let mut cgroups = Self {
            mounts: own.values().chain(&shared).cloned().collect(),
            held: BTreeMap::new(),
            swap: false,
            hybrid: false,
        };
        for controller in Controller::ALL {
            if let Some(mount) = own.get(controller.name())
                && fs::create_dir_all(mount.join(PARENT)).is_ok()
            {
                let hierarchy = Hierarchy { mount: mount.clone(), kind: Kind::First };
                cgroups.held.insert(controller, hierarchy);
            }
        }
        if let Some(mount) = &shared {
            let controllers = words(&mount.join("cgroup.controllers"));
            cgroups.hybrid = !own.is_empty() && !controllers.is_empty();
            let parent = mount.join(PARENT);
            if own.is_empty() && fs::create_dir_all(&parent).is_ok() {
                for controller in Controller::ALL {
                    // Handed down from the top to our group, and from there to its members. A
                    // hierarchy whose top has processes of its own does not hand anything down.
                    for folder in [mount, &parent] {
                        let wish = format!("+{}", controller.name());
                        let _ = fs::write(folder.join("cgroup.subtree_control"), wish);
                    }
                    if words(&parent.join("cgroup.subtree_control")).contains(controller.name()) {
                        let hierarchy = Hierarchy { mount: mount.clone(), kind: Kind::Second };
                        cgroups.held.insert(controller, hierarchy);
                    }
                }
            }
        }
        cgroups.swap = cgroups.held.get(&Controller::Memory).is_some_and(|memory| {
            let file = match memory.kind {
                Kind::First => "memory.memsw.limit_in_bytes",
                Kind::Second => "memory.swap.max",
            };
            memory.mount.join(PARENT).join(file).exists()
        });
        Ok(cgroups)
    }

    /// Whether a limit of this controller holds here.
    pub(super) fn holds(&self, controller: Controller) -> bool {
        self.held.contains_key(&controller)
    }

    /// Whether memory that is swapped out counts too.
    pub(super) fn counts_swap(&self) -> bool {
        self.swap
    }

    /// Whether controllers are spread over both kinds of hierarchies, which crun refuses.
    pub(super) fn are_hybrid(&self) -> bool {
        self.hybrid
    }

    /// The groups of one sandbox.
    pub(super) fn group(&self, name: &str) -> Group {
        let held = self.held.iter().map(|(controller, hierarchy)| {
            let folder = hierarchy.mount.join(PARENT).join(name);
            (*controller, (folder, hierarchy.kind))
        });
        Group {
            path: format!("/{PARENT}/{name}"),
            folders: self.mounts.iter().map(|mount| mount.join(PARENT).join(name)).collect(),
            held: held.collect(),
            swap: self.swap,
        }
    }
}

/// The control groups of one sandbox, which need not exist.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Below each hierarchy.
    pub(super) path: String,
    /// In every hierarchy: runtimes make one even where they limit nothing.
    pub(super) folders: Vec<PathBuf>,
    held: BTreeMap<Controller, (PathBuf, Kind)>,
    swap: bool,
}

impl Group {
    /// Makes the groups that hold limits and sets them, for a runtime that is to find them done. The
    /// share of a CPU is the program's and not the start's: see [`Group::limit_cpu`].
    pub(super) fn create(&self, resources: &Resources) -> std::io::Result<()> {
        let Resources { memory_bytes, pids, cpu_quota: _ } = resources;
        for (controller, (folder, kind)) in &self.held {
            fs::create_dir_all(folder)?;
            let set = |file: &str, value: String| fs::write(folder.join(file), value);
            match (controller, kind) {
                (Controller::Memory, Kind::First) => {
                    set("memory.limit_in_bytes", memory_bytes.to_string())?;
                    if self.swap {
                        set("memory.memsw.limit_in_bytes", memory_bytes.to_string())?;
                    }
                }
                (Controller::Memory, Kind::Second) => {
                    set("memory.max", memory_bytes.to_string())?;
                    if self.swap {
                        set("memory.swap.max", "0".to_owned())?;
                    }
                }
                (Controller::Pids, _) => set("pids.max", pids.to_string())?,
                (Controller::Cpu, _) => {}
            }
        }
        Ok(())
    }

    /// Holds everything in the group to its share of a CPU from now on.
    pub(super) fn limit_cpu(&self, resources: &Resources) -> std::io::Result<()> {
        let quota = resources.cpu_quota;
        match self.held.get(&Controller::Cpu) {
            Some((folder, Kind::First)) => {
                fs::write(folder.join("cpu.cfs_period_us"), CPU_PERIOD.to_string())?;
                fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string())
            }
            Some((folder, Kind::Second)) => {
                fs::write(folder.join("cpu.max"), format!("{quota} {CPU_PERIOD}"))
            }
            None => Ok(()),
        }
    }

    /// Whether there is no group to hold on to.
    pub(super) fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the kernel killed a process in it for its memory.
    pub(super) fn was_out_of_memory(&self) -> bool {
        let Some((folder, kind)) = self.held.get(&Controller::Memory) else { return false };
        let file = match kind {
            Kind::First => "memory.oom_control",
            Kind::Second => "memory.events",
        };
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .is_some_and(|count| count.trim() != "0")
    }

    /// Kills every process in it.
    pub(super) fn kill(&self) {
        for folder in &self.folders {
            // Newer kernels kill all at once, those that are being born too.
            if fs::write(folder.join("cgroup.kill"), "1").is_ok() {
                continue;
            }
            let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines().filter_map(|line| line.parse().ok()) {
                if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }
    }
}

/// Where the hierarchies are, in a table of mounts: those of the first kind by controller, and the
/// one of the second.
fn hierarchies(table: &str) -> (BTreeMap<String, PathBuf>, Option<PathBuf>) {
    let mut own = BTreeMap::new();
    let mut shared = None;
    for line in table.lines() {
        let Some((mount, details)) = line.split_once(" - ") else { continue };
        let Some(place) = mount.split(' ').nth(4) else { continue };
        let mut details = details.split(' ');
        match (details.next(), details.nth(1)) {
            (Some("cgroup"), Some(options)) => {
                for option in options.split(',').filter(|option| *option != "rw") {
                    own.entry(option.to_owned()).or_insert_with(|| PathBuf::from(place));
                }
            }
            (Some("cgroup2"), _) => {
                shared.get_or_insert_with(|| PathBuf::from(place));
            }
            _ => {}
        }
    }
    (own, shared)
}

fn words(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(ToOwned::to_owned).collect()
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
