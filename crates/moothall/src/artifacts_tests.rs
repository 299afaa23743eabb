use super::*;

fn files(names: &[&str]) -> BTreeMap<GuestPath, Vec<u8>> {
    names.iter().map(|name| (name.parse().unwrap(), name.as_bytes().to_vec())).collect()
}

#[test]
fn output_files_are_written_below_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/out");
    let written = write(&out, &files(&["a.txt", "deep/b.txt"])).unwrap();
    assert_eq!(written.written, [out.join("a.txt"), out.join("deep/b.txt")]);
    assert_eq!(written.skipped, []);
    assert_eq!(fs_err::read(out.join("deep/b.txt")).unwrap(), b"deep/b.txt");
}

#[test]
fn an_existing_symbolic_link_is_not_followed_when_writing_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let victim = elsewhere.path().join("victim");
    fs_err::write(&victim, "mine").unwrap();
    std::os::unix::fs::symlink(&victim, folder.path().join("a.txt")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("deep")).unwrap();
    for name in ["a.txt", "deep/victim"] {
        let error = write(folder.path(), &files(&[name])).unwrap_err();
        assert!(error.message.contains("is a symbolic link"), "{error}");
    }
    assert_eq!(fs_err::read_to_string(&victim).unwrap(), "mine");
}

#[test]
fn output_files_never_replace_existing_files_or_are_hidden() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("Makefile"), "mine").unwrap();
    let error = write(folder.path(), &files(&["Makefile"])).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("choose an empty directory, or remove the file first"));
    assert_eq!(fs_err::read_to_string(folder.path().join("Makefile")).unwrap(), "mine");
    for name in [".git/config", "deep/.env"] {
        let done = write(folder.path(), &files(&[name])).unwrap();
        assert_eq!(done.skipped[0].reason, "hidden files are not written");
        assert_eq!(done.written, [""; 0].map(PathBuf::from));
    }
    assert!(!folder.path().join(".git").exists());
}

/// Regression: one such name prevented all other files from being written.
#[test]
fn output_files_with_unsafe_names_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let odd = ["-rf", "..x", ".\u{200b}", "a/-f", "b/.x/c", "no\u{200b}width", "tu\u{202e}rn"];
    let plain = ["good", "a-b", "deep/er", "\u{e9}t\u{e9}", "zz"];
    let done = write(folder.path(), &files(&[&odd[..], &plain].concat())).unwrap();
    let skipped: Vec<&str> = done.skipped.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(skipped, odd);
    assert_eq!(done.written.len(), plain.len());
    for name in plain {
        assert_eq!(fs_err::read_to_string(folder.path().join(name)).unwrap(), name);
    }
}

#[test]
fn two_inputs_of_one_name_are_refused() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths = [one.path().join("a.csv"), two.path().join("a.csv")];
    for path in &paths {
        fs_err::write(path, "1").unwrap();
    }
    assert_eq!(read_inputs(&paths).unwrap_err().message, "two inputs have the name `a.csv`");
}
