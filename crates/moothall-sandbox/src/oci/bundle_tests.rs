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
fn the_oci_configuration_matches_its_snapshot() {
    insta::assert_json_snapshot!(config(SandboxKernel::Host));
}

#[test]
fn gvisor_gets_a_process_limit_and_the_highest_oom_score() {
    let mut expected = config(SandboxKernel::Host);
    expected["process"]["oomScoreAdj"] = 1000.into();
    let limits = expected["process"]["rlimits"].as_array_mut().unwrap();
    limits.push(json!({ "type": "RLIMIT_NPROC", "hard": 63, "soft": 63 }));
    assert_eq!(config(SandboxKernel::Gvisor), expected);
}

#[test]
fn container_root_is_mapped_to_an_unused_host_id() {
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
fn limits_without_host_support_are_not_requested() {
    let resources = CgroupLimits { memory_bytes: 1, pids: 1, cpu_quota: 1 };
    let section = resources.section(&CgroupSupport::without_any());
    assert_eq!(section, json!({ "devices": [{ "allow": false, "access": "rwm" }] }));
}
