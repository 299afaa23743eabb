//! The host's cgroups: which limits they can enforce, and the groups of each sandbox.
//!
//! Hosts may have cgroup v1 (one hierarchy per controller), v2 (one shared hierarchy), or both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use moothall_core::sandbox::SandboxLimits;
use serde_json::{Value, json};

use crate::SandboxError;

/// Parent of all groups created here.
const PARENT: &str = crate::registry::CGROUP_PARENT;

/// Period of the CPU quota, in microseconds: the longest that the kernel accepts, so that short
/// programs run at full speed.
const CPU_PERIOD: u64 = 1_000_000;

/// Minimum quota that the kernel accepts.
const MIN_QUOTA: u64 = 1000;

/// Limits set on the host's cgroups: those of the program plus what the sandbox itself needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CgroupLimits {
    pub(crate) memory_bytes: u64,
    pub(crate) pids: u64,
    /// Microseconds of CPU time per [`CPU_PERIOD`].
    pub(crate) cpu_quota: u64,
}

impl CgroupLimits {
    pub(crate) fn new(limits: &SandboxLimits, own_memory_bytes: u64, pids: u64) -> Self {
        let cpu_quota = (u64::from(limits.cpu_permille) * CPU_PERIOD / 1000).max(MIN_QUOTA);
        Self { memory_bytes: limits.memory_bytes.saturating_add(own_memory_bytes), pids, cpu_quota }
    }

    /// The `linux.resources` section. It has only limits that the host can enforce, because
    /// runtimes reject others; the attestation shows which limits are not enforced.
    pub(crate) fn section(&self, cgroups: &CgroupSupport) -> Value {
        let mut section = json!({ "devices": [{ "allow": false, "access": "rwm" }] });
        if cgroups.can_enforce(CgroupController::Memory) {
            section["memory"] = json!({ "limit": self.memory_bytes });
            if cgroups.can_limit_swap() {
                section["memory"]["swap"] = self.memory_bytes.into();
            }
        }
        if cgroups.can_enforce(CgroupController::Pids) {
            section["pids"] = json!({ "limit": self.pids });
        }
        if cgroups.can_enforce(CgroupController::Cpu) {
            section["cpu"] = json!({ "period": CPU_PERIOD, "quota": self.cpu_quota });
        }
        section
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CgroupController {
    Cpu,
    Memory,
    Pids,
}

impl CgroupController {
    const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Pids];

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// The cgroup support of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupSupport {
    /// Mount points of the hierarchies.
    mounts: BTreeSet<PathBuf>,
    /// Usable controllers and their hierarchies.
    held: BTreeMap<CgroupController, CgroupHierarchy>,
    /// Whether swap can be limited.
    swap: bool,
    /// Whether v1 and v2 are both in use.
    hybrid: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CgroupHierarchy {
    mount: PathBuf,
    kind: CgroupVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    First,
    Second,
}

impl CgroupSupport {
    /// Detects usable controllers by creating the parent group.
    pub(crate) fn detect() -> Result<Self, SandboxError> {
        let table = fs::read_to_string("/proc/self/mountinfo")
            .map_err(SandboxError::host("cannot read the mounts of this host"))?;
        let (own, shared) = hierarchies(&table);
        let mut cgroups = Self {
            mounts: own.values().chain(&shared).cloned().collect(),
            held: BTreeMap::new(),
            swap: false,
            hybrid: false,
        };
        for controller in CgroupController::ALL {
            if let Some(mount) = own.get(controller.name())
                && is_usable(&mount.join(PARENT))
            {
                let hierarchy =
                    CgroupHierarchy { mount: mount.clone(), kind: CgroupVersion::First };
                cgroups.held.insert(controller, hierarchy);
            }
        }
        if let Some(mount) = &shared {
            let controllers = read_words(&mount.join("cgroup.controllers"));
            cgroups.hybrid = !own.is_empty() && !controllers.is_empty();
            let parent = mount.join(PARENT);
            if own.is_empty() && is_usable(&parent) {
                for controller in CgroupController::ALL {
                    // A controller must be enabled at the root and in the parent group. That fails
                    // if the root group has processes of its own.
                    for folder in [mount, &parent] {
                        let request = format!("+{}", controller.name());
                        let _ = fs::write(folder.join("cgroup.subtree_control"), request);
                    }
                    if read_words(&parent.join("cgroup.subtree_control"))
                        .contains(controller.name())
                    {
                        let hierarchy =
                            CgroupHierarchy { mount: mount.clone(), kind: CgroupVersion::Second };
                        cgroups.held.insert(controller, hierarchy);
                    }
                }
            }
        }
        cgroups.swap = cgroups.held.get(&CgroupController::Memory).is_some_and(|memory| {
            let file = match memory.kind {
                CgroupVersion::First => "memory.memsw.limit_in_bytes",
                CgroupVersion::Second => "memory.swap.max",
            };
            memory.mount.join(PARENT).join(file).exists()
        });
        Ok(cgroups)
    }

    /// Whether limits of this controller can be enforced.
    pub(crate) fn can_enforce(&self, controller: CgroupController) -> bool {
        self.held.contains_key(&controller)
    }

    /// Whether swapped memory can be limited.
    pub(crate) fn can_limit_swap(&self) -> bool {
        self.swap
    }

    /// Whether controllers are split between v1 and v2, which crun does not support.
    pub(crate) fn is_hybrid(&self) -> bool {
        self.hybrid
    }

    /// The groups for one sandbox.
    pub(crate) fn group(&self, name: &str) -> SandboxCgroup {
        let held = self.held.iter().map(|(controller, hierarchy)| {
            let folder = hierarchy.mount.join(PARENT).join(name);
            (*controller, (folder, hierarchy.kind))
        });
        SandboxCgroup {
            path: format!("/{PARENT}/{name}"),
            folders: self.mounts.iter().map(|mount| mount.join(PARENT).join(name)).collect(),
            held: held.collect(),
            swap: self.swap,
        }
    }
}

/// Whether groups can be created in this one, which is created if it is missing. Another user may
/// have created it.
fn is_usable(parent: &Path) -> bool {
    fs::create_dir_all(parent).is_ok()
        && rustix::fs::access(parent, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The cgroups of one sandbox. They may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct SandboxCgroup {
    /// Path relative to each hierarchy.
    pub(crate) path: String,
    /// Folders in every hierarchy, because runtimes create groups even without limits.
    pub(crate) folders: Vec<PathBuf>,
    held: BTreeMap<CgroupController, (PathBuf, CgroupVersion)>,
    swap: bool,
}

impl SandboxCgroup {
    /// The same groups without limits of this controller.
    pub(crate) fn without(mut self, controller: CgroupController) -> Self {
        self.held.remove(&controller);
        self
    }

    /// Creates the groups and sets their limits before the runtime starts. The CPU limit is set
    /// after the start: see [`SandboxCgroup::limit_cpu`].
    pub(crate) fn create(&self, resources: &CgroupLimits) -> std::io::Result<()> {
        let CgroupLimits { memory_bytes, pids, cpu_quota: _ } = resources;
        for (controller, (folder, kind)) in &self.held {
            fs::create_dir_all(folder)?;
            let set = |file: &str, value: String| fs::write(folder.join(file), value);
            match (controller, kind) {
                (CgroupController::Memory, CgroupVersion::First) => {
                    set("memory.limit_in_bytes", memory_bytes.to_string())?;
                    if self.swap {
                        set("memory.memsw.limit_in_bytes", memory_bytes.to_string())?;
                    }
                }
                (CgroupController::Memory, CgroupVersion::Second) => {
                    set("memory.max", memory_bytes.to_string())?;
                    if self.swap {
                        set("memory.swap.max", "0".to_owned())?;
                    }
                }
                (CgroupController::Pids, _) => set("pids.max", pids.to_string())?,
                (CgroupController::Cpu, _) => {}
            }
        }
        Ok(())
    }

    /// Moves a process into the group.
    pub(crate) fn add(&self, pid: rustix::process::Pid) -> std::io::Result<()> {
        let folders: BTreeSet<&PathBuf> = self.held.values().map(|(folder, _)| folder).collect();
        let pid = pid.as_raw_nonzero().to_string();
        folders.into_iter().try_for_each(|folder| fs::write(folder.join("cgroup.procs"), &pid))
    }

    /// Applies the CPU limit to the group.
    pub(crate) fn limit_cpu(&self, resources: &CgroupLimits) -> std::io::Result<()> {
        let quota = resources.cpu_quota;
        match self.held.get(&CgroupController::Cpu) {
            Some((folder, CgroupVersion::First)) => {
                fs::write(folder.join("cpu.cfs_period_us"), CPU_PERIOD.to_string())?;
                fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string())
            }
            Some((folder, CgroupVersion::Second)) => {
                fs::write(folder.join("cpu.max"), format!("{quota} {CPU_PERIOD}"))
            }
            None => Ok(()),
        }
    }

    /// Whether no controller is usable.
    pub(crate) fn has_no_controllers(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether the kernel killed a process in the group because it was out of memory.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        let Some((folder, kind)) = self.held.get(&CgroupController::Memory) else { return false };
        let file = match kind {
            CgroupVersion::First => "memory.oom_control",
            CgroupVersion::Second => "memory.events",
        };
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .is_some_and(|count| count.trim() != "0")
    }

    /// Kills all processes in the group.
    pub(crate) fn kill(&self) {
        for folder in &self.folders {
            // Newer kernels kill atomically, including processes that are being forked.
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

/// Parses the mount table: v1 hierarchies by controller, and the v2 hierarchy.
fn hierarchies(table: &str) -> (BTreeMap<String, PathBuf>, Option<PathBuf>) {
    let mut own = BTreeMap::new();
    let mut shared = None;
    for line in table.lines() {
        let Some((mount, details)) = line.split_once(" - ") else { continue };
        let Some(mount_point) = mount.split(' ').nth(4) else { continue };
        let mut details = details.split(' ');
        match (details.next(), details.nth(1)) {
            (Some("cgroup"), Some(options)) => {
                for option in options.split(',').filter(|option| *option != "rw") {
                    own.entry(option.to_owned()).or_insert_with(|| PathBuf::from(mount_point));
                }
            }
            (Some("cgroup2"), _) => {
                shared.get_or_insert_with(|| PathBuf::from(mount_point));
            }
            _ => {}
        }
    }
    (own, shared)
}

fn read_words(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(ToOwned::to_owned).collect()
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod tests;
