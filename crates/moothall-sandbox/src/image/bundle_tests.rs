use super::super::tests::Fixture;
use super::*;

fn packed(fixture: &Fixture) -> Vec<u8> {
    let mut bytes = Vec::new();
    fixture.store.export(&["python".to_owned()], &mut bytes).unwrap();
    bytes
}

fn empty() -> (tempfile::TempDir, ImageStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = ImageStore::at(folder.path().join("images"));
    (folder, store)
}

/// Whether a store has neither images nor work in progress.
fn is_empty(store: &ImageStore) -> bool {
    let building = fs_err::read_dir(store.folder().join(BUILDING));
    let left = building.map_or(0, |found| found.flatten().filter(|it| it.path().is_dir()).count());
    left == 0 && store.list().unwrap().is_empty() && store.untagged().unwrap().is_empty()
}

#[test]
fn importing_a_bundle_gives_the_same_image() {
    let fixture = Fixture::new();
    let bytes = packed(&fixture);
    assert_eq!(bytes, packed(&fixture));
    let (_folder, store) = empty();
    let image = BundleEntry { name: "python".to_owned(), sha256: fixture.sha256 };
    assert_eq!(store.import(&*bytes, |_| true).unwrap(), [image]);
    assert_eq!(store.verify("python").unwrap(), []);
    let (here, there) = (fixture.store.find("python").unwrap(), store.find("python").unwrap());
    assert_eq!((here.sha256, here.packages), (there.sha256, there.packages));
    // Import again over the existing image.
    store.import(&*bytes, |_| true).unwrap();
    assert_eq!(store.verify("python").unwrap(), []);
}

#[test]
fn a_changed_image_cannot_be_exported() {
    let fixture = Fixture::new();
    let kernel = fixture.store.find("python").unwrap().vmlinuz;
    fs_err::write(kernel, "kernal").unwrap();
    let error = fixture.store.export(&["python".to_owned()], io::sink()).unwrap_err();
    assert_eq!(error.to_string(), "image `python`: vmlinuz was changed");
}

#[test]
fn a_flipped_byte_in_a_bundle_is_harmless_or_detected() {
    let fixture = Fixture::new();
    let bytes = packed(&fixture);
    let mut found = 0;
    // A step of 7 reaches every offset within a block over time.
    for at in (0..bytes.len()).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let (_folder, store) = empty();
        match store.import(&*flipped, |_| true) {
            Ok(_) => assert_eq!(store.verify("python").unwrap(), [], "{at}"),
            Err(_) => {
                found += 1;
                assert!(is_empty(&store), "{at}");
            }
        }
    }
    assert!(found > 100, "{found}");
}

#[test]
fn importing_a_truncated_bundle_leaves_nothing_behind() {
    let bytes = packed(&Fixture::new());
    // A tar archive ends with two empty blocks and is complete without them.
    for end in (0..bytes.len() - 1024).step_by(509) {
        let (_folder, store) = empty();
        store.import(&bytes[..end], |_| true).unwrap_err();
        assert!(is_empty(&store), "{end}");
    }
}

/// A bundle of the fixture's image with extra entries after its manifest.
fn with(fixture: &Fixture, add: impl FnOnce(&mut Builder<Vec<u8>>, &Path)) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    let images = vec![BundleEntry { name: "python".to_owned(), sha256: fixture.sha256 }];
    let list = serde_json::to_vec(&BundleIndex { format: FORMAT, images }).unwrap();
    append(&mut archive, Path::new(LIST), 0o644, list.len() as u64, &*list).unwrap();
    let digest = fixture.sha256.to_string();
    let manifest = fixture.store.folder().join(&digest).join(MANIFEST);
    let manifest = fs_err::read(manifest).unwrap();
    let within = Path::new(&digest);
    append(&mut archive, &within.join(MANIFEST), 0o644, manifest.len() as u64, &*manifest).unwrap();
    add(&mut archive, within);
    archive.into_inner().unwrap()
}

#[track_caller]
fn check_refused(add: impl FnOnce(&mut Builder<Vec<u8>>, &Path), expected: &str) {
    let bytes = with(&Fixture::new(), add);
    let (_folder, store) = empty();
    let error = store.import(&*bytes, |_| true).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(is_empty(&store));
}

fn link(archive: &mut Builder<Vec<u8>>, path: &Path, target: &str) {
    archive.append_link(&mut header(EntryType::Symlink, 0o777, 0), path, target).unwrap();
}

#[test]
fn an_unexpected_entry_in_a_bundle_is_refused() {
    check_refused(
        |archive, within| {
            append_folder(archive, &within.join("root"), 0o755).unwrap();
            link(archive, &within.join("root/out"), "/tmp");
            append(archive, &within.join("root/out/file"), 0o644, 1, &b"x"[..]).unwrap();
        },
        "image `python`: its bundle contains an unexpected entry `root/out/file`",
    );
    check_refused(
        |archive, within| link(archive, &within.join("vmlinuz"), "/etc/passwd"),
        "image `python`: its bundle contains an unexpected entry `vmlinuz`",
    );
    check_refused(
        |archive, within| {
            append_folder(archive, &within.join("root"), 0o755).unwrap();
            let mut device = header(EntryType::Char, 0o666, 0);
            let null = within.join("root/null");
            archive.append_data(&mut device, null, io::empty()).unwrap();
        },
        "image `python`: its bundle contains an unexpected entry `root/null`",
    );
    check_refused(
        |archive, within| append(archive, &within.join("more"), 0o644, 1, &b"x"[..]).unwrap(),
        "image `python`: cannot unpack `more`: its size differs from the manifest",
    );
    check_refused(
        |archive, within| {
            append_folder(archive, &within.join("root"), 0o755).unwrap();
            let big = within.join("root/big");
            append(archive, &big, 0o644, 8, &b"12345678"[..]).unwrap();
        },
        "image `python`: cannot unpack `root/big`: its size differs from the manifest",
    );
    check_refused(
        |archive, _| append(archive, Path::new("else/file"), 0o644, 1, &b"x"[..]).unwrap(),
        "image `python`: modules.cpio is missing",
    );
}

#[test]
fn a_file_that_is_not_a_bundle_is_reported_as_such() {
    let (_folder, store) = empty();
    let why = |bytes: &[u8]| match store.import(bytes, |_| true).unwrap_err() {
        SandboxError::Host { what, source } => format!("{what}: {source}"),
        other => panic!("{other:?}"),
    };
    assert_eq!(why(b""), "cannot read the bundle: the file is empty");
    let mut archive = Builder::new(Vec::new());
    append(&mut archive, Path::new("readme"), 0o644, 2, &b"hi"[..]).unwrap();
    let other = archive.into_inner().unwrap();
    assert_eq!(why(&other), "cannot read the bundle: not an image bundle");
}

#[test]
fn a_bundle_with_an_unexpected_digest_is_refused_before_anything_is_unpacked() {
    let fixture = Fixture::new();
    let bytes = packed(&fixture);
    let (_folder, store) = empty();
    let error = store.import(&*bytes, |image| image.sha256 != fixture.sha256).unwrap_err();
    let expected = format!("image `python`: unexpected digest {}", fixture.sha256);
    assert_eq!(error.to_string(), expected);
    assert!(!store.folder().exists());
}
