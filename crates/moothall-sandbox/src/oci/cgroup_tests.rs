use super::*;

impl CgroupSupport {
    /// A host with cgroup v1: one controller per hierarchy.
    pub(crate) fn of_first_kind() -> Self {
        let held = CgroupController::ALL.map(|controller| {
            let mount = Path::new("/sys/fs/cgroup").join(controller.name());
            (controller, CgroupHierarchy { mount, kind: CgroupVersion::First })
        });
        Self { held: BTreeMap::from(held), swap: true, ..Self::without_any() }
    }

    /// A host that cannot enforce any limit.
    pub(crate) fn without_any() -> Self {
        Self { mounts: BTreeSet::new(), held: BTreeMap::new(), swap: false, hybrid: false }
    }
}

const HYBRID: &str = "\
25 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
26 25 0:23 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
27 26 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
28 26 0:25 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
29 26 0:26 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
31 26 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

const UNIFIED: &str = "\
35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate
";

#[test]
fn cgroup_controllers_are_found_in_shared_and_separate_hierarchies() {
    let place = |name: &str| PathBuf::from("/sys/fs/cgroup").join(name);
    let own = [
        ("cpu", "cpu,cpuacct"),
        ("cpuacct", "cpu,cpuacct"),
        ("memory", "memory"),
        ("name=systemd", "systemd"),
    ];
    let own = own.map(|(controller, folder)| (controller.to_owned(), place(folder)));
    assert_eq!(hierarchies(HYBRID), (BTreeMap::from(own), Some(place("unified"))));
}

#[test]
fn the_unified_cgroup_hierarchy_is_found() {
    assert_eq!(hierarchies(UNIFIED), (BTreeMap::new(), Some(PathBuf::from("/sys/fs/cgroup"))));
}

#[test]
fn a_mount_table_without_cgroups_gives_no_hierarchies() {
    assert_eq!(hierarchies("nonsense\n1 2 3\n4 5 6 - cgroup\n"), (BTreeMap::new(), None));
}

/// Groups as plain folders; the test writes the files that a kernel would create.
fn group(folder: &Path, kind: CgroupVersion) -> SandboxCgroup {
    let held = CgroupController::ALL.map(|controller| (controller, (folder.to_owned(), kind)));
    SandboxCgroup {
        path: "/moothall/x".to_owned(),
        folders: vec![folder.to_owned()],
        held: BTreeMap::from(held),
        swap: true,
    }
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

#[track_caller]
fn check_limits(kind: CgroupVersion, expected: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let resources = CgroupLimits { memory_bytes: 268_435_456, pids: 512, cpu_quota: 500_000 };
    let group = group(folder.path(), kind);
    group.create(&resources).unwrap();
    group.limit_cpu(&resources).unwrap();
    let expected = expected.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
    assert_eq!(files(folder.path()), expected.collect());
}

#[test]
fn limits_are_written_to_cgroup_v1_hierarchies() {
    check_limits(
        CgroupVersion::First,
        &[
            ("cpu.cfs_period_us", "1000000"),
            ("cpu.cfs_quota_us", "500000"),
            ("memory.limit_in_bytes", "268435456"),
            ("memory.memsw.limit_in_bytes", "268435456"),
            ("pids.max", "512"),
        ],
    );
}

#[test]
fn limits_are_written_to_a_cgroup_v2_hierarchy() {
    check_limits(
        CgroupVersion::Second,
        &[
            ("cpu.max", "500000 1000000"),
            ("memory.max", "268435456"),
            ("memory.swap.max", "0"),
            ("pids.max", "512"),
        ],
    );
}

#[track_caller]
fn check_out_of_memory(kind: CgroupVersion, file: &str, text: &str, expected: bool) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file), text).unwrap();
    assert_eq!(group(folder.path(), kind).was_out_of_memory(), expected);
}

#[test]
fn an_oom_kill_is_detected_in_the_cgroup() {
    let control = |count| format!("oom_kill_disable 0\nunder_oom 0\noom_kill {count}\n");
    check_out_of_memory(CgroupVersion::First, "memory.oom_control", &control(0), false);
    check_out_of_memory(CgroupVersion::First, "memory.oom_control", &control(2), true);
    let events = |count| format!("low 0\nhigh 0\nmax 9\noom 1\noom_kill {count}\n");
    check_out_of_memory(CgroupVersion::Second, "memory.events", &events(0), false);
    check_out_of_memory(CgroupVersion::Second, "memory.events", &events(1), true);
    // A group that is gone, or a kernel without this counter.
    check_out_of_memory(CgroupVersion::Second, "other", "", false);
}
