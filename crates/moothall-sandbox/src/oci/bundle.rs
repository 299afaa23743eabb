//! Writes the OCI bundle configuration of one sandbox.

use std::path::Path;

use moothall_core::sandbox::SandboxLimits;
use serde_json::{Value, json};

use super::SandboxKernel;
use super::cgroup::{CgroupLimits, CgroupSupport};
use super::seccomp;
use super::user_namespace::IdRange;

/// Path of the agent in a root file system. The image has an empty file there as mount point;
/// otherwise a runtime would create one in the image.
pub(crate) const AGENT: &str = "/moothall-guest";

/// Folders of the root file system that are mount points.
pub(crate) const MOUNT_POINTS: [&str; 5] = ["dev", "inputs", "proc", "tmp", "workspace"];

/// Capabilities of the agent, which is root in its container: needed to switch users, hand over
/// files and kill the program. The program gets none of them.
const CAPABILITIES: [&str; 6] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"];

/// Namespaces that are private to the container.
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mount", "network", "pid", "uts"];

/// Masked paths: Docker's list and a few more files that reveal information about the host.
const MASKED: [&str; 17] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/config.gz",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/sysvipc",
    "/proc/timer_list",
    "/proc/timer_stats",
];

const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Size of `/dev/shm`, for semaphores and small shared memory. Python's `multiprocessing` needs it.
const SHARED_MEMORY_BYTES: u64 = 4 << 20;

/// Limit of open files for the agent, which needs one per file it transfers and a few more.
const AGENT_OPEN_FILES: u32 = 1024;

/// Inputs of one bundle configuration.
#[derive(Debug)]
pub(crate) struct OciBundle<'a> {
    pub(crate) root: &'a Path,
    /// Path of the agent binary.
    pub(crate) agent: &'a Path,
    /// Limits of the program.
    pub(crate) limits: &'a SandboxLimits,
    /// Limits enforced by the host's cgroups.
    pub(crate) resources: &'a CgroupLimits,
    /// Path of the cgroup relative to each hierarchy.
    pub(crate) cgroups_path: &'a str,
    pub(crate) kernel: SandboxKernel,
    /// User ids on the host. `None` if the container uses the host's ids.
    pub(crate) ids: Option<IdRange>,
}

impl OciBundle<'_> {
    /// Content of `config.json`.
    pub(crate) fn config(&self, cgroups: &CgroupSupport) -> Value {
        let open_files = self.limits.open_files.max(AGENT_OPEN_FILES);
        let mut config = json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": { "uid": 0, "gid": 0 },
                "args": [AGENT, "serve"],
                "env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                "cwd": "/",
                "capabilities": {
                    "bounding": CAPABILITIES,
                    "effective": CAPABILITIES,
                    "permitted": CAPABILITIES,
                    "inheritable": [],
                    "ambient": [],
                },
                "rlimits": [
                    { "type": "RLIMIT_CORE", "hard": 0, "soft": 0 },
                    { "type": "RLIMIT_NOFILE", "hard": open_files, "soft": open_files },
                ],
                "noNewPrivileges": true,
            },
            "root": { "path": self.root, "readonly": true },
            "hostname": "sandbox",
            "mounts": self.mounts(),
            "linux": {
                "namespaces": NAMESPACES.map(|kind| json!({ "type": kind })),
                "cgroupsPath": self.cgroups_path,
                "resources": self.resources.section(cgroups),
                "seccomp": seccomp::profile(self.kernel),
                "maskedPaths": MASKED,
                "readonlyPaths": READ_ONLY,
            },
        });
        if let Some(ids) = self.ids {
            if let Some(namespaces) = config["linux"]["namespaces"].as_array_mut() {
                namespaces.push(json!({ "type": "user" }));
            }
            config["linux"]["uidMappings"] = ids.mappings();
            config["linux"]["gidMappings"] = ids.mappings();
        }
        if self.kernel == SandboxKernel::Gvisor {
            // When memory runs out, the host's kernel must kill gVisor itself, which ends the whole
            // sandbox. Otherwise it kills the process that backs one program's memory, and the
            // program appears to have failed on its own.
            config["process"]["oomScoreAdj"] = 1000.into();
            // gVisor counts processes per user within this sandbox. The host's cgroup also counts
            // gVisor's own threads and cannot be as strict. Minus one, because gVisor allows one
            // more than the limit (measured).
            let pids = self.limits.pids.saturating_sub(1);
            if let Some(limits) = config["process"]["rlimits"].as_array_mut() {
                limits.push(json!({ "type": "RLIMIT_NPROC", "hard": pids, "soft": pids }));
            }
        }
        config
    }

    fn mounts(&self) -> Value {
        let disk = self.limits.disk_bytes;
        json!([
            {
                "destination": "/proc",
                "type": "proc",
                "source": "proc",
                // Hides the agent's processes from the program.
                "options": ["nosuid", "noexec", "nodev", "hidepid=2"],
            },
            {
                "destination": "/dev",
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["nosuid", "noexec", "strictatime", "mode=755", "size=65536"],
            },
            files("/dev/shm", SHARED_MEMORY_BYTES, &["noexec", "uid=1000", "gid=1000"]),
            files("/tmp", disk, &["uid=1000", "gid=1000"]),
            files("/workspace", disk, &["uid=1000", "gid=1000"]),
            files("/inputs", disk, &["noexec"]),
            {
                "destination": AGENT,
                "type": "bind",
                "source": self.agent,
                "options": ["bind", "ro", "nosuid", "nodev"],
            },
        ])
    }
}

/// A tmpfs mount. Every file takes at least one page, so the number of inodes is limited to the
/// number of pages; that also limits empty files.
fn files(place: &str, bytes: u64, more: &[&str]) -> Value {
    // Write access is controlled by the owner, not the mode: runc before 1.2 uses the mode of the
    // mount point, which is also 755.
    let mut options = ["nosuid", "nodev", "mode=755"].map(ToOwned::to_owned).to_vec();
    options.extend(more.iter().map(|&option| option.to_owned()));
    options.push(format!("size={bytes}"));
    options.push(format!("nr_inodes={}", (bytes / 4096).clamp(64, 1 << 14)));
    json!({ "destination": place, "type": "tmpfs", "source": "tmpfs", "options": options })
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
