use super::*;

#[test]
fn loading_the_tree_includes_new_files_and_skips_ignored_ones() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    shell::run(root, &["git", "init", "--quiet"]).unwrap();
    fs_err::write(root.join(".gitignore"), "ignored\n").unwrap();
    fs_err::write(root.join("ignored"), "").unwrap();
    fs_err::write(root.join("new"), "text").unwrap();
    fs_err::write(root.join("binary"), [0xff, 0xfe]).unwrap();
    fs_err::write(root.join("deleted"), "").unwrap();
    shell::run(root, &["git", "add", "deleted"]).unwrap();
    fs_err::remove_file(root.join("deleted")).unwrap();

    let tree = SourceTree::load(root).unwrap();

    assert_eq!(tree.texts().collect::<Vec<_>>(), [(".gitignore", "ignored\n"), ("new", "text")]);
    assert!(tree.has("binary"));
}

#[test]
fn folder_of_a_file_exists_and_a_prefix_of_its_name_does_not() {
    let tree = SourceTree::of(&[("docs/src/a.md", "")]);
    assert!(tree.has("docs"));
    assert!(tree.has("docs/src/"));
    assert!(!tree.has("doc"));
    assert!(!tree.has("docs/src/a"));
}

#[test]
fn files_of_tests_are_recognised_by_name_or_directory() {
    assert!(is_test_file("crates/moothall/src/config_tests.rs"));
    assert!(is_test_file("crates/moothall/tests/it/main.rs"));
    assert!(!is_test_file("crates/moothall-testkit/src/lib.rs"));
}
