//! Limits of memory and processes of an agent.
//!
//! Cgroups enforce both, but usually only root can create them. Without them, the kernel's limit of
//! processes per user applies: it counts those in the agent's user namespace separately. Root is
//! exempt from that limit.

use std::path::Path;

use fs_err as fs;
use rustix::process::{Pid, geteuid};
use serde::{Deserialize, Serialize};

use super::{GuardFault, GuardPart};
use crate::oci::cgroup::{CgroupController, CgroupLimits, CgroupSupport, SandboxCgroup};

/// Names of the groups start with this, followed by the process id of their supervisor.
const PREFIX: &str = "guard-";

/// What an agent and its programs can use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardLimits {
    /// Processes and threads.
    pub processes: u64,
    /// `None` for no limit.
    pub memory_bytes: Option<u64>,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self { processes: 4096, memory_bytes: None }
    }
}

/// The cgroups of an agent, removed on drop.
#[derive(Debug)]
pub(crate) struct AgentGroup(SandboxCgroup);

impl AgentGroup {
    /// Puts PID 1 of the agent's namespaces into new groups before it starts anything. `None`
    /// without cgroups, if no limit needs them: root's agents have no default limit of processes
    /// then.
    pub(crate) fn enter(pid: Pid, limits: GuardLimits) -> Result<Option<Self>, GuardFault> {
        let fault = |problem: String| GuardFault::new(GuardPart::Limits, problem);
        let support = CgroupSupport::detect().map_err(|error| fault(error.failure().detail))?;
        if limits.memory_bytes.is_some() && !support.can_enforce(CgroupController::Memory) {
            let problem = "the memory of the agent cannot be limited without cgroups";
            return Err(fault(problem.to_owned()));
        }
        let limits_processes = support.can_enforce(CgroupController::Pids);
        let is_requested = limits.processes != GuardLimits::default().processes;
        if is_requested && !limits_processes && geteuid().is_root() {
            let problem = "the processes of root's agents cannot be limited without cgroups";
            return Err(fault(problem.to_owned()));
        }
        if !limits_processes && limits.memory_bytes.is_none() {
            return Ok(None);
        }
        let name = format!("{PREFIX}{}-{}", std::process::id(), pid.as_raw_nonzero());
        let group = support.group(&name);
        let group = Self(match limits.memory_bytes {
            Some(_) => group,
            None => group.without(CgroupController::Memory),
        });
        group.remove_orphans();
        let memory_bytes = limits.memory_bytes.unwrap_or_default();
        let resources = CgroupLimits { memory_bytes, pids: limits.processes, cpu_quota: 0 };
        group
            .0
            .create(&resources)
            .and_then(|()| group.0.add(pid))
            .map_err(|error| fault(format!("cannot limit the agent with cgroups: {error}")))?;
        Ok(Some(group))
    }

    /// Whether the kernel killed a process of the agent because of the memory limit.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.0.was_out_of_memory()
    }

    /// Removes groups whose supervisor was killed. The kernel refuses to remove groups in use.
    fn remove_orphans(&self) {
        for parent in self.0.folders.iter().filter_map(|folder| folder.parent()) {
            for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
                let owner = owner.and_then(|rest| rest.split('-').next());
                if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }
}

impl Drop for AgentGroup {
    fn drop(&mut self) {
        for folder in &self.0.folders {
            // A group in use is removed by the next agent.
            let _ = fs::remove_dir(folder);
        }
    }
}
