//! What can be left on a host: processes, cgroups, mounts, sockets, files, memory.
//!
//! Other tests may have sandboxes on the same host. Ours are identified by their records, which are
//! watched from the beginning; leftover processes are those without a living owner.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use moothall_core::Sha256Hex;
use moothall_sandbox::{ProcessId, SandboxHost};
use rustix::fs::inotify;

use super::{EXIT_TIMEOUT, reap, victim};

/// Allowed growth of memory in anonymous files. A template takes twice as much.
const TOLERANCE: u64 = 48 << 20;

/// Process names that belong to sandboxes.
const NAMES: [&str; 8] = [
    "qemu-system",
    "moothall-guest",
    "moothall-jail",
    "moothall-sp",
    "runsc",
    "runc",
    "exe",
    "python3",
];

/// The state of the host before the test, and the records written since.
pub(crate) struct Before {
    /// The random parts of the names of all our sandboxes.
    names: Arc<Mutex<BTreeSet<String>>>,
    shared_memory: u64,
    /// The process that adopts orphans.
    adopter: i32,
}

impl Before {
    /// Captures the state of the host and starts watching sandbox records.
    pub(crate) fn look(folder: &Path) -> Self {
        let records = SandboxHost::records(&victim::state(folder));
        fs_err::create_dir_all(&records).unwrap();
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, &records, inotify::WatchFlags::MOVED_TO).unwrap();
        let names = Arc::default();
        std::thread::spawn({
            let names = Arc::clone(&names);
            move || note_names(&watch, &names)
        });
        Self { names, shared_memory: shared_memory(), adopter: adopter() }
    }

    /// Number of sandboxes.
    pub(crate) fn count(&self) -> usize {
        self.names.lock().unwrap().len()
    }

    /// Whether a text contains the name of one of our sandboxes.
    fn names_ours(&self, text: &str) -> bool {
        self.names.lock().unwrap().iter().any(|name| text.contains(name))
    }

    /// Runs the reaper and fails if anything is left. Returns how many sandboxes it found.
    pub(crate) fn expect_nothing_left(&self, folder: &Path) -> usize {
        let mut reaped = 0;
        // Twice, because resources that are being created may be missed the first time.
        for _ in 0..2 {
            let began = Instant::now();
            reaped += reap(folder);
            let mut left = self.leftovers(folder);
            while !left.is_empty() {
                assert!(began.elapsed() < EXIT_TIMEOUT, "left behind: {left:#?}");
                std::thread::sleep(Duration::from_millis(100));
                // A child that is being forked holds its parent's lock for a moment.
                reaped += reap(folder);
                left = &left & &self.leftovers(folder);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        reaped
    }

    fn leftovers(&self, folder: &Path) -> BTreeSet<String> {
        let mut left = files(folder);
        let processes = processes();
        let is_orphan = |pid: i32| is_orphan(pid, &processes, self.adopter);
        let text = folder.to_str().unwrap();
        let began = ProcessId::of(i32::try_from(std::process::id()).unwrap()).unwrap().start_ticks;
        for (pid, process) in &processes {
            let ours = process.command.contains(text) || process.command.contains(victim::NAME);
            let new = process.start_ticks >= began;
            if ours || (new && process.belongs_to_a_sandbox() && is_orphan(*pid)) {
                left.insert(format!("process {pid}: {} {}", process.name, process.command));
            }
        }
        let ours = |text_of: &str| text_of.contains(text) || self.names_ours(text_of);
        let cgroups = cgroups().into_iter().map(|path| path.display().to_string());
        left.extend(cgroups.filter(|path| ours(path)).map(|path| format!("control group {path}")));
        for (what, table) in [("mount", "/proc/self/mountinfo"), ("socket", "/proc/net/unix")] {
            let table = fs_err::read_to_string(table).unwrap();
            let lines = table.lines().filter(|line| ours(line));
            left.extend(lines.map(|line| format!("{what} {line}")));
        }
        // The kernel reports only the total, which says nothing while other sandboxes run.
        let alone = !processes.values().any(|process| process.name.starts_with("qemu-system"));
        if alone && shared_memory() > self.shared_memory + TOLERANCE {
            left.insert("memory in files without a name".to_owned());
        }
        left
    }
}

struct Process {
    name: String,
    command: String,
    parent: i32,
    start_ticks: u64,
}

impl Process {
    fn belongs_to_a_sandbox(&self) -> bool {
        NAMES.iter().any(|name| self.name.starts_with(name))
    }
}

fn processes() -> BTreeMap<i32, Process> {
    let mut found = BTreeMap::new();
    for folder in names(Path::new("/proc")) {
        let Some(pid) = folder.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
            continue;
        };
        // Exited processes and zombies hold nothing.
        let Some(ProcessId { start_ticks, .. }) = ProcessId::of(pid) else { continue };
        let Ok(stat) = fs_err::read_to_string(folder.join("stat")) else { continue };
        let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
        let Some(parent) = rest.split(' ').nth(1).and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let name = name.split_once('(').map(|(_, name)| name.to_owned()).unwrap_or_default();
        let command = fs_err::read(folder.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        found.insert(pid, Process { name, command, parent, start_ticks });
    }
    found
}

/// Whether a sandbox process has no living owner among its ancestors.
fn is_orphan(pid: i32, processes: &BTreeMap<i32, Process>, adopter: i32) -> bool {
    let mut at = pid;
    while let Some(process) = processes.get(&at) {
        if !process.belongs_to_a_sandbox() {
            return false;
        }
        if process.parent == adopter || process.parent == 0 {
            return true;
        }
        at = process.parent;
    }
    true
}

/// The process that becomes the parent of orphans.
fn adopter() -> i32 {
    let orphan = std::process::Command::new("sh")
        .args(["-c", "sleep 5 >/dev/null 2>&1 & echo $!"])
        .output()
        .unwrap();
    let pid: i32 = String::from_utf8(orphan.stdout).unwrap().trim().parse().unwrap();
    let parent = processes().get(&pid).expect("a process that sleeps").parent;
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    parent
}

/// Files and folders that are not part of a cache.
fn files(folder: &Path) -> BTreeSet<String> {
    let (cache, state) = (victim::cache(folder), victim::state(folder));
    let mut left = names(&state.join("sandboxes"));
    left.extend(names(&state.join("oci")));
    left.remove(&state.join("oci/bare"));
    left.extend(names(&state));
    left.remove(&state.join("sandboxes"));
    left.remove(&state.join("oci"));
    for kept in names(&cache) {
        match kept.file_name().and_then(|name| name.to_str()) {
            Some("microvm-host.json") => {}
            Some("guest") => left.extend(names(&kept).into_iter().filter(|file| !is_agent(file))),
            Some("templates") => {
                left.extend(names(&kept).into_iter().filter(|file| !is_template(file)));
            }
            _ => drop(left.insert(kept)),
        }
    }
    left.into_iter().map(|path| format!("file {}", path.display())).collect()
}

fn is_agent(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("moothall-guest-").is_some_and(|hash| Sha256Hex::parse(hash).is_some())
}

fn is_template(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Sha256Hex::parse(name.strip_suffix(".lock").unwrap_or(name)).is_some()
}

fn cgroups() -> BTreeSet<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let mut found = names(&top.join("moothall"));
    for hierarchy in names(top) {
        found.extend(names(&hierarchy.join("moothall")));
    }
    found.retain(|path| path.is_dir());
    found
}

/// Reads the names of records as they appear. Every change to a record makes it appear again.
fn note_names(watch: &OwnedFd, names: &Mutex<BTreeSet<String>>) {
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut space);
    loop {
        let event = events.next().unwrap();
        // The last event reports that the folder is gone and has no name.
        let Some(file) = event.file_name() else { return };
        let name = file.to_str().unwrap().strip_suffix(".json").expect("a record");
        names.lock().unwrap().insert(name.rsplit('-').next().unwrap().to_owned());
    }
}

/// Memory in anonymous files and tmpfs.
fn shared_memory() -> u64 {
    let text = fs_err::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = fs_err::read_dir(folder) else { return BTreeSet::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}
