use super::*;

fn config(kernel: SandboxKernel) -> Value {
    config_with(kernel, None)
}

fn config_with(kernel: SandboxKernel, ids: Option<IdRange>) -> Value {
    let resources = CgroupLimits { memory_bytes: 268_435_456, pids: 65, cpu_quota: 500_000 };
    let bundle = OciBundle {
        root: Path::new("/images/x/root"),
        agent: Path::new("/cache/guest"),
        limits: &SandboxLimits::default(),
        resources: &resources,
        cgroups_path: "/moothall/x",
        kernel,
        ids,
    };
    let mut config = bundle.config(&CgroupSupport::of_first_kind());
    // Tested separately.
    config["linux"]["seccomp"].take();
    config
}

/// Every line affects isolation, so every change must be reviewed.
#[test]
fn writes_a_bundle() {
    insta::assert_json_snapshot!(config(SandboxKernel::Host));
}

#[test]
fn has_gvisor_count_processes_and_die_first_when_memory_runs_out() {
    let mut expected = config(SandboxKernel::Host);
    expected["process"]["oomScoreAdj"] = 1000.into();
    let limits = expected["process"]["rlimits"].as_array_mut().unwrap();
    limits.push(json!({ "type": "RLIMIT_NPROC", "hard": 63, "soft": 63 }));
    assert_eq!(config(SandboxKernel::Gvisor), expected);
}

#[test]
fn root_inside_is_an_id_outside_that_owns_nothing() {
    let mut expected = config(SandboxKernel::Host);
    let namespaces = expected["linux"]["namespaces"].as_array_mut().unwrap();
    namespaces.push(json!({ "type": "user" }));
    let found = config_with(SandboxKernel::Host, Some(IdRange::of("mh1")));
    for map in ["uidMappings", "gidMappings"] {
        let host_id = found["linux"][map][0]["hostID"].as_u64().unwrap();
        assert!(host_id >= 0x7000_0000, "{host_id}");
        expected["linux"][map] = json!([{ "containerID": 0, "hostID": host_id, "size": 65_536 }]);
    }
    assert_eq!(found, expected);
}

#[test]
fn asks_for_nothing_that_the_host_cannot_hold() {
    let resources = CgroupLimits { memory_bytes: 1, pids: 1, cpu_quota: 1 };
    let section = resources.section(&CgroupSupport::without_any());
    assert_eq!(section, json!({ "devices": [{ "allow": false, "access": "rwm" }] }));
}
