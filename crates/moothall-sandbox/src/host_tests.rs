use std::time::SystemTime;

use moothall_core::sandbox::IsolationClass;

use super::*;

#[test]
fn files_half_written_by_a_killed_process_are_removed() {
    let cache = tempfile::tempdir().unwrap();
    fs::create_dir(cache.path().join("guest")).unwrap();
    let dead = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let (own, old) = (std::process::id(), SystemTime::now() - 2 * ABANDONED_AFTER);
    let file = |name: String, changed: SystemTime| {
        let path = cache.path().join(name);
        fs::File::create(&path).unwrap().set_modified(changed).unwrap();
        path
    };
    let files = [
        file(format!("guest/moothall-guest-0.{dead}.new"), old),
        file(format!("microvm-host.{dead}.new"), old),
        file(format!("microvm-host.{own}.new"), old),
        // A process on another host may be writing it.
        file(format!("other.{dead}.new"), SystemTime::now()),
        file("microvm-host.json".to_owned(), old),
    ];
    remove_temporary_files(cache.path());
    assert_eq!(files.map(|path| path.exists()), [false, false, true, true, true]);
}

#[test]
fn a_file_can_be_written_by_many_threads_concurrently() {
    let cache = tempfile::tempdir().unwrap();
    let path = cache.path().join("agent");
    let bytes = vec![7; 1 << 20];
    let written = std::thread::scope(|scope| {
        let writers = [(); 16].map(|()| scope.spawn(|| replace_file(&path, &bytes, 0o755)));
        writers.map(|writer| writer.join().unwrap().map_err(|error| error.to_string()))
    });
    assert_eq!(written, [const { Ok(()) }; 16]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let left: Vec<_> = fs::read_dir(cache.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(left, [path]);
}

#[test]
fn latest_probes_are_read_from_the_cache_strongest_first() {
    let cache = tempfile::tempdir().unwrap();
    assert_eq!(SandboxHost::latest_probes(cache.path(), "python"), []);
    fs::create_dir(cache.path().join("probes")).unwrap();
    let report = |engine, class| ProbeReport {
        engine,
        version: "1".to_owned(),
        class,
        self_tests: Vec::new(),
        held_by: std::collections::BTreeMap::new(),
        start_ms: 1,
        run_ms: 1,
    };
    let weak = report(EngineName::Runc, IsolationClass::SharedKernel);
    let strong = report(EngineName::Runsc, IsolationClass::UserKernel);
    for (image, report) in [("python", &weak), ("python", &strong), ("data", &strong)] {
        let cached = CachedProbe { key: Sha256Hex::of(b"key"), report: report.clone() };
        let path = probe_file(cache.path(), report.engine, image);
        fs::write(path, serde_json::to_vec(&cached).unwrap()).unwrap();
    }
    fs::write(probe_file(cache.path(), EngineName::Microvm, "python"), "{").unwrap();
    assert_eq!(SandboxHost::latest_probes(cache.path(), "python"), [strong, weak]);
}
