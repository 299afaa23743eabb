use std::process::{Command, Stdio};

use super::*;

fn labels() -> SandboxLabels {
    SandboxLabels(BTreeMap::from([("run".to_owned(), "r-1".to_owned())]))
}

fn record(registry: &SandboxRegistry, name: &str, leaves: CleanupList) -> RecordGuard {
    let class = IsolationClass::EmulatedVm;
    registry.record(name, EngineName::Microvm, class, "python", &labels(), leaves).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    SandboxRegistry::list(folder).unwrap().into_iter().map(|record| record.name).collect()
}

#[test]
fn sandboxes_of_a_running_process_are_not_reaped() {
    let folder = tempfile::tempdir().unwrap();
    let registry = SandboxRegistry::open(folder.path()).unwrap();
    let guard = record(&registry, "one", CleanupList::default());
    assert_eq!(SandboxRegistry::reap(folder.path()).unwrap(), Vec::<String>::new());
    assert_eq!(names(folder.path()), ["one"]);
    guard.remove();
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn sandboxes_of_a_dead_process_are_reaped_with_their_files() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("sandboxes");
    let left_folder = state.path().join("oci/bundle");
    fs::create_dir_all(left_folder.join("deep")).unwrap();
    let mut sleeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let process = ProcessId::of(sleeper.id().try_into().unwrap()).unwrap();
    let registry = SandboxRegistry::open(&folder).unwrap();
    let mut guard = record(&registry, "one", CleanupList::default());
    guard
        .update(|leaves| {
            leaves.processes.push(process);
            leaves.folders.push(left_folder.clone());
        })
        .unwrap();
    drop((guard, registry));
    // It is our child, so it stays a zombie until it is waited for.
    let waiter = std::thread::spawn(move || sleeper.wait().unwrap());
    assert_eq!(SandboxRegistry::reap(&folder).unwrap(), ["one"]);
    assert_eq!(waiter.join().unwrap().code(), None);
    assert!(!left_folder.exists());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_registry_record_half_written_by_a_dead_process_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let registry = SandboxRegistry::open(folder.path()).unwrap();
    let half = folder.path().join(format!("one.{}.new", registry.0.owner));
    fs::write(&half, "{").unwrap();
    SandboxRegistry::reap(folder.path()).unwrap();
    assert!(half.exists());
    drop(registry);
    SandboxRegistry::reap(folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_reused_process_id_is_not_killed_by_the_reaper() {
    let folder = tempfile::tempdir().unwrap();
    let registry = SandboxRegistry::open(folder.path()).unwrap();
    let me = ProcessId::of(std::process::id().try_into().unwrap()).unwrap();
    let other = ProcessId { start_ticks: me.start_ticks + 1, ..me };
    let leaves = CleanupList { processes: vec![other], ..CleanupList::default() };
    drop((record(&registry, "one", leaves), registry));
    // This process is still alive, so the reaper did not kill it.
    assert_eq!(SandboxRegistry::reap(folder.path()).unwrap(), ["one"]);
}

#[test]
fn sandbox_names_contain_the_run_and_are_unique() {
    let folder = tempfile::tempdir().unwrap();
    let registry = SandboxRegistry::open(folder.path()).unwrap();
    let (one, two) = (registry.name_for(&labels()), registry.name_for(&labels()));
    assert!(one.starts_with("moothall-r-1-"), "{one}");
    assert_ne!(one, two);
}

#[test]
fn the_reaper_ignores_a_record_with_foreign_paths() {
    let elsewhere = tempfile::tempdir().unwrap();
    let victim = elsewhere.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let container = |runtime: &str, root: &Path| ContainerRef {
        runtime: runtime.into(),
        root: root.to_owned(),
        id: "one".to_owned(),
    };
    let state = tempfile::tempdir().unwrap();
    let inside = state.path().join("oci");
    let cases = [
        CleanupList { folders: vec![victim.clone()], ..CleanupList::default() },
        CleanupList { folders: vec![inside.join("../../victim")], ..CleanupList::default() },
        CleanupList { folders: vec![state.path().to_owned()], ..CleanupList::default() },
        CleanupList { cgroups: vec![victim.clone()], ..CleanupList::default() },
        CleanupList {
            cgroups: vec!["/sys/fs/cgroup/system.slice".into()],
            ..CleanupList::default()
        },
        CleanupList { container: Some(container("./evil", &inside)), ..CleanupList::default() },
        CleanupList { container: Some(container("/bin/true", &inside)), ..CleanupList::default() },
    ];
    for leaves in cases {
        let folder = state.path().join("sandboxes");
        let registry = SandboxRegistry::open(&folder).unwrap();
        let class = IsolationClass::SharedKernel;
        let record =
            registry.record("one", EngineName::Runc, class, "python", &labels(), leaves.clone());
        drop((record.unwrap(), registry));
        assert_eq!(SandboxRegistry::reap(&folder).unwrap(), Vec::<String>::new(), "{leaves:?}");
        assert_eq!(names(&folder), ["one"]);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(victim.exists());
}

#[test]
fn a_registry_writable_by_other_users_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("sandboxes");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(SandboxRegistry::open(&folder).is_err());
    assert!(SandboxRegistry::reap(&folder).is_err());
}
