//! User namespaces for containers that share the host's kernel: root inside is an id outside that owns
//! nothing.
//!
//! A runtime opens the root file system with the ids of the container, and a home folder is often closed
//! to everybody else. So the runtime gets a mount namespace of its own, in which image and agent are
//! mounted where every id can reach them. It ends with the runtime and leaves nothing on the host.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::{Value, json};

use super::runtime::Kind;

/// Whether containers have user ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserNamespace {
    /// Where the host allows it.
    Private,
    /// Root inside is the host's root, behind capabilities and a list of system calls.
    Host,
}

/// The first host id that containers are mapped to. systemd's table of ids lists 1879048192 to 2147352575
/// as unused, and no distribution gives them to users.
const FIRST_ID: u32 = 0x7000_0000;
/// Ids of one container.
const IDS: u32 = 1 << 16;
/// Containers with ranges of their own: what the kernel counts by user is then counted for each of them.
const RANGES: u32 = 4_000;

/// Folders that exist on every distribution. One of them is covered in the runtime's mount namespace.
const STAGES: [&str; 4] = ["/mnt", "/media", "/srv", "/opt"];

/// Where programs of the base system are.
const PROGRAMS: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// As the gate of other containers, after which image (`$2`) and agent (`$3`) are mounted below the
/// stage (`$1`).
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
pub(super) struct IdRange {
    first: u32,
}

impl IdRange {
    /// The range for a container, from the random part of its name.
    pub(super) fn of(id: &str) -> Self {
        let sum =
            id.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Self { first: FIRST_ID + (sum % RANGES) * IDS }
    }

    /// The mappings of a bundle, for users and for groups.
    pub(super) fn mappings(self) -> Value {
        json!([{ "containerID": 0, "hostID": self.first, "size": IDS }])
    }
}

/// A host on which containers can have ids of their own.
#[derive(Debug, Clone)]
pub(super) struct UserNamespaceSupport {
    unshare: PathBuf,
}

/// How one runtime is started in a mount namespace of its own.
#[derive(Debug)]
pub(super) struct MountStage {
    folder: PathBuf,
}

impl UserNamespaceSupport {
    /// Looks at kernel and programs; nothing where containers share the host's ids. Whether it works is
    /// for a probe to find out.
    pub(super) fn detect(kind: Kind) -> Option<Self> {
        // gVisor's root is none of the host's. crun is not tried on any machine that tests run on.
        if kind != Kind::Runc {
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

    /// A stage that covers none of these paths.
    pub(super) fn stage(&self, needed: &[&Path]) -> Option<MountStage> {
        let needed: Vec<PathBuf> = needed
            .iter()
            .map(|path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
            .collect();
        let is_free = |stage: &&str| {
            let is_folder = Path::new(stage).symlink_metadata().is_ok_and(|found| found.is_dir());
            is_folder && !needed.iter().any(|path| path.starts_with(stage))
        };
        let folder = STAGES.into_iter().find(is_free)?;
        Some(MountStage { folder: PathBuf::from(folder) })
    }

    /// The program and the arguments that come before those of the runtime.
    pub(super) fn command(
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
    /// Where the image is, as the runtime sees it.
    pub(super) fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Where the agent is.
    pub(super) fn agent(&self) -> PathBuf {
        self.folder.join("agent")
    }
}

/// Whether a map of this process's own namespace has all ids of containers: inside of a container it
/// may not.
fn has_ids(map: &str) -> bool {
    let last = u64::from(FIRST_ID) + u64::from(RANGES) * u64::from(IDS);
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
    PROGRAMS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

#[cfg(test)]
#[path = "user_namespace_tests.rs"]
mod tests;
