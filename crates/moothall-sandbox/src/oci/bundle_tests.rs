use super::*;

fn config(kernel: Kernel) -> Value {
    let resources = Resources { memory_bytes: 268_435_456, pids: 65, cpu_quota: 50_000 };
    let bundle = Bundle {
        root: Path::new("/images/x/root"),
        agent: Path::new("/cache/guest"),
        limits: &Limits::default(),
        resources: &resources,
        cgroups_path: "/moothall/x",
        kernel,
    };
    let mut config = bundle.config(&Cgroups::of_first_kind());
    // It has tests of its own.
    config["linux"]["seccomp"].take();
    config
}

/// Every word of it is a wall, so every change of it is looked at.
#[test]
fn writes_a_bundle() {
    insta::assert_json_snapshot!(config(Kernel::Host));
}

#[test]
fn has_gvisor_count_processes_and_die_first_when_memory_runs_out() {
    let mut expected = config(Kernel::Host);
    expected["process"]["oomScoreAdj"] = 1000.into();
    let limits = expected["process"]["rlimits"].as_array_mut().unwrap();
    limits.push(json!({ "type": "RLIMIT_NPROC", "hard": 63, "soft": 63 }));
    assert_eq!(config(Kernel::Gvisor), expected);
}

#[test]
fn asks_for_nothing_that_the_host_cannot_hold() {
    let resources = Resources { memory_bytes: 1, pids: 1, cpu_quota: 1 };
    let section = resources.section(&Cgroups::without_any());
    assert_eq!(section, json!({ "devices": [{ "allow": false, "access": "rwm" }] }));
}
