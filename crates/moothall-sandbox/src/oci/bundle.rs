//! The bundle: what an OCI runtime is told about one sandbox.

use std::path::Path;

use moothall_core::sandbox::Limits;
use serde_json::{Value, json};

use super::Kernel;
use super::cgroup::{Cgroups, Resources};
use super::seccomp;
use super::user_namespace::IdRange;

/// The agent, as it is found in a root file system. The image has an empty file there to mount it on:
/// a runtime that had to make one would write to the image.
pub(super) const AGENT: &str = "/moothall-guest";

/// Folders of the root file system that something is mounted on.
pub(super) const MOUNT_POINTS: [&str; 5] = ["dev", "inputs", "proc", "tmp", "workspace"];

/// What the agent, root in its container, needs to become someone else for the program, to give it
/// its files and to stop it. The program gets none of them.
const CAPABILITIES: [&str; 6] =
    ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"];

/// What it has for itself.
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mount", "network", "pid", "uts"];

/// Hidden, as Docker hides them, and a few more files that tell about the host.
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

/// Room for semaphores and small shared memory: Python's `multiprocessing` wants it.
const SHARED_MEMORY_BYTES: u64 = 4 << 20;

/// Open files of the agent, which has a few of its own and one for each that it brings.
const AGENT_OPEN_FILES: u32 = 1024;

/// What one sandbox is.
#[derive(Debug)]
pub(super) struct Bundle<'a> {
    /// Its root file system.
    pub(super) root: &'a Path,
    /// The agent's binary.
    pub(super) agent: &'a Path,
    /// What its program may use.
    pub(super) limits: &'a Limits,
    /// What the host holds of it.
    pub(super) resources: &'a Resources,
    /// The path of its control group below each hierarchy.
    pub(super) cgroups_path: &'a str,
    /// Whose system calls it makes.
    pub(super) kernel: Kernel,
    /// Its user ids on the host; none where they are the host's own.
    pub(super) ids: Option<IdRange>,
}

impl Bundle<'_> {
    /// The text of `config.json`.
    pub(super) fn config(&self, cgroups: &Cgroups) -> Value {
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
        if self.kernel == Kernel::Gvisor {
            // When the memory is used up, the host's kernel shall take gVisor's: that ends
            // everything. It would take the process that holds a program's memory for it, and
            // the program would seem to have failed by itself.
            config["process"]["oomScoreAdj"] = 1000.into();
            // Its kernel counts the processes of a user, and no other sandbox has users there. The
            // host's group counts gVisor's own threads and cannot be as strict. One less, because
            // it lets one more through than it is told (measured).
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
                // The program sees its own processes and not the agent.
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

/// Files in memory, so many bytes of them. A file takes a page or more, so there cannot be more of
/// them than pages; empty ones count too.
fn files(place: &str, bytes: u64, more: &[&str]) -> Value {
    // Whose it is decides who writes to it. A mode would not: runc before 1.2 gives such a folder the
    // mode of what it is mounted on, which has this one.
    let mut options = ["nosuid", "nodev", "mode=755"].map(ToOwned::to_owned).to_vec();
    options.extend(more.iter().map(|&option| option.to_owned()));
    options.push(format!("size={bytes}"));
    options.push(format!("nr_inodes={}", (bytes / 4096).clamp(64, 1 << 14)));
    json!({ "destination": place, "type": "tmpfs", "source": "tmpfs", "options": options })
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
