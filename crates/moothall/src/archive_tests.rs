use super::*;

const CONTENT: &[u8] = b"every run there is";

const STORE: &str = "drafts/0123456789abcdef.tar";

fn backup() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let parts = [
        (BackupPart::Database, CONTENT),
        (BackupPart::DraftStore("0123456789abcdef".to_owned()), b"every draft there is"),
    ];
    let parts = parts.map(|(part, content)| {
        let path = part.path_in(folder.path());
        fs_err::write(&path, content).unwrap();
        (part, path)
    });
    let mut packed = Vec::new();
    write(&mut packed, &parts, 3, 1_763_000_000_000).unwrap();
    packed
}

/// Unpacks into a temporary directory.
fn unpack(packed: &[u8]) -> Result<BackupManifest> {
    read(packed, tempfile::tempdir().unwrap().path())
}

/// An archive of these entries: type, name, content.
fn packed(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        // Written directly, because `append_data` would reject the name.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// The manifest of an archive with these files, which all have the same content.
fn manifest(format: u32, names: &[&str]) -> Vec<u8> {
    let (bytes, sha256) = copy(&mut &CONTENT[..], &mut std::io::sink()).unwrap();
    let list = |name| serde_json::json!({ "name": name, "bytes": bytes, "sha256": sha256 });
    serde_json::json!({
        "format": format, "made_by": "moothall 0.1.0", "created_at_ms": 0, "runs": 0,
        "files": names.iter().map(list).collect::<Vec<_>>(),
    })
    .to_string()
    .into_bytes()
}

#[track_caller]
fn refused(packed: &[u8]) -> String {
    unpack(packed).unwrap_err().to_string()
}

#[test]
fn a_backup_archive_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = read(&backup()[..], folder.path()).unwrap();
    let content = |part: BackupPart| fs_err::read(part.path_in(folder.path())).unwrap();
    assert_eq!(content(BackupPart::Database), CONTENT);
    let store = BackupPart::DraftStore("0123456789abcdef".to_owned());
    assert_eq!(content(store), b"every draft there is");
    let listed = |name: &str, content: &[u8]| BackupFileEntry {
        name: name.to_owned(),
        bytes: content.len() as u64,
        sha256: moothall_core::Sha256Hex::of(content).to_string(),
    };
    assert_eq!(
        manifest,
        BackupManifest {
            format: 2,
            made_by: format!("moothall {}", env!("CARGO_PKG_VERSION")),
            created_at_ms: 1_763_000_000_000,
            runs: 3,
            files: vec![listed("moothall.db", CONTENT), listed(STORE, b"every draft there is")],
        }
    );
    assert_eq!(read_manifest(&backup()[..]).unwrap(), manifest);
    assert_eq!(manifest.draft_stores(), ["0123456789abcdef"]);
}

#[test]
fn a_changed_byte_in_a_backup_is_detected() {
    let good = backup();
    let place = |part: &[u8]| good.windows(part.len()).position(|found| found == part).unwrap();
    for at in [place(CONTENT), place(b"\"sha256\"") + 12, place(b"\"bytes\"") + 10] {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert!(refused(&changed).starts_with("the backup is damaged or was modified: "), "{at}");
    }
    for length in [0, 100, 600, 1_500, place(CONTENT) + 5] {
        unpack(&good[..length]).unwrap_err();
    }
}

#[test]
fn backups_with_unexpected_names_links_or_entries_are_refused() {
    use EntryType as Kind;
    let listed = manifest(1, &[DATABASE]);
    let first = (Kind::Regular, MANIFEST, &listed[..]);
    let good = (Kind::Regular, DATABASE, CONTENT);
    assert!(unpack(&packed(&[first, good])).is_ok());
    let both = manifest(2, &[DATABASE, STORE]);
    let both = (Kind::Regular, MANIFEST, &both[..]);
    let store = (Kind::Regular, STORE, CONTENT);
    assert!(unpack(&packed(&[both, good, store])).is_ok());
    let odd = [
        manifest(1, &[DATABASE, STORE]),
        manifest(2, &[DATABASE, DATABASE]),
        manifest(2, &["drafts/../../../etc/x.tar"]),
        manifest(2, &["drafts/0123456789ABCDEF.tar"]),
        manifest(2, &[]),
    ];
    let odd = odd.each_ref().map(|odd| (Kind::Regular, MANIFEST, &odd[..]));
    let mut cases: Vec<Vec<(EntryType, &str, &[u8])>> = vec![
        vec![good, first],
        vec![first],
        vec![first, (Kind::Regular, "../moothall.db", CONTENT)],
        vec![first, (Kind::Regular, "/moothall.db", CONTENT)],
        vec![first, (Kind::Symlink, DATABASE, b"")],
        vec![first, (Kind::Link, DATABASE, b"")],
        vec![first, (Kind::GNUSparse, DATABASE, CONTENT)],
        vec![first, (Kind::XHeader, "pax", b"17 path=moothall\n"), good],
        vec![first, (Kind::GNULongName, "long", b"moothall.db\0"), good],
        vec![first, good, good],
        vec![first, (Kind::Regular, DATABASE, b"something else ...")],
        vec![(Kind::Regular, MANIFEST, b"{}"), good],
        vec![(Kind::Regular, MANIFEST, &[b' '; 2_000_000]), good],
        vec![both, good],
        vec![both, store, good],
    ];
    cases.extend(odd.map(|odd| vec![odd, good, store]));
    let told: Vec<String> = cases.iter().map(|entries| refused(&packed(entries))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_backup_of_a_newer_format_is_reported_as_such() {
    let newer = br#"{ "format": 3 }"#;
    let told = refused(&packed(&[(EntryType::Regular, MANIFEST, newer)]));
    assert_eq!(told, "unsupported backup format 3 (this version reads up to 2); upgrade moothall");
    assert_eq!(refused(b"Dear diary"), "not a moothall backup: not a tar archive");
}
