use std::process::{Command, Stdio};

use super::*;

fn labels() -> Labels {
    Labels(BTreeMap::from([("run".to_owned(), "r-1".to_owned())]))
}

fn record(registry: &Registry, name: &str, leaves: Leaves) -> RecordGuard {
    let class = IsolationClass::EmulatedVm;
    registry.record(name, EngineName::Microvm, class, "python", &labels(), leaves).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    Registry::list(folder).unwrap().into_iter().map(|record| record.name).collect()
}

#[test]
fn what_a_living_process_owns_is_not_reaped() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let guard = record(&registry, "one", Leaves::default());
    assert_eq!(Registry::reap(folder.path()).unwrap(), Vec::<String>::new());
    assert_eq!(names(folder.path()), ["one"]);
    guard.remove();
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn what_a_dead_process_left_is_reaped_with_everything_it_wrote_down() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("sandboxes");
    let left_folder = state.path().join("oci/bundle");
    fs::create_dir_all(left_folder.join("deep")).unwrap();
    let mut sleeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let process = ProcessId::of(sleeper.id().try_into().unwrap()).unwrap();
    let registry = Registry::open(&folder).unwrap();
    let mut guard = record(&registry, "one", Leaves::default());
    guard
        .update(|leaves| {
            leaves.processes.push(process);
            leaves.folders.push(left_folder.clone());
        })
        .unwrap();
    drop((guard, registry));
    // The child is ours, so it stays a zombie until somebody asks for it.
    let waiter = std::thread::spawn(move || sleeper.wait().unwrap());
    assert_eq!(Registry::reap(&folder).unwrap(), ["one"]);
    assert_eq!(waiter.join().unwrap().code(), None);
    assert!(!left_folder.exists());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_record_that_was_being_written_when_its_owner_was_killed_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let half = folder.path().join(format!("one.{}.new", registry.0.owner));
    fs::write(&half, "{").unwrap();
    Registry::reap(folder.path()).unwrap();
    assert!(half.exists());
    drop(registry);
    Registry::reap(folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_process_id_that_was_given_to_another_process_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let me = ProcessId::of(std::process::id().try_into().unwrap()).unwrap();
    let other = ProcessId { start_ticks: me.start_ticks + 1, ..me };
    let leaves = Leaves { processes: vec![other], ..Leaves::default() };
    drop((record(&registry, "one", leaves), registry));
    // We are still here to say so.
    assert_eq!(Registry::reap(folder.path()).unwrap(), ["one"]);
}

#[test]
fn names_carry_the_run_and_differ() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::open(folder.path()).unwrap();
    let (one, two) = (registry.name_for(&labels()), registry.name_for(&labels()));
    assert!(one.starts_with("moothall-r-1-"), "{one}");
    assert_ne!(one, two);
}

#[test]
fn a_record_that_names_what_is_not_ours_is_not_acted_upon() {
    let elsewhere = tempfile::tempdir().unwrap();
    let victim = elsewhere.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let container = |runtime: &str, root: &Path| Container {
        runtime: runtime.into(),
        root: root.to_owned(),
        id: "one".to_owned(),
    };
    let state = tempfile::tempdir().unwrap();
    let inside = state.path().join("oci");
    let cases = [
        Leaves { folders: vec![victim.clone()], ..Leaves::default() },
        Leaves { folders: vec![inside.join("../../victim")], ..Leaves::default() },
        Leaves { folders: vec![state.path().to_owned()], ..Leaves::default() },
        Leaves { cgroups: vec![victim.clone()], ..Leaves::default() },
        Leaves { cgroups: vec!["/sys/fs/cgroup/system.slice".into()], ..Leaves::default() },
        Leaves { container: Some(container("./evil", &inside)), ..Leaves::default() },
        Leaves { container: Some(container("/bin/true", &inside)), ..Leaves::default() },
    ];
    for leaves in cases {
        let folder = state.path().join("sandboxes");
        let registry = Registry::open(&folder).unwrap();
        let class = IsolationClass::SharedKernel;
        let record =
            registry.record("one", EngineName::Runc, class, "python", &labels(), leaves.clone());
        drop((record.unwrap(), registry));
        assert_eq!(Registry::reap(&folder).unwrap(), Vec::<String>::new(), "{leaves:?}");
        assert_eq!(names(&folder), ["one"]);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(victim.exists());
}

#[test]
fn a_registry_that_others_may_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("sandboxes");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(Registry::open(&folder).is_err());
    assert!(Registry::reap(&folder).is_err());
}
