//! User namespaces for containers that share the host's kernel: root inside maps to an unprivileged
//! id outside.
//!
//! A runtime opens the root file system with the container's ids, which often cannot access a home
//! folder. So the runtime gets its own mount namespace, with the image and the agent mounted where
//! every id can reach them. The namespace ends with the runtime and leaves nothing on the host.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::{Value, json};

use super::runtime::OciRuntimeKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserNamespace {
    /// Containers get their own user ids if the host allows it.
    Private,
    /// Root inside is the host's root, restricted by capabilities and seccomp.
    Host,
}

/// The first host id for containers. systemd's table of ids lists 1879048192 to 2147352575 as
/// unused, and no distribution assigns them to users.
const FIRST_ID: u32 = 0x7000_0000;
/// Number of ids per container.
const IDS_PER_CONTAINER: u32 = 1 << 16;
/// Number of id ranges. Separate ranges keep the kernel's per-user counters apart.
const ID_RANGES: u32 = 4_000;

/// Folders that exist on every distribution. One of them is mounted over in the runtime's mount
/// namespace.
const STAGE_FOLDERS: [&str; 4] = ["/mnt", "/media", "/srv", "/opt"];

/// Folders of base system programs.
const PROGRAM_FOLDERS: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// Waits like `GATE`, then mounts the image (`$2`) and the agent (`$3`) below the stage (`$1`).
const STAGING_GATE: &str = r#"
read -r _ || exit 1
mount -n -t tmpfs -o mode=755,size=64k,nosuid,nodev tmpfs "$1" &&
mkdir "$1/root" && : >"$1/agent" &&
mount -n --bind "$2" "$1/root" && mount -n --bind "$3" "$1/agent" || exit 1
shift 3
exec "$@"
"#;

/// The host ids of one container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdRange {
    first: u32,
}

impl IdRange {
    /// Derives the range from the random part of the container's name.
    pub(crate) fn of(id: &str) -> Self {
        let sum =
            id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self { first: FIRST_ID + (sum % ID_RANGES) * IDS_PER_CONTAINER }
    }

    /// Id mappings for the bundle, the same for users and groups.
    pub(crate) fn mappings(self) -> Value {
        json!([{ "containerID": 0, "hostID": self.first, "size": IDS_PER_CONTAINER }])
    }
}

/// Tools for starting containers in a user namespace.
#[derive(Debug, Clone)]
pub(crate) struct UserNamespaceSupport {
    unshare: PathBuf,
}

/// The folder that is mounted over in the runtime's mount namespace.
#[derive(Debug)]
pub(crate) struct MountStage {
    folder: PathBuf,
}

impl UserNamespaceSupport {
    /// Checks the kernel and the required programs. Returns `None` if containers must use the
    /// host's ids. Only a probe shows whether it works.
    pub(crate) fn detect(kind: OciRuntimeKind) -> Option<Self> {
        // Root in gVisor is not the host's root. crun is not available on any test machine, so it
        // is not enabled.
        if kind != OciRuntimeKind::Runc {
            return None;
        }
        let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").ok()?;
        if limit.trim().parse::<u64>().ok()? == 0 {
            return None;
        }
        let maps = ["/proc/self/uid_map", "/proc/self/gid_map"].map(fs::read_to_string);
        if !maps.into_iter().all(|map| map.is_ok_and(|map| has_ids(&map))) {
            return None;
        }
        find_program("mount")?;
        Some(Self { unshare: find_program("unshare")? })
    }

    /// Finds a stage folder that does not hide any of these paths.
    pub(crate) fn stage(&self, needed: &[&Path]) -> Option<MountStage> {
        let needed: Vec<PathBuf> = needed
            .iter()
            .map(|path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
            .collect();
        let is_free = |stage: &&str| {
            let is_folder = Path::new(stage).symlink_metadata().is_ok_and(|found| found.is_dir());
            is_folder && !needed.iter().any(|path| path.starts_with(stage))
        };
        let folder = STAGE_FOLDERS.into_iter().find(is_free)?;
        Some(MountStage { folder: PathBuf::from(folder) })
    }

    /// The command that precedes the runtime's own arguments.
    pub(crate) fn command(
        &self,
        stage: &MountStage,
        root: &Path,
        agent: &Path,
    ) -> std::process::Command {
        let mut command = std::process::Command::new(&self.unshare);
        command
            .args(["--mount", "--propagation", "private", "--", "/bin/sh", "-c", STAGING_GATE])
            .arg("moothall")
            .args([stage.folder.as_path(), root, agent]);
        command
    }
}

impl MountStage {
    /// Path of the image as seen by the runtime.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Path of the agent as seen by the runtime.
    pub(crate) fn agent(&self) -> PathBuf {
        self.folder.join("agent")
    }
}

/// Whether this process's id map covers all container ids. Inside a container it may not.
fn has_ids(map: &str) -> bool {
    let last = u64::from(FIRST_ID) + u64::from(ID_RANGES) * u64::from(IDS_PER_CONTAINER);
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(inside)), Some(Ok(_)), Some(Ok(count))) => {
                inside <= u64::from(FIRST_ID) && last <= inside.saturating_add(count)
            }
            _ => false,
        }
    })
}

fn find_program(name: &str) -> Option<PathBuf> {
    PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

#[cfg(test)]
#[path = "user_namespace_tests.rs"]
mod tests;
