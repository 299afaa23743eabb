//! Workspace contents that try to break the confinement.

use std::os::unix::fs::symlink;

use moothall_workspace::{DraftError, DraftStore, DraftStoreOptions, FileRequirement};

use crate::world::{World, request, submit, worker, write};

/// A directory outside of the workspace with a file that must not change.
fn with_outside() -> (World, std::path::PathBuf) {
    let world = World::new(&[("in/a", "inside\n")]);
    let outside = world.folder.path().join("outside");
    fs_err::create_dir_all(&outside).unwrap();
    fs_err::write(outside.join("a"), "outside\n").unwrap();
    (world, outside)
}

#[track_caller]
fn refused(world: &World, name: &str, words: &str) {
    let store = world.open();
    for existing in [FileRequirement::Must, FileRequirement::MayNot] {
        let error = store.request(&worker(), "t1", name, existing).unwrap_err();
        assert!(matches!(&error, DraftError::File { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_symbolic_link_anywhere_in_a_path_is_refused() {
    let (world, outside) = with_outside();
    let link =
        |name: &str, to: &std::path::Path| symlink(to, world.workspace().join(name)).unwrap();
    link("last", &outside.join("a"));
    link("middle", &outside);
    link("dangling", &outside.join("new"));
    link("inner", &world.workspace().join("in/a"));
    symlink("../outside/a", world.workspace().join("relative")).unwrap();
    for name in ["last", "middle/a", "dangling", "inner", "relative"] {
        refused(&world, name, "symbolic link");
    }
    assert!(!outside.join("new").exists());
    assert_eq!(fs_err::read_to_string(outside.join("a")).unwrap(), "outside\n");
}

#[test]
fn a_proc_magic_link_is_refused() {
    let (world, _) = with_outside();
    symlink("/proc/self/cwd", world.workspace().join("magic")).unwrap();
    refused(&world, "magic/Cargo.toml", "symbolic link");
}

#[test]
fn a_hard_link_is_refused() {
    let (world, outside) = with_outside();
    fs_err::hard_link(outside.join("a"), world.workspace().join("hard")).unwrap();
    refused(&world, "hard", "more than one hard link");
}

#[test]
fn a_pipe_or_directory_is_refused_without_blocking() {
    let (world, _) = with_outside();
    let pipe = world.workspace().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    // Opening a pipe like a file would block until there is a writer.
    refused(&world, "pipe", "pipe");
    refused(&world, "in", "is a directory");
    refused(&world, "in/a/b", "parent of the path is not a directory");
}

#[test]
fn a_device_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let options = DraftStoreOptions::new("/dev".into(), state.path().join("state"));
    let store = DraftStore::open(options).unwrap();
    let error = store.request(&worker(), "t1", "null", FileRequirement::Must).unwrap_err();
    assert!(error.to_string().contains("device"), "{error}");
}

#[test]
fn another_file_system_inside_the_workspace_is_refused() {
    let state = tempfile::tempdir().unwrap();
    let options = DraftStoreOptions::new("/".into(), state.path().join("state"));
    let store = DraftStore::open(options).unwrap();
    let error = store.request(&worker(), "t1", "proc/version", FileRequirement::Must).unwrap_err();
    assert!(error.to_string().contains("another file system"), "{error}");
}

#[test]
fn a_setuid_or_setgid_file_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let (world, _) = with_outside();
    let mode = std::fs::Permissions::from_mode(0o4755);
    fs_err::set_permissions(world.workspace().join("in/a"), mode).unwrap();
    refused(&world, "in/a", "setuid or setgid bit");
}

#[test]
fn a_file_that_is_not_utf8_is_refused() {
    let (world, _) = with_outside();
    fs_err::write(world.workspace().join("bin"), b"\xff\xfe\x00").unwrap();
    let error = world.open().request(&worker(), "t1", "bin", FileRequirement::Must).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[test]
fn an_original_replaced_by_a_link_is_refused() {
    let (world, outside) = with_outside();
    let store = world.open();
    let id = request(&store, "in/a");
    write(&store, id, "changed\n");
    fs_err::write(outside.join("a"), "inside\n").unwrap();
    let original = world.workspace().join("in/a");
    fs_err::remove_file(&original).unwrap();
    symlink(outside.join("a"), &original).unwrap();
    let error = store.submit(&worker(), &[id], "").unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert_eq!(fs_err::read_to_string(outside.join("a")).unwrap(), "inside\n");
    assert!(fs_err::symlink_metadata(original).unwrap().is_symlink());
}

#[test]
fn a_renamed_workspace_is_still_the_opened_one() {
    let (world, _) = with_outside();
    let store = world.open();
    let id = request(&store, "in/a");
    write(&store, id, "changed\n");
    let elsewhere = world.folder.path().join("elsewhere");
    fs_err::rename(world.workspace(), &elsewhere).unwrap();
    world.save("in/a", "inside\n");
    submit(&store, &[id]);
    assert_eq!(world.text("in/a").unwrap(), "inside\n");
    assert_eq!(fs_err::read_to_string(elsewhere.join("in/a")).unwrap(), "changed\n");
}
