use super::*;

#[track_caller]
fn check_version(said: &str, expected: Option<&str>) {
    assert_eq!(version_in(said).as_deref(), expected);
}

#[test]
fn runtime_versions_are_parsed() {
    check_version("runsc version 0.0~20240729.0\nspec: 1.1.0\n", Some("0.0~20240729.0"));
    check_version("runc version 1.1.5+ds1\ncommit: x\n", Some("1.1.5+ds1"));
    check_version("crun version 1.8.1\n", Some("1.8.1"));
    check_version("runc version \u{1b}[31m", None);
    check_version("usage: something else", None);
    check_version("", None);
}

fn runtime(kind: OciRuntimeKind, version: &str) -> OciRuntime {
    let program = PathBuf::from("/usr/bin/x");
    OciRuntime { kind, program, version: version.to_owned() }
}

#[track_caller]
fn check_flags(kind: OciRuntimeKind, version: &str, expected: &[&str]) {
    let run = runtime(kind, version).run(Path::new("/s"), Path::new("/b"), "mh1");
    let run: Vec<_> = run.iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(run, expected);
}

#[test]
fn runs_gvisor_with_flags_that_its_version_knows() {
    let old =
        ["--root", "/s", "--platform=ptrace", "--network=none", "run", "--bundle", "/b", "mh1"];
    check_flags(OciRuntimeKind::Runsc, "0.0~20221219.0", &old);
    let new = [
        "--root",
        "/s",
        "--platform=systrap",
        "--network=none",
        "--overlay2=none",
        "--host-uds=none",
        "--host-fifo=none",
        "--oci-seccomp",
        "run",
        "--bundle",
        "/b",
        "mh1",
    ];
    check_flags(OciRuntimeKind::Runsc, "0.0~20240729.0", &new);
    check_flags(OciRuntimeKind::Runsc, "release-20260302.0", &new);
}

#[test]
fn runc_is_started_with_the_keep_flag() {
    let runc = ["--root", "/s", "run", "--keep", "--bundle", "/b", "mh1"];
    check_flags(OciRuntimeKind::Runc, "1.1.5", &runc);
    check_flags(OciRuntimeKind::Crun, "1.8.1", &["--root", "/s", "run", "--bundle", "/b", "mh1"]);
}

#[test]
fn cgroup_limits_include_the_overhead_of_the_sandbox() {
    let limits = SandboxLimits { pids: 64, memory_bytes: 256 << 20, ..SandboxLimits::default() };
    let runc = CgroupLimits { memory_bytes: 256 << 20, pids: 65, cpu_quota: 500_000 };
    assert_eq!(OciRuntimeKind::Runc.resources(&limits), runc);
    let runsc = CgroupLimits { memory_bytes: 316 << 20, pids: 512, cpu_quota: 500_000 };
    assert_eq!(OciRuntimeKind::Runsc.resources(&limits), runsc);
}

#[test]
fn the_smallest_limits_still_allow_a_sandbox_to_start() {
    let limits = SandboxLimits { pids: 1, cpu_permille: 1, ..SandboxLimits::default() };
    let expected = CgroupLimits { memory_bytes: 256 << 20, pids: 20, cpu_quota: 1000 };
    assert_eq!(OciRuntimeKind::Crun.resources(&limits), expected);
}
