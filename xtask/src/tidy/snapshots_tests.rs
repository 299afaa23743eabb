use super::*;
use crate::tidy::headlines;

#[test]
fn reviewed_snapshot_passes() {
    assert_eq!(headlines(&check(&["src/snapshots/a.snap".to_owned()])), [""; 0]);
}

#[test]
fn pending_snapshots_fail() {
    let paths = ["src/snapshots/a.snap.new".to_owned(), "src/.a.rs.pending-snap".to_owned()];
    assert_eq!(
        headlines(&check(&paths)),
        [
            "src/snapshots/a.snap.new: [snapshots] is a snapshot that has not been reviewed",
            "src/.a.rs.pending-snap: [snapshots] is a snapshot that has not been reviewed",
        ]
    );
}

#[test]
fn pending_snapshots_are_found_although_git_ignores_them() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    shell::run(root, &["git", "init", "--quiet"]).unwrap();
    fs_err::create_dir_all(root.join("src/snapshots")).unwrap();
    fs_err::write(root.join(".gitignore"), "*.snap.new\n").unwrap();
    fs_err::write(root.join("src/snapshots/a.snap"), "").unwrap();
    fs_err::write(root.join("src/snapshots/a.snap.new"), "").unwrap();
    fs_err::write(root.join("src/.a.rs.pending-snap"), "").unwrap();

    assert_eq!(candidates(root).unwrap(), ["src/snapshots/a.snap.new", "src/.a.rs.pending-snap"]);
}
