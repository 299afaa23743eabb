use std::time::SystemTime;

use super::*;

#[test]
fn the_mirror_keeps_the_timestamps_of_unchanged_files() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs_err::create_dir_all(from.join("assets")).unwrap();
    fs_err::write(from.join("index.html"), "page").unwrap();
    fs_err::write(from.join("assets/a.js"), "one").unwrap();
    assert!(mirror(&from, &to).unwrap());
    let long_ago = SystemTime::UNIX_EPOCH;
    fs_err::File::open(to.join("index.html")).unwrap().set_modified(long_ago).unwrap();

    assert!(!mirror(&from, &to).unwrap(), "nothing changed");

    fs_err::remove_file(from.join("assets/a.js")).unwrap();
    fs_err::write(from.join("assets/b.js"), "two").unwrap();
    assert!(mirror(&from, &to).unwrap());
    assert_eq!(fs_err::read(to.join("assets/b.js")).unwrap(), b"two");
    assert!(!to.join("assets/a.js").exists());
    let page = fs_err::metadata(to.join("index.html")).unwrap();
    assert_eq!(page.modified().unwrap(), long_ago);
}
