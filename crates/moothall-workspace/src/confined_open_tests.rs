//! Compares both implementations of confined opening.

use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{MountPolicy, open, walk};

const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

type Tried<'a> = Vec<(&'a str, Result<(), Errno>)>;

/// The result for each name, with `openat2` and with the portable implementation.
fn tried<'a>(root: &Path, names: &[&'a str], mounts: MountPolicy) -> (Tried<'a>, Tried<'a>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    let by_kernel = |name: &&'a str| (*name, open(&root, name, READ, mounts).map(drop));
    let by_walk = |name: &&'a str| (*name, walk::open(&root, name, READ, mounts).map(drop));
    (names.iter().map(by_kernel).collect(), names.iter().map(by_walk).collect())
}

#[test]
fn both_implementations_open_and_refuse_the_same_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs_err::create_dir_all(root.join("inner/deep")).unwrap();
    for name in ["outside", "root/file", "root/inner/deep/file"] {
        fs_err::write(folder.path().join(name), "words").unwrap();
    }
    for (name, to) in [("out", "../outside"), ("here", "file"), ("inner/up", "..")] {
        symlink(to, root.join(name)).unwrap();
    }
    let wanted = vec![
        (".", Ok(())),
        ("file", Ok(())),
        ("inner", Ok(())),
        ("inner/deep/file", Ok(())),
        ("out", Err(Errno::LOOP)),
        ("here", Err(Errno::LOOP)),
        ("inner/up/file", Err(Errno::LOOP)),
        ("inner/up", Err(Errno::LOOP)),
        ("..", Err(Errno::XDEV)),
        ("../outside", Err(Errno::XDEV)),
        ("/etc/passwd", Err(Errno::XDEV)),
        ("nothing", Err(Errno::NOENT)),
        ("nothing/below", Err(Errno::NOENT)),
        ("file/below", Err(Errno::NOTDIR)),
    ];
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    for mounts in [MountPolicy::Crossed, MountPolicy::Refused] {
        assert_eq!(tried(&root, &names, mounts), (wanted.clone(), wanted.clone()));
    }
}

#[test]
fn another_file_system_is_entered_only_if_allowed() {
    // Every Linux machine has `/proc` mounted below the root.
    let names = ["proc/version", "proc/self/status"];
    let root = Path::new("/");
    let crossed = vec![("proc/version", Ok(())), ("proc/self/status", Err(Errno::LOOP))];
    assert_eq!(tried(root, &names, MountPolicy::Crossed), (crossed.clone(), crossed));
    let refused: Tried<'_> = names.into_iter().map(|name| (name, Err(Errno::XDEV))).collect();
    assert_eq!(tried(root, &names, MountPolicy::Refused), (refused.clone(), refused));
}

#[test]
fn the_fallback_implementation_refuses_parent_segments() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::create_dir(folder.path().join("inner")).unwrap();
    let (_, walked) =
        tried(folder.path(), &["inner/..", "inner/.", "inner//"], MountPolicy::Crossed);
    assert!(walked.iter().all(|(_, result)| *result == Err(Errno::XDEV)), "{walked:?}");
}
