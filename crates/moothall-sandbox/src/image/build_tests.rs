use super::*;
use crate::image::DebianPackage;

fn manifest(packages: &[(&str, &str)], files: &[(&str, &str)]) -> ImageManifest {
    let package = |(name, version): &(&str, &str)| DebianPackage {
        name: (*name).to_owned(),
        version: (*version).to_owned(),
    };
    let file = |(path, text): &(&str, &str)| FileEntry {
        path: (*path).to_owned(),
        bytes: text.len() as u64,
        sha256: Sha256Hex::of(text.as_bytes()),
    };
    ImageManifest {
        format: FORMAT,
        name: "x".to_owned(),
        recipe: Sha256Hex::of(b"recipe"),
        suite: "bookworm".to_owned(),
        kernel: "6.1".to_owned(),
        packages: packages.iter().map(package).collect(),
        python_modules: Vec::new(),
        tools: [("mksquashfs".to_owned(), "4.5".to_owned())].into(),
        files: files.iter().map(file).collect(),
        root_bytes: 0,
    }
}

#[test]
fn a_rebuild_with_identical_files_is_the_same() {
    let one = manifest(&[("dash", "1")], &[("vmlinuz", "a")]);
    assert_eq!(compare(&one, &one.clone()), RebuildComparison::Same);
}

#[test]
fn a_rebuild_that_differs_lists_the_changed_files() {
    let old = manifest(&[("dash", "1")], &[("rootfs.sqfs", "a"), ("vmlinuz", "a")]);
    let new = manifest(&[("dash", "1")], &[("rootfs.sqfs", "b"), ("vmlinuz", "a")]);
    assert_eq!(compare(&old, &new), RebuildComparison::OtherBytes(vec!["rootfs.sqfs".to_owned()]));
}

#[test]
fn a_rebuild_with_other_packages_or_tools_is_not_compared_by_bytes() {
    let old = manifest(&[("dash", "1"), ("gone", "1")], &[("rootfs.sqfs", "a")]);
    let mut new = manifest(&[("dash", "2"), ("come", "1")], &[("rootfs.sqfs", "b")]);
    new.tools.insert("mksquashfs".to_owned(), "4.6".to_owned());
    let expected = ["mksquashfs 4.5 → 4.6", "come none → 1", "dash 1 → 2", "gone 1 → none"];
    assert_eq!(
        compare(&old, &new),
        RebuildComparison::OtherInputs(expected.map(str::to_owned).to_vec())
    );
}
