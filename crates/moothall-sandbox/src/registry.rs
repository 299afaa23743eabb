//! Records the sandboxes of this host and cleans up after killed processes.
//!
//! A process that starts sandboxes holds a lock on its own lock file, which the kernel releases
//! when the process dies. Before a sandbox creates anything that outlives the process (a container,
//! a cgroup, a folder), a record of it is written. The reaper cleans up records whose owner's lock
//! is free.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fs_err as fs;
use moothall_core::sandbox::{IsolationClass, SandboxLabels};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{EngineName, SandboxError};

/// How long the reaper waits for killed processes.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for a runtime to delete a container.
const DELETE_TIMEOUT: Duration = Duration::from_secs(20);

/// Parent of all cgroups created here.
pub(crate) const CGROUP_PARENT: &str = "moothall";

/// The folder of records, with this process as an owner.
#[derive(Debug, Clone)]
pub struct SandboxRegistry(Arc<SandboxRegistryInner>);

#[derive(Debug)]
struct SandboxRegistryInner {
    folder: PathBuf,
    owner: String,
    lock_path: PathBuf,
    /// Held while the process lives.
    _lock: File,
}

impl Drop for SandboxRegistryInner {
    fn drop(&mut self) {
        // Best effort: the next reaper removes leftover lock files.
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// The record of one sandbox, used by the reaper and shown in listings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxRecord {
    /// Name, unique on this host.
    pub name: String,
    pub engine: EngineName,
    pub class: IsolationClass,
    pub image: String,
    pub labels: SandboxLabels,
    /// Id of the process that started it.
    pub owner: String,
    /// Start time in milliseconds since 1970.
    pub started_at_ms: u64,
    /// Boot id of the host. Process ids are valid only within one boot.
    pub boot: String,
    /// Resources that outlive the owner.
    pub leaves: CleanupList,
}

/// Resources to clean up if the owner is killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CleanupList {
    /// Processes, by id and start time to detect reused ids.
    pub processes: Vec<ProcessId>,
    /// Container of an OCI runtime.
    pub container: Option<ContainerRef>,
    /// Cgroup folders.
    pub cgroups: Vec<PathBuf>,
    /// Folders created for the sandbox.
    pub folders: Vec<PathBuf>,
}

/// Identifies a process even if its id is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessId {
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

/// What is needed to delete a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerRef {
    /// Path of the runtime.
    pub runtime: PathBuf,
    /// The runtime's state folder.
    pub root: PathBuf,
    pub id: String,
}

/// A record on disk. Dropping it keeps the record; call [`RecordGuard::remove`] once everything it
/// lists is gone.
#[derive(Debug)]
pub struct RecordGuard {
    path: PathBuf,
    record: SandboxRecord,
}

impl RecordGuard {
    pub fn record(&self) -> &SandboxRecord {
        &self.record
    }

    /// Changes the recorded resources.
    pub fn update(&mut self, change: impl FnOnce(&mut CleanupList)) -> Result<(), SandboxError> {
        change(&mut self.record.leaves);
        write(&self.path, &self.record)
    }

    /// Sets the owner labels. A failed write is only logged, because labels are informational.
    pub fn assign(&mut self, labels: &SandboxLabels) {
        self.record.labels = labels.clone();
        if let Err(error) = write(&self.path, &self.record) {
            tracing::warn!(sandbox = self.record.name, %error, "cannot update the labels of a sandbox");
        }
    }

    /// Removes the record.
    pub fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(sandbox = self.record.name, %error, "cannot remove the record of a sandbox");
        }
    }
}

impl ProcessId {
    /// The running process with this id.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The process name is in brackets and may contain anything, so search for the last bracket.
        let rest = stat.rsplit_once(") ")?.1;
        // A zombie no longer holds any resources.
        if rest.starts_with('Z') {
            return None;
        }
        let start_ticks = rest.split(' ').nth(19)?.parse().ok()?;
        Some(Self { pid, start_ticks })
    }

    fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Kills exactly this process: its start time is checked again after the pidfd was opened, so a
    /// reused id cannot be hit.
    #[cfg(target_os = "linux")]
    fn kill(self) {
        use rustix::process::{PidfdFlags, Signal};
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid)
            && let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty())
            && self.is_alive()
        {
            let _ = rustix::process::pidfd_send_signal(&held, Signal::KILL);
        }
    }

    /// Processes are identified through `/proc`, which only Linux has.
    #[cfg(not(target_os = "linux"))]
    fn kill(self) {}
}

impl SandboxRegistry {
    /// Opens the registry and registers this process as an owner.
    pub fn open(folder: &Path) -> Result<Self, SandboxError> {
        let unusable = || SandboxError::host("cannot open the sandbox registry");
        make_own_folder(folder).map_err(unusable())?;
        check_own_folder(folder)?;
        let mut tries = 0;
        loop {
            let owner = uuid::Uuid::now_v7().simple().to_string();
            let lock_path = folder.join(format!("{owner}.lock"));
            let lock: File = fs::File::create_new(&lock_path).map_err(unusable())?.into_parts().0;
            let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
            // A reaper may have removed the file before it was locked. A lock on a deleted file
            // protects nothing, so try again.
            let is_there = rustix::fs::fstat(&lock).is_ok_and(|found| found.st_nlink > 0);
            match locked {
                Ok(()) if is_there => {
                    let folder = folder.to_owned();
                    return Ok(Self(Arc::new(SandboxRegistryInner {
                        folder,
                        owner,
                        lock_path,
                        _lock: lock,
                    })));
                }
                _ if tries < 10 => tries += 1,
                Ok(()) => return Err(unusable()(ErrorKind::NotFound.into())),
                Err(error) => return Err(unusable()(error.into())),
            }
        }
    }

    /// Records a sandbox before it creates anything.
    pub fn record(
        &self,
        name: &str,
        engine: EngineName,
        class: IsolationClass,
        image: &str,
        labels: &SandboxLabels,
        cleanup: CleanupList,
    ) -> Result<RecordGuard, SandboxError> {
        let record = SandboxRecord {
            name: name.to_owned(),
            engine,
            class,
            image: image.to_owned(),
            labels: labels.clone(),
            owner: self.0.owner.clone(),
            started_at_ms: now_ms(),
            boot: boot_id().unwrap_or_default(),
            leaves: cleanup,
        };
        let path = self.0.folder.join(format!("{name}.json"));
        write(&path, &record)?;
        Ok(RecordGuard { path, record })
    }

    /// A unique name: the run from the labels, if any, and a random part.
    pub fn name_for(&self, labels: &SandboxLabels) -> String {
        let run = labels.0.get("run").map_or("loose", |run| run.as_str());
        let run: String =
            run.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(36).collect();
        let random = uuid::Uuid::now_v7().simple().to_string();
        format!("moothall-{run}-{}", &random[20..])
    }

    /// All sandboxes of this host, oldest first.
    pub fn list(folder: &Path) -> Result<Vec<SandboxRecord>, SandboxError> {
        let mut records: Vec<SandboxRecord> = records(folder)?.into_values().collect();
        records.sort_by(|a, b| (a.started_at_ms, &a.name).cmp(&(b.started_at_ms, &b.name)));
        Ok(records)
    }

    /// Cleans up after processes that are gone and returns the names of the removed sandboxes.
    /// Anything that cannot be removed stays on record for the next time.
    pub fn reap(folder: &Path) -> Result<Vec<String>, SandboxError> {
        if !folder.exists() {
            return Ok(Vec::new());
        }
        check_own_folder(folder)?;
        let mut free: BTreeMap<String, Option<File>> = BTreeMap::new();
        let mut reaped = Vec::new();
        for (path, record) in records(folder)? {
            let owner_is_gone = free
                .entry(record.owner.clone())
                .or_insert_with(|| take_over(folder, &record.owner))
                .is_some();
            if owner_is_gone {
                match check_record(&record, folder).and_then(|()| reap_one(&record)) {
                    Ok(()) => {
                        let _ = fs::remove_file(&path);
                        reaped.push(record.name);
                    }
                    Err(problem) => {
                        tracing::warn!(
                            sandbox = record.name,
                            problem,
                            "cannot clean up a sandbox yet"
                        );
                        free.insert(record.owner.clone(), None);
                    }
                }
            }
        }
        for entry in entries(folder)? {
            let stem = entry.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let (owner, half_written) = match entry.extension().and_then(|word| word.to_str()) {
                Some("lock") => (stem, false),
                Some("new") => (stem.rsplit('.').next().unwrap_or_default(), true),
                _ => continue,
            };
            let lock = free.entry(owner.to_owned()).or_insert_with(|| take_over(folder, owner));
            if half_written && lock.is_some() {
                let _ = fs::remove_file(&entry);
            }
        }
        // Locks are held until their files are removed, so that two reapers do not interfere.
        for (owner, _lock) in free.iter().filter(|(_, lock)| lock.is_some()) {
            let _ = fs::remove_file(folder.join(format!("{owner}.lock")));
        }
        Ok(reaped)
    }
}

/// Takes the lock of an owner that is gone; `None` while the owner lives. An owner without a lock
/// file is gone, because it creates the lock first and removes it last.
fn take_over(folder: &Path, owner: &str) -> Option<File> {
    let path = folder.join(format!("{owner}.lock"));
    let file: File = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .ok()?
        .into_parts()
        .0;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok().map(|()| file)
}

/// Checks that a record names only resources that this program creates. The reaper kills and
/// deletes what a record names, so everything must be below our own folders.
fn check_record(record: &SandboxRecord, folder: &Path) -> Result<(), String> {
    let has_no_parent_part =
        |path: &Path| !path.components().any(|part| part == Component::ParentDir);
    let state = folder.parent().unwrap_or(folder);
    let is_own_path =
        |path: &Path| has_no_parent_part(path) && path != state && path.starts_with(state);
    let cleanup = &record.leaves;
    if let Some(foreign) = cleanup.folders.iter().find(|path| !is_own_path(path)) {
        return Err(format!(
            "its record names a folder that moothall does not own: {}",
            foreign.display()
        ));
    }
    let is_own_cgroup = |path: &Path| {
        let parent = path.parent().and_then(Path::file_name);
        has_no_parent_part(path)
            && path.starts_with("/sys/fs/cgroup")
            && parent.is_some_and(|parent| parent == CGROUP_PARENT)
    };
    if let Some(foreign) = cleanup.cgroups.iter().find(|path| !is_own_cgroup(path)) {
        return Err(format!(
            "its record names a cgroup that moothall does not own: {}",
            foreign.display()
        ));
    }
    if let Some(container) = &cleanup.container {
        let named = container.id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let known = crate::oci::program(record.engine).as_deref() == Some(&*container.runtime);
        if !named || !known || !is_own_path(&container.root) {
            return Err(format!(
                "its record names a container that moothall does not own: {}",
                container.id
            ));
        }
    }
    Ok(())
}

fn reap_one(record: &SandboxRecord) -> Result<(), String> {
    let cleanup = &record.leaves;
    let same_boot = record.boot == boot_id().unwrap_or_default();
    for process in cleanup.processes.iter().filter(|_| same_boot) {
        process.kill();
    }
    if let Some(container) = &cleanup.container {
        // The exit status is ignored: the check below is whether its state is gone.
        let deleting = std::process::Command::new(&container.runtime)
            .arg("--root")
            .arg(&container.root)
            .args(["delete", "--force", &container.id])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        if let Ok(deleting) = deleting {
            wait_or_kill(deleting, DELETE_TIMEOUT);
        }
        if container.root.join(&container.id).exists() {
            return Err(format!("container {} still exists", container.id));
        }
    }
    let until = std::time::Instant::now() + EXIT_TIMEOUT;
    while same_boot && cleanup.processes.iter().any(|process| process.is_alive()) {
        if std::time::Instant::now() > until {
            return Err("a killed process did not exit".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for cgroup in &cleanup.cgroups {
        remove_cgroup(cgroup).map_err(|error| error.to_string())?;
    }
    for folder in &cleanup.folders {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for a command and kills it after `limit`.
fn wait_or_kill(mut command: std::process::Child, limit: Duration) {
    let until = std::time::Instant::now() + limit;
    while matches!(command.try_wait(), Ok(None)) {
        if std::time::Instant::now() > until {
            let _ = command.kill();
            let _ = command.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The boot id of the host.
pub(crate) fn boot_id() -> std::io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn make_own_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Records are acted upon, so other users must not be able to write them.
fn check_own_folder(folder: &Path) -> Result<(), SandboxError> {
    use std::os::unix::fs::MetadataExt as _;
    let found =
        fs::metadata(folder).map_err(SandboxError::host("cannot read the sandbox registry"))?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(SandboxError::host(format!(
            "{} belongs to another user or is writable by others",
            folder.display()
        ))(ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

/// Kills all processes in a cgroup and removes it, if it exists.
pub(crate) fn remove_cgroup(folder: &Path) -> std::io::Result<()> {
    let until = std::time::Instant::now() + EXIT_TIMEOUT;
    loop {
        if let Ok(members) = fs::read_to_string(folder.join("cgroup.procs")) {
            for pid in members.lines().filter_map(|line| line.parse().ok()) {
                if let Some(process) = ProcessId::of(pid) {
                    process.kill();
                }
            }
        }
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if std::time::Instant::now() > until => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
            Ok(()) => return Ok(()),
        }
    }
}

fn write(path: &Path, record: &SandboxRecord) -> Result<(), SandboxError> {
    let unwritable = || SandboxError::host("cannot write the record of a sandbox");
    let text = serde_json::to_vec(record).map_err(|error| unwritable()(error.into()))?;
    // Write to a temporary file and rename it, so a reaper never reads a partial record. The
    // name has the owner, so that leftovers of a killed process are removed as well.
    let fresh = path.with_file_name(format!("{}.{}.new", record.name, record.owner));
    fs::write(&fresh, text).map_err(unwritable())?;
    fs::rename(&fresh, path).map_err(unwritable())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SandboxError> {
    let unreadable = || SandboxError::host("cannot read the sandbox registry");
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(unreadable())?,
    };
    let mut paths = Vec::new();
    for entry in read {
        paths.push(entry.map_err(unreadable())?.path());
    }
    paths.sort();
    Ok(paths)
}

fn records(folder: &Path) -> Result<BTreeMap<PathBuf, SandboxRecord>, SandboxError> {
    let mut records = BTreeMap::new();
    for path in entries(folder)? {
        if path.extension().is_some_and(|extension| extension == "json")
            // Skip records that were just removed or that another version wrote.
            && let Ok(bytes) = fs::read(&path)
            && let Ok(record) = serde_json::from_slice(&bytes)
        {
            records.insert(path, record);
        }
    }
    Ok(records)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
