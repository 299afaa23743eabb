use super::*;

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn a_work_directory_is_removed_when_it_is_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let work = WorkFolder::new(parent.path()).unwrap();
    fs_err::create_dir_all(work.path().join("a/b")).unwrap();
    assert_eq!(folders(parent.path()), [work.path()]);
    drop(work);
    assert_eq!(folders(parent.path()), [] as [PathBuf; 0]);
}

#[test]
fn concurrent_builders_keep_their_own_work_directories() {
    let parent = tempfile::tempdir().unwrap();
    let one = WorkFolder::new(parent.path()).unwrap();
    let other = WorkFolder::new(parent.path()).unwrap();
    let mut expected = [one.path().to_owned(), other.path().to_owned()];
    expected.sort();
    assert_eq!(folders(parent.path()), expected);
}

#[test]
fn the_next_builder_removes_directories_of_a_killed_one() {
    let parent = tempfile::tempdir().unwrap();
    let left = parent.path().join("left");
    fs_err::create_dir_all(left.join("draft-1/image")).unwrap();
    fs_err::write(left.join(LOCK), "").unwrap();
    let work = WorkFolder::new(parent.path()).unwrap();
    assert_eq!(folders(parent.path()), [work.path()]);
}
