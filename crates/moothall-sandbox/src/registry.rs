//! Which sandboxes exist on this host, and who cleans up after a process that was killed.
//!
//! A process that starts sandboxes holds a lock on a file of its own, which the kernel frees when
//! the process dies, however it dies. Before a sandbox takes anything that outlives a process (a
//! container, a cgroup, a folder), a record is written that says what. Whoever finds a record whose
//! owner's lock is free may clean up: that is the reaper.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fs_err as fs;
use moothall_core::sandbox::{IsolationClass, Labels};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{EngineName, SandboxError};

/// How long the reaper waits for processes that it killed.
const DYING: Duration = Duration::from_secs(5);

/// How long a runtime may take to delete a container.
const DELETING: Duration = Duration::from_secs(20);

/// The cgroup under which all of ours are.
pub(crate) const CGROUP_PARENT: &str = "moothall";

/// The folder of records, and this process's place in it.
#[derive(Debug, Clone)]
pub struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    owner: String,
    lock_path: PathBuf,
    /// Held as long as the process lives.
    _lock: File,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Best effort: an empty lock file of a process that is gone is removed by the next reaper.
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// What the reaper must know about a sandbox, and what people see in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its name among all sandboxes of this host.
    pub name: String,
    /// The engine.
    pub engine: EngineName,
    /// How strong it is.
    pub class: IsolationClass,
    /// The image's name.
    pub image: String,
    /// Whose it is.
    pub labels: Labels,
    /// Who started it.
    pub owner: String,
    /// When, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// The boot of the host in which: process numbers mean nothing in another.
    pub boot: String,
    /// What outlives the process that started it.
    pub leaves: Leaves,
}

/// What a sandbox may leave behind when its owner is killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Leaves {
    /// Processes, by id and start time, so that a reused id is not mistaken.
    pub processes: Vec<ProcessId>,
    /// A container of an OCI runtime.
    pub container: Option<Container>,
    /// Control groups, by folder.
    pub cgroups: Vec<PathBuf>,
    /// Folders of ours.
    pub folders: Vec<PathBuf>,
}

/// A process that cannot be mistaken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessId {
    /// The kernel's number.
    pub pid: i32,
    /// When it started, in the kernel's ticks since boot.
    pub start_ticks: u64,
}

/// How to remove a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Container {
    /// The runtime's program.
    pub runtime: PathBuf,
    /// The folder of its state.
    pub root: PathBuf,
    /// The container's id.
    pub id: String,
}

/// A record on disk. Dropping it leaves it there: only [`RecordGuard::remove`] says that
/// everything it lists is gone.
#[derive(Debug)]
pub struct RecordGuard {
    path: PathBuf,
    record: Record,
}

impl RecordGuard {
    /// What is written there.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Writes down something more that the sandbox leaves behind.
    pub fn update(&mut self, change: impl FnOnce(&mut Leaves)) -> Result<(), SandboxError> {
        change(&mut self.record.leaves);
        write(&self.path, &self.record)
    }

    /// Says whose it is from now on. That the list stays as it was is worth a line in the log and
    /// no more.
    pub fn assign(&mut self, labels: &Labels) {
        self.record.labels = labels.clone();
        if let Err(error) = write(&self.path, &self.record) {
            tracing::warn!(sandbox = self.record.name, %error, "a sandbox keeps its old labels");
        }
    }

    /// Everything is gone.
    pub fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(sandbox = self.record.name, %error, "the record of a sandbox stays");
        }
    }
}

impl ProcessId {
    /// The living process with this number.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may hold anything; the rest follows the last bracket.
        let rest = stat.rsplit_once(") ")?.1;
        // One that has died and is only waited for holds nothing any more.
        if rest.starts_with('Z') {
            return None;
        }
        let start_ticks = rest.split(' ').nth(19)?.parse().ok()?;
        Some(Self { pid, start_ticks })
    }

    fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Kills this process and no other: it is looked at again after it was taken hold of, so its
    /// number cannot have become somebody else's in between.
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

    /// Processes are known by `/proc`: where there is none, none is ours.
    #[cfg(not(target_os = "linux"))]
    fn kill(self) {}
}

impl Registry {
    /// The registry in this folder, with this process as an owner.
    pub fn open(folder: &Path) -> Result<Self, SandboxError> {
        let unusable = || SandboxError::host("the registry of sandboxes cannot be used");
        make_own_folder(folder).map_err(unusable())?;
        check_own_folder(folder)?;
        let mut tries = 0;
        loop {
            let owner = uuid::Uuid::now_v7().simple().to_string();
            let lock_path = folder.join(format!("{owner}.lock"));
            let lock: File = fs::File::create_new(&lock_path).map_err(unusable())?.into_parts().0;
            let locked = flock(&lock, FlockOperation::NonBlockingLockExclusive);
            // A reaper that came between the file and its lock takes it for a dead one's, and may
            // have removed it already: a lock that nobody finds would protect nothing.
            let is_there = rustix::fs::fstat(&lock).is_ok_and(|found| found.st_nlink > 0);
            match locked {
                Ok(()) if is_there => {
                    let folder = folder.to_owned();
                    return Ok(Self(Arc::new(Inner { folder, owner, lock_path, _lock: lock })));
                }
                _ if tries < 10 => tries += 1,
                Ok(()) => return Err(unusable()(ErrorKind::NotFound.into())),
                Err(error) => return Err(unusable()(error.into())),
            }
        }
    }

    /// Writes down a sandbox before it takes anything.
    pub fn record(
        &self,
        name: &str,
        engine: EngineName,
        class: IsolationClass,
        image: &str,
        labels: &Labels,
        leaves: Leaves,
    ) -> Result<RecordGuard, SandboxError> {
        let record = Record {
            name: name.to_owned(),
            engine,
            class,
            image: image.to_owned(),
            labels: labels.clone(),
            owner: self.0.owner.clone(),
            started_at_ms: now_ms(),
            boot: boot_id().unwrap_or_default(),
            leaves,
        };
        let path = self.0.folder.join(format!("{name}.json"));
        write(&path, &record)?;
        Ok(RecordGuard { path, record })
    }

    /// A name that no other sandbox has: the labels' run where there is one, and something random.
    pub fn name_for(&self, labels: &Labels) -> String {
        let run = labels.0.get("run").map_or("loose", |run| run.as_str());
        let run: String =
            run.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(36).collect();
        let random = uuid::Uuid::now_v7().simple().to_string();
        format!("moothall-{run}-{}", &random[20..])
    }

    /// All sandboxes of this host, the oldest first.
    pub fn list(folder: &Path) -> Result<Vec<Record>, SandboxError> {
        let mut records: Vec<Record> = records(folder)?.into_values().collect();
        records.sort_by(|a, b| (a.started_at_ms, &a.name).cmp(&(b.started_at_ms, &b.name)));
        Ok(records)
    }

    /// Cleans up after processes that are gone. Returns the names of what was removed. What cannot
    /// be removed stays on record for the next time.
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
                match vouch_for(&record, folder).and_then(|()| reap_one(&record)) {
                    Ok(()) => {
                        let _ = fs::remove_file(&path);
                        reaped.push(record.name);
                    }
                    Err(problem) => {
                        tracing::warn!(sandbox = record.name, problem, "not cleaned up yet");
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
        // A lock is held until its file is gone, so that two reapers do not fall over each other.
        for (owner, _lock) in free.iter().filter(|(_, lock)| lock.is_some()) {
            let _ = fs::remove_file(folder.join(format!("{owner}.lock")));
        }
        Ok(reaped)
    }
}

/// The lock of an owner that is gone; `None` while it lives. An owner without a lock file is gone:
/// the lock is the first thing that it makes and the last that it removes.
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

/// Whether a record says only what this program writes. A record is a file, and what it names is
/// killed and removed: it may name what is below our own folders and nothing else.
fn vouch_for(record: &Record, folder: &Path) -> Result<(), String> {
    let plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
    let state = folder.parent().unwrap_or(folder);
    let ours = |path: &Path| plain(path) && path != state && path.starts_with(state);
    let leaves = &record.leaves;
    if let Some(stranger) = leaves.folders.iter().find(|path| !ours(path)) {
        return Err(format!("its record names a folder that is not ours: {}", stranger.display()));
    }
    let of_ours = |path: &Path| {
        let parent = path.parent().and_then(Path::file_name);
        plain(path)
            && path.starts_with("/sys/fs/cgroup")
            && parent.is_some_and(|parent| parent == CGROUP_PARENT)
    };
    if let Some(stranger) = leaves.cgroups.iter().find(|path| !of_ours(path)) {
        return Err(format!("its record names a cgroup that is not ours: {}", stranger.display()));
    }
    if let Some(container) = &leaves.container {
        let named = container.id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let known = crate::oci::program(record.engine).as_deref() == Some(&*container.runtime);
        if !named || !known || !ours(&container.root) {
            return Err(format!("its record names a container that is not ours: {}", container.id));
        }
    }
    Ok(())
}

fn reap_one(record: &Record) -> Result<(), String> {
    let leaves = &record.leaves;
    let same_boot = record.boot == boot_id().unwrap_or_default();
    for process in leaves.processes.iter().filter(|_| same_boot) {
        process.kill();
    }
    if let Some(container) = &leaves.container {
        // Its words do not matter: what counts is whether its state is gone.
        let deleting = std::process::Command::new(&container.runtime)
            .arg("--root")
            .arg(&container.root)
            .args(["delete", "--force", &container.id])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        if let Ok(deleting) = deleting {
            wait_or_kill(deleting, DELETING);
        }
        if container.root.join(&container.id).exists() {
            return Err(format!("container {} is still there", container.id));
        }
    }
    let until = std::time::Instant::now() + DYING;
    while same_boot && leaves.processes.iter().any(|process| process.is_alive()) {
        if std::time::Instant::now() > until {
            return Err("a process does not die".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for cgroup in &leaves.cgroups {
        remove_cgroup(cgroup).map_err(|error| error.to_string())?;
    }
    for folder in &leaves.folders {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
            _ => {}
        }
    }
    Ok(())
}

/// Waits for a command, and not for ever.
fn wait_or_kill(mut command: std::process::Child, most: Duration) {
    let until = std::time::Instant::now() + most;
    while matches!(command.try_wait(), Ok(None)) {
        if std::time::Instant::now() > until {
            let _ = command.kill();
            let _ = command.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// This boot of the host, which no other has.
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

/// Records are acted upon, so nobody else may write them.
fn check_own_folder(folder: &Path) -> Result<(), SandboxError> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(folder)
        .map_err(SandboxError::host("the registry of sandboxes cannot be read"))?;
    if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(SandboxError::host(format!(
            "{} belongs to somebody else, or others may write to it",
            folder.display()
        ))(ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

/// Kills what is in a cgroup and removes it. It is fine if there is none.
pub(crate) fn remove_cgroup(folder: &Path) -> std::io::Result<()> {
    let until = std::time::Instant::now() + DYING;
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

fn write(path: &Path, record: &Record) -> Result<(), SandboxError> {
    let unwritable = || SandboxError::host("a sandbox cannot be written down");
    let text = serde_json::to_vec(record).map_err(|error| unwritable()(error.into()))?;
    // Beside it and then over it: a reaper never reads half a record. The owner stands in the name,
    // so that what a killed process left there is removed as well.
    let fresh = path.with_file_name(format!("{}.{}.new", record.name, record.owner));
    fs::write(&fresh, text).map_err(unwritable())?;
    fs::rename(&fresh, path).map_err(unwritable())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SandboxError> {
    let unreadable = || SandboxError::host("the registry of sandboxes cannot be read");
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

fn records(folder: &Path) -> Result<BTreeMap<PathBuf, Record>, SandboxError> {
    let mut records = BTreeMap::new();
    for path in entries(folder)? {
        if path.extension().is_some_and(|extension| extension == "json")
            // One that was removed meanwhile, or that another version wrote, is not ours to judge.
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
