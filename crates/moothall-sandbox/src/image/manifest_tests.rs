use super::*;

fn manifest() -> ImageManifest {
    ImageManifest {
        format: FORMAT,
        name: "python".to_owned(),
        recipe: Sha256Hex::of(b"recipe"),
        suite: "bookworm".to_owned(),
        kernel: "6.1.0-1-cloud-amd64".to_owned(),
        packages: vec![DebianPackage { name: "dash".to_owned(), version: "1:0.5+b1".to_owned() }],
        python_modules: vec!["numpy".to_owned()],
        tools: [("mksquashfs".to_owned(), "4.5".to_owned())].into(),
        files: vec![FileEntry {
            path: "vmlinuz".to_owned(),
            bytes: 3,
            sha256: Sha256Hex::of(b"abc"),
        }],
        root_bytes: 7,
    }
}

#[test]
fn a_manifest_has_one_canonical_form() {
    let text = String::from_utf8(manifest().to_bytes().unwrap()).unwrap();
    let expected = concat!(
        r#"{"files":[{"bytes":3,"path":"vmlinuz","sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}],"#,
        r#""format":1,"kernel":"6.1.0-1-cloud-amd64","name":"python","packages":[{"name":"dash","version":"1:0.5+b1"}],"#,
        r#""python_modules":["numpy"],"recipe":"73df36ba5d2e72b730d7b7b7ec6a8dd69e79fc44e28cd4a2bc9ae1cb36f6fdc8","#,
        r#""root_bytes":7,"suite":"bookworm","tools":{"mksquashfs":"4.5"}}"#,
        "\n"
    );
    assert_eq!(
        text,
        expected.replace(
            "73df36ba5d2e72b730d7b7b7ec6a8dd69e79fc44e28cd4a2bc9ae1cb36f6fdc8",
            &Sha256Hex::of(b"recipe").to_string()
        )
    );
}

#[test]
fn manifest_is_read_back_only_by_its_own_hash() {
    let bytes = manifest().to_bytes().unwrap();
    assert_eq!(ImageManifest::from_bytes(&bytes, Sha256Hex::of(&bytes)), Ok(manifest()));
    let refused = ImageManifest::from_bytes(&bytes, Sha256Hex::of(b"another"));
    assert_eq!(refused, Err("its manifest was changed".to_owned()));
}

#[test]
fn manifest_of_another_format_is_refused() {
    let bytes = ImageManifest { format: 2, ..manifest() }.to_bytes().unwrap();
    let refused = ImageManifest::from_bytes(&bytes, Sha256Hex::of(&bytes));
    let expected = "its manifest has unsupported format 2 (this version of moothall reads 1)";
    assert_eq!(refused, Err(expected.to_owned()));
}

#[test]
fn package_name_and_version_are_read_from_the_cache_file_name() {
    let read = |file: &str| DebianPackage::of_file_name(file).map(|it| (it.name, it.version));
    let some = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
    assert_eq!(read("zlib1g_1%3a1.2.13.dfsg-1_amd64.deb"), some("zlib1g", "1:1.2.13.dfsg-1"));
    assert_eq!(
        read("libstdc++6_12.2.0-14+deb12u1_amd64.deb"),
        some("libstdc++6", "12.2.0-14+deb12u1")
    );
    assert_eq!(read("lock"), None);
    assert_eq!(read("partial"), None);
    assert_eq!(read("a_b.deb"), None);
    assert_eq!(read("_1_all.deb"), None);
}
