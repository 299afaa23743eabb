use super::*;

const CONTENT: &[u8] = b"every run there is";

fn backup() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("copy");
    fs_err::write(&database, CONTENT).unwrap();
    let mut packed = Vec::new();
    write(&mut packed, &database, 3, 1_763_000_000_000).unwrap();
    packed
}

/// An archive of these entries: kind, name, content.
fn packed(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        // As it is, which `append_data` would not do.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn manifest(content: &[u8]) -> Vec<u8> {
    let (bytes, sha256) = copy(&mut &content[..], &mut std::io::sink()).unwrap();
    serde_json::json!({
        "format": 1, "made_by": "moothall 0.1.0", "created_at_ms": 0, "runs": 0,
        "files": [{ "name": "moothall.db", "bytes": bytes, "sha256": sha256 }],
    })
    .to_string()
    .into_bytes()
}

#[track_caller]
fn refused(packed: &[u8]) -> String {
    read(packed, &mut Vec::new()).unwrap_err().to_string()
}

#[test]
fn what_was_packed_comes_out_as_it_was() {
    let mut content = Vec::new();
    let manifest = read(&backup()[..], &mut content).unwrap();
    assert_eq!(content, CONTENT);
    assert_eq!(
        manifest,
        Manifest {
            format: 1,
            made_by: format!("moothall {}", env!("CARGO_PKG_VERSION")),
            created_at_ms: 1_763_000_000_000,
            runs: 3,
            files: vec![Listed {
                name: "moothall.db".to_owned(),
                bytes: 18,
                sha256: moothall_core::Sha256Hex::of(CONTENT).to_string(),
            }],
        }
    );
}

#[test]
fn byte_that_is_changed_in_what_counts_is_found() {
    let good = backup();
    let place = |part: &[u8]| good.windows(part.len()).position(|found| found == part).unwrap();
    for at in [place(CONTENT), place(b"\"sha256\"") + 12, place(b"\"bytes\"") + 10] {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert!(refused(&changed).starts_with("it was damaged or changed"), "{at}");
    }
    for length in [0, 100, 600, 1_500, place(CONTENT) + 5] {
        read(&good[..length], &mut Vec::new()).unwrap_err();
    }
}

#[test]
fn names_links_and_more_than_there_should_be_are_refused() {
    use EntryType as Kind;
    let listed = manifest(CONTENT);
    let first = (Kind::Regular, MANIFEST, &listed[..]);
    let good = (Kind::Regular, DATABASE, CONTENT);
    assert!(read(&packed(&[first, good])[..], &mut Vec::new()).is_ok());
    let cases: Vec<Vec<(EntryType, &str, &[u8])>> = vec![
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
        vec![(Kind::Regular, MANIFEST, &[b' '; 100_000]), good],
    ];
    let told: Vec<String> = cases.iter().map(|entries| refused(&packed(entries))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn newer_form_is_not_called_damaged() {
    let newer = br#"{ "format": 2 }"#;
    let told = refused(&packed(&[(EntryType::Regular, MANIFEST, newer)]));
    assert_eq!(told, "it has format 2, this program reads 1: use a newer moothall");
    assert_eq!(refused(b"Dear diary"), "it is no backup of moothall: it is not a tar archive");
}
