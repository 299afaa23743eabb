use std::time::SystemTime;

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
