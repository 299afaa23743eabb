use std::os::unix::fs::symlink;

use rustix::fs::CWD;
use tempfile::TempDir;

use super::*;

const OURS: FileOwnership = FileOwnership { owner: None, mode: Mode::from_raw_mode(0o644) };

fn path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

fn folder() -> (TempDir, OwnedFd) {
    let folder = TempDir::new().unwrap();
    let fd = rustix::fs::openat(CWD, folder.path(), FOLDER, Mode::empty()).unwrap();
    (folder, fd)
}

fn put(base: &OwnedFd, to: &str, bytes: &[u8]) -> Result<(), String> {
    let mut file = create(base, &path(to), OURS).map_err(GuestRefusal::why)?;
    file.write(bytes).unwrap();
    file.finish().map_err(GuestRefusal::why)
}

fn get(base: &OwnedFd, from: &str, most_bytes: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    open(base, &path(from), most_bytes)
        .map_err(GuestRefusal::why)?
        .read_to_end(&mut bytes)
        .unwrap();
    Ok(bytes)
}

fn listed(base: &OwnedFd, of: &str, most: u32) -> (Vec<String>, Vec<String>) {
    match list(base, Some(&path(of)), most).unwrap() {
        GuestMessage::Listing { files, others } => {
            let show = |file: GuestFile| format!("{} {}", file.path, file.bytes);
            (files.into_iter().map(show).collect(), others)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_written_to_the_guest_can_be_read_back() {
    let (_keep, base) = folder();
    put(&base, "a/b/c.txt", b"hello").unwrap();
    assert_eq!(get(&base, "a/b/c.txt", 5), Ok(b"hello".to_vec()));
}

#[test]
fn replacing_a_file_leaves_only_the_new_content() {
    let (_keep, base) = folder();
    for text in ["first", "second, which is longer", "third"] {
        replace(&base, &path("logs/i1.json"), OURS, text.as_bytes()).unwrap();
        assert_eq!(get(&base, "logs/i1.json", 100), Ok(text.as_bytes().to_vec()));
    }
    assert_eq!(listed(&base, "logs", 9), (vec!["i1.json 5".to_owned()], Vec::new()));
}

#[test]
fn writing_a_file_never_replaces_an_existing_one() {
    let (keep, base) = folder();
    put(&base, "a", b"first").unwrap();
    symlink("nowhere", keep.path().join("link")).unwrap();
    assert_eq!(
        put(&base, "a", b"second"),
        Err("cannot create `a`: File exists (os error 17)".into())
    );
    assert_eq!(
        put(&base, "link", b""),
        Err("cannot create `link`: File exists (os error 17)".into())
    );
    assert_eq!(
        put(&base, "a/b", b""),
        Err("cannot create `a/b`: Not a directory (os error 20)".into())
    );
    assert_eq!(get(&base, "a", 5), Ok(b"first".to_vec()));
}

#[test]
fn an_unfinished_file_is_removed() {
    let (_keep, base) = folder();
    let mut file = create(&base, &path("a/b"), OURS).unwrap();
    file.write(b"half").unwrap();
    drop(file);
    assert_eq!(listed(&base, "a", 9), (Vec::new(), Vec::new()));
    put(&base, "a/b", b"whole").unwrap();
}

#[test]
fn guest_file_access_follows_no_symbolic_link() {
    let (outside, _) = folder();
    fs_err::write(outside.path().join("secret"), "secret").unwrap();
    let (keep, base) = folder();
    symlink(outside.path(), keep.path().join("way")).unwrap();
    symlink(outside.path().join("secret"), keep.path().join("end")).unwrap();
    let not_a_folder = |what: &str| format!("cannot {what}: Not a directory (os error 20)");
    assert_eq!(get(&base, "way/secret", 9), Err(not_a_folder("open `way/secret`")));
    assert_eq!(put(&base, "way/new", b""), Err(not_a_folder("create `way/new`")));
    assert_eq!(put(&base, "way/d/new", b""), Err(not_a_folder("create `way/d/new`")));
    let looped = "cannot open `end`: Too many levels of symbolic links (os error 40)";
    assert_eq!(get(&base, "end", 9), Err(looped.to_owned()));
    assert_eq!(listed(&base, "way", 9), (Vec::new(), vec!["`way` is not a directory".to_owned()]));
    assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn only_regular_files_within_the_size_limit_are_read() {
    let (keep, base) = folder();
    put(&base, "a/large", b"123456").unwrap();
    rustix::fs::mkfifoat(CWD, keep.path().join("a/pipe"), Mode::RWXU).unwrap();
    let large = "`a/large` has 6 bytes (limit: 5)";
    assert_eq!(get(&base, "a/large", 5), Err(large.to_owned()));
    // The pipe has no writer, so a blocking open would never return.
    assert_eq!(get(&base, "a/pipe", 5), Err("`a/pipe` is not a regular file".to_owned()));
    assert_eq!(get(&base, "a", 5), Err("`a` is not a regular file".to_owned()));
}

#[test]
fn a_listing_sorts_files_and_describes_other_entries() {
    let (keep, base) = folder();
    for (name, length) in [("out/b", 2), ("out/a/z", 1), ("out/a-b", 3), ("out/a/y/x", 0)] {
        put(&base, name, &vec![b'x'; length]).unwrap();
    }
    let out = keep.path().join("out");
    symlink("/etc", out.join("link")).unwrap();
    rustix::fs::mkfifoat(CWD, out.join("pipe"), Mode::RWXU).unwrap();
    std::os::unix::net::UnixListener::bind(out.join("socket")).unwrap();
    fs_err::write(out.join("new\nline"), "").unwrap();
    assert_eq!(
        listed(&base, "out", 9),
        (
            vec!["a-b 3".into(), "a/y/x 0".into(), "a/z 1".into(), "b 2".into()],
            vec![
                "`link` is a link".into(),
                "`new\\nline` has an invalid name (too long, too deep or with special characters)"
                    .into(),
                "`pipe` is a pipe".into(),
                "`socket` is a socket".into(),
            ]
        )
    );
}

#[test]
fn a_listing_stops_at_the_requested_limit_and_says_so() {
    let (_keep, base) = folder();
    for name in 0..150 {
        put(&base, &format!("out/{name:03}"), b"").unwrap();
    }
    let (files, others) = listed(&base, "out", 2);
    assert_eq!(files, ["000 0", "001 0"]);
    assert_eq!(others.len(), 101);
    assert_eq!(others.first().unwrap(), "`002` exceeds the file limit");
    assert_eq!(others.last().unwrap(), "48 more");
}

#[test]
fn a_listing_does_not_exceed_the_maximum_path_depth() {
    let (keep, base) = folder();
    let mut deep = keep.path().join("out");
    for _ in 0..40 {
        deep.push("d");
    }
    fs_err::create_dir_all(&deep).unwrap();
    let (files, others) = listed(&base, "out", 9);
    let expected = format!(
        "`{}d` has an invalid name (too long, too deep or with special characters)",
        "d/".repeat(16)
    );
    assert_eq!((files, others), (Vec::new(), vec![expected]));
}

#[test]
fn a_missing_directory_lists_no_files() {
    let (_keep, base) = folder();
    assert_eq!(listed(&base, "out", 9), (Vec::new(), Vec::new()));
}
