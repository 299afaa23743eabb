use super::*;

fn problem(result: Result<(), SandboxError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_root_file_system_with_every_mount_point_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("bare");
    make_bare_root(&root).unwrap();
    check_root(&root, "x").unwrap();
    // Created once and reused.
    make_bare_root(&root).unwrap();
}

#[test]
fn a_root_file_system_without_a_mount_point_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    make_bare_root(root).unwrap();
    fs::remove_file(root.join("moothall-guest")).unwrap();
    assert_eq!(
        problem(check_root(root, "x")),
        "image `x`: `/moothall-guest` is missing in its root file system"
    );
    fs::remove_dir(root.join("tmp")).unwrap();
    // A link would be followed out of the image.
    std::os::unix::fs::symlink("/tmp", root.join("tmp")).unwrap();
    assert_eq!(
        problem(check_root(root, "x")),
        "image `x`: `/tmp` is missing in its root file system"
    );
}
