use super::*;

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(parent).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn folder_goes_with_its_owner() {
    let parent = tempfile::tempdir().unwrap();
    let work = WorkFolder::new(parent.path()).unwrap();
    fs_err::create_dir_all(work.path().join("a/b")).unwrap();
    assert_eq!(folders(parent.path()), [work.path()]);
    drop(work);
    assert_eq!(folders(parent.path()), [] as [PathBuf; 0]);
}

#[test]
fn builders_at_the_same_time_leave_each_other_alone() {
    let parent = tempfile::tempdir().unwrap();
    let one = WorkFolder::new(parent.path()).unwrap();
    let other = WorkFolder::new(parent.path()).unwrap();
    let mut expected = [one.path().to_owned(), other.path().to_owned()];
    expected.sort();
    assert_eq!(folders(parent.path()), expected);
}

#[test]
fn next_builder_removes_what_a_killed_one_left() {
    let parent = tempfile::tempdir().unwrap();
    let left = parent.path().join("left");
    fs_err::create_dir_all(left.join("draft-1/image")).unwrap();
    fs_err::write(left.join(LOCK), "").unwrap();
    let work = WorkFolder::new(parent.path()).unwrap();
    assert_eq!(folders(parent.path()), [work.path()]);
}
