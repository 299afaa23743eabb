use std::os::unix::fs::PermissionsExt;

use super::*;

fn store(files: &[(&str, u32)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, mode) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, name).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(*mode)).unwrap();
    }
    folder
}

fn packed(store: &Path) -> Vec<u8> {
    let mut packed = Vec::new();
    pack_store(store, Path::new("/nonexistent"), &mut packed, 0).unwrap();
    packed
}

/// A hostile archive with one entry.
fn archive(kind: EntryType, name: &str) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (kind, name) in [(EntryType::Regular, STORE_LOCK), (kind, name)] {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_mode(0o777);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, &b""[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn a_restored_draft_store_has_private_modes_and_no_unfinished_files() {
    let here = store(&[
        ("store.lock", 0o644),
        ("audit.lock", 0o644),
        ("audit/000001.ndjson", 0o444),
        ("audit/000002.ndjson", 0o644),
        ("blobs/ab/abcd", 0o400),
        ("blobs/ab/.tmp123", 0o600),
        ("keys/fingerprint", 0o600),
    ]);
    let there = tempfile::tempdir().unwrap();
    let there = there.path().join("store");
    unpack_store(&packed(here.path())[..], &there).unwrap();
    for (name, mode) in [
        ("audit/000001.ndjson", 0o400),
        ("audit/000002.ndjson", 0o600),
        ("blobs/ab/abcd", 0o400),
        ("keys/fingerprint", 0o600),
    ] {
        let path = there.join(name);
        assert_eq!(fs_err::read_to_string(&path).unwrap(), name);
        assert_eq!(fs_err::metadata(path).unwrap().permissions().mode() & 0o777, mode, "{name}");
    }
    assert!(!there.join("blobs/ab/.tmp123").exists());
    assert_eq!(fs_err::metadata(there.join("keys")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn packing_a_draft_store_waits_for_its_locks() {
    for name in [STORE_LOCK, JOURNAL_LOCK] {
        let here = store(&[(STORE_LOCK, 0o600), (JOURNAL_LOCK, 0o600)]);
        let held = fs_err::File::open(here.path().join(name)).unwrap().into_parts().0;
        held.lock().unwrap();
        let path = here.path().to_owned();
        let (done, packed_at_last) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(packed(&path)));
        assert!(packed_at_last.recv_timeout(LOCK_POLL * 5).is_err(), "{name}");
        drop(held);
        packed_at_last.recv().unwrap();
    }
}

#[test]
fn a_draft_archive_can_create_only_files_inside_its_store() {
    let long = "a/".repeat(40) + "a";
    for name in ["../x", "/x", "a/../x", "a//x", ".x", "a/.x", "a\\x", "a\u{202e}x", "", &long] {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("store");
        unpack_store(&archive(EntryType::Regular, name)[..], &into).unwrap_err();
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1, "{name:?}");
    }
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Directory, EntryType::Char] {
        let folder = tempfile::tempdir().unwrap();
        unpack_store(&archive(kind, "x")[..], &folder.path().join("store")).unwrap_err();
    }
    let folder = tempfile::tempdir().unwrap();
    let twice = archive(EntryType::Regular, STORE_LOCK);
    unpack_store(&twice[..], &folder.path().join("store")).unwrap_err();
}
