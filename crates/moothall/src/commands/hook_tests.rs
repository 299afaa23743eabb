use super::*;

#[test]
fn paths_are_compared_with_the_workspace_after_resolving_links_and_dots() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs_err::canonicalize(folder.path()).unwrap();
    let workspace = root.join("ws");
    fs_err::create_dir_all(workspace.join("src")).unwrap();
    fs_err::os::unix::fs::symlink(&workspace, root.join("link")).unwrap();
    let found = |cwd: &Path, path: &str| inside(&workspace, cwd, path);
    let absolute = workspace.join("src/a.py").display().to_string();
    assert_eq!(found(&workspace, &absolute).as_deref(), Some("src/a.py"));
    assert_eq!(found(&workspace, "src/../Makefile").as_deref(), Some("Makefile"));
    assert_eq!(found(&root.join("link/src"), "a.py").as_deref(), Some("src/a.py"));
    assert_eq!(found(&workspace, "new/deep/a.py").as_deref(), Some("new/deep/a.py"));
    assert_eq!(found(&workspace, "../other.py"), None);
    assert_eq!(found(&workspace, "/etc/passwd"), None);
}
