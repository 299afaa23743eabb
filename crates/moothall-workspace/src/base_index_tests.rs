use std::collections::BTreeSet;
use std::path::Path;

use fs_err as fs;

use super::{AgentStart, BaseIndex};

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in
        [("a.txt", "one"), ("src/b.txt", "two"), (".git/HEAD", "ref: refs/heads/main\n")]
    {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn index(workspace: &Path) -> BaseIndex {
    BaseIndex::read(workspace, &AgentStart::default()).unwrap()
}

#[test]
fn a_saved_deleted_or_new_file_is_a_changed_one() {
    let folder = workspace();
    let workspace = folder.path();
    let index = index(workspace);
    assert!(index.is_unchanged(workspace, "a.txt"));
    assert!(index.is_unchanged(workspace, "src/b.txt"));
    assert!(index.is_unchanged(workspace, "new.txt"));
    // The same size, and another inode.
    fs::write(workspace.join("a.new"), "ONE").unwrap();
    fs::rename(workspace.join("a.new"), workspace.join("a.txt")).unwrap();
    fs::remove_file(workspace.join("src/b.txt")).unwrap();
    fs::write(workspace.join("new.txt"), "").unwrap();
    for path in ["a.txt", "src/b.txt", "new.txt"] {
        assert!(!index.is_unchanged(workspace, path), "{path}");
    }
}

#[test]
fn a_file_that_changed_after_the_start_of_the_agent_is_not_a_base() {
    let folder = workspace();
    let start = AgentStart::default();
    start.now();
    fs::write(folder.path().join("a.txt"), "late").unwrap();
    let index = BaseIndex::read(folder.path(), &start).unwrap();
    assert!(!index.is_unchanged(folder.path(), "a.txt"));
}

#[test]
fn a_resumed_copy_keeps_the_base_of_files_that_it_already_changed() {
    let folder = workspace();
    let workspace = folder.path();
    let before = index(workspace);
    fs::write(workspace.join("a.txt"), "a person's version").unwrap();
    fs::write(workspace.join("src/b.txt"), "a person's version").unwrap();
    let touched = BTreeSet::from(["a.txt".to_owned()]);
    let resumed = before.continued(index(workspace), &touched);
    assert!(!resumed.is_unchanged(workspace, "a.txt"));
    assert!(resumed.is_unchanged(workspace, "src/b.txt"));
}

#[test]
fn another_branch_or_commit_is_another_head() {
    let folder = workspace();
    let git = folder.path().join(".git");
    let index = index(folder.path());
    assert!(index.is_head_unchanged(folder.path()));
    fs::create_dir_all(git.join("refs/heads")).unwrap();
    fs::write(git.join("refs/heads/main"), "0123\n").unwrap();
    assert!(!index.is_head_unchanged(folder.path()));
    fs::remove_file(git.join("refs/heads/main")).unwrap();
    assert!(index.is_head_unchanged(folder.path()));
    fs::write(git.join("packed-refs"), "4567 refs/heads/main\n").unwrap();
    assert!(!index.is_head_unchanged(folder.path()));
}

#[test]
fn build_output_is_not_part_of_the_index() {
    let folder = workspace();
    fs::create_dir_all(folder.path().join("node_modules/x")).unwrap();
    fs::write(folder.path().join("node_modules/x/index.js"), "").unwrap();
    let json = serde_json::to_string(&index(folder.path())).unwrap();
    assert!(json.contains("src/b.txt") && !json.contains("node_modules"), "{json}");
    assert!(!json.contains(".git/"), "{json}");
}
