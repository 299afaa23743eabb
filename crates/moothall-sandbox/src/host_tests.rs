use std::time::SystemTime;

use super::*;

#[test]
fn what_a_killed_process_was_writing_is_removed() {
    let cache = tempfile::tempdir().unwrap();
    fs::create_dir(cache.path().join("guest")).unwrap();
    let dead = {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    let (own, old) = (std::process::id(), SystemTime::now() - 2 * WRITING);
    let file = |name: String, changed: SystemTime| {
        let path = cache.path().join(name);
        fs::File::create(&path).unwrap().set_modified(changed).unwrap();
        path
    };
    let files = [
        file(format!("guest/moothall-guest-0.{dead}.new"), old),
        file(format!("microvm-host.{dead}.new"), old),
        file(format!("microvm-host.{own}.new"), old),
        // It may be another host's, which is writing it now.
        file(format!("other.{dead}.new"), SystemTime::now()),
        file("microvm-host.json".to_owned(), old),
    ];
    remove_half_written(cache.path());
    assert_eq!(files.map(|path| path.exists()), [false, false, true, true, true]);
}
