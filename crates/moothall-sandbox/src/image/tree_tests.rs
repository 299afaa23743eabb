use super::*;

fn file(path: &str, mode: u32, text: &str) -> TreeEntry {
    let (bytes, sha256) = (text.len() as u64, Sha256Hex::of(text.as_bytes()));
    TreeEntry { path: path.to_owned(), node: TreeNode::File { mode, bytes, sha256 } }
}

fn folder(path: &str) -> TreeEntry {
    TreeEntry { path: path.to_owned(), node: TreeNode::Folder { mode: 0o755 } }
}

fn set_mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_normalised_tree_has_no_special_bits_and_no_timestamps() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs_err::create_dir(path("bin")).unwrap();
    fs_err::write(path("bin/su"), "su").unwrap();
    set_mode(&path("bin/su"), 0o4711);
    fs_err::write(path("secret"), "text").unwrap();
    set_mode(&path("secret"), 0o600);
    set_mode(&path("bin"), 0o1777);
    // Points to a file that must not be changed.
    fs_err::os::unix::fs::symlink("/etc/passwd", path("link")).unwrap();

    normalise(root.path()).unwrap();

    let link = TreeNode::Link { target: "/etc/passwd".to_owned() };
    let expected = vec![
        folder("bin"),
        file("bin/su", 0o755, "su"),
        TreeEntry { path: "link".to_owned(), node: link },
        file("secret", 0o644, "text"),
    ];
    assert_eq!(list(root.path()).unwrap(), expected);
    for name in ["", "bin", "bin/su", "link", "secret"] {
        assert_eq!(path(name).symlink_metadata().unwrap().mtime(), 0, "{name}");
    }
    assert_ne!(Path::new("/etc/passwd").metadata().unwrap().mtime(), 0);
}

#[test]
fn a_tree_listing_round_trips_through_json() {
    let link = TreeNode::Link { target: "/etc/passwd".to_owned() };
    let entries = vec![
        folder("a"),
        file("a/b", 0o644, "text"),
        TreeEntry { path: "c".to_owned(), node: link },
        TreeEntry { path: "d".to_owned(), node: TreeNode::Other },
    ];
    let text = moothall_core::canonical_json(&entries).unwrap();
    assert_eq!(serde_json::from_str::<Vec<TreeEntry>>(&text).unwrap(), entries);
}

#[test]
fn folders_are_removed_by_name_at_every_depth() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["a/tests/tests", "b/c/tests", "b/testing"] {
        fs_err::create_dir_all(root.path().join(folder)).unwrap();
        fs_err::write(root.path().join(folder).join("file"), "").unwrap();
    }
    fs_err::write(root.path().join("tests"), "a file of that name").unwrap();
    remove_folders_named(root.path(), &|name| name == "tests").unwrap();
    let left: Vec<_> = list(root.path()).unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(left, ["a", "b", "b/c", "b/testing", "b/testing/file", "tests"]);
}
