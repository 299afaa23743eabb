use std::os::unix::fs::PermissionsExt as _;

use moothall_core::canonical_json;

use super::manifest::FORMAT;
use super::*;

/// A small image with all parts of a real one.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    pub(crate) store: ImageStore,
    pub(crate) sha256: Sha256Hex,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::at(folder.path().join("images"));
        let draft = folder.path().join("draft");
        let root = draft.join(ROOT);
        fs_err::create_dir_all(root.join("usr/bin")).unwrap();
        fs_err::create_dir_all(root.join("workspace")).unwrap();
        fs_err::write(root.join("usr/bin/python3.11"), "program").unwrap();
        fs_err::os::unix::fs::symlink("python3.11", root.join("usr/bin/python3")).unwrap();
        tree::normalise(&root).unwrap();
        let tree = canonical_json(&tree::list(&root).unwrap()).unwrap();
        let mut files = Vec::new();
        for (name, text) in
            [(MODULES, "modules"), (ROOTFS, "rootfs"), (TREE, tree.as_str()), (VMLINUZ, "kernel")]
        {
            fs_err::write(draft.join(name), text).unwrap();
            let sha256 = Sha256Hex::of(text.as_bytes());
            files.push(FileEntry { path: name.to_owned(), bytes: text.len() as u64, sha256 });
        }
        let manifest = ImageManifest {
            format: FORMAT,
            name: "python".to_owned(),
            recipe: Sha256Hex::of(b"recipe"),
            suite: "bookworm".to_owned(),
            kernel: "6.1".to_owned(),
            packages: vec![DebianPackage { name: "dash".to_owned(), version: "1".to_owned() }],
            python_modules: vec!["numpy".to_owned()],
            tools: [].into(),
            files,
            root_bytes: 7,
        };
        let bytes = manifest.to_bytes().unwrap();
        fs_err::write(draft.join(MANIFEST), &bytes).unwrap();
        let sha256 = Sha256Hex::of(&bytes);
        fs_err::create_dir_all(store.folder()).unwrap();
        store.install(&draft, sha256, &folder.path().join("retired"), "python").unwrap();
        Self { folder, store, sha256 }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.store.folder().join(self.sha256.to_string()).join(relative)
    }

    fn problems(&self) -> Vec<String> {
        self.store.verify("python").unwrap().iter().map(ImageProblem::to_string).collect()
    }
}

/// Checks what `verify` reports after the image was modified.
#[track_caller]
fn check(poison: impl FnOnce(&Fixture), expected: &[&str]) {
    let fixture = Fixture::new();
    poison(&fixture);
    assert_eq!(fixture.problems(), expected);
}

#[test]
fn an_unchanged_image_passes_verification() {
    check(|_| {}, &[]);
}

#[test]
fn changed_byte_is_found_in_every_file() {
    // Same length, so that only the hash differs.
    check(|it| fs_err::write(it.path(VMLINUZ), "kernal").unwrap(), &["vmlinuz was changed"]);
    check(|it| fs_err::write(it.path(MODULES), "modulus").unwrap(), &["modules.cpio was changed"]);
    check(|it| fs_err::write(it.path(ROOTFS), "rootfz").unwrap(), &["rootfs.sqfs was changed"]);
    let program = |it: &Fixture| fs_err::write(it.path("root/usr/bin/python3.11"), "pr0gram");
    check(|it| program(it).unwrap(), &["root/usr/bin/python3.11 was changed"]);
}

#[test]
fn a_changed_image_listing_is_detected() {
    check(|it| fs_err::write(it.path(TREE), "[]").unwrap(), &["tree.json was changed"]);
    check(|it| fs_err::write(it.path(MANIFEST), "{}").unwrap(), &["manifest.json was changed"]);
}

#[test]
fn missing_file_is_found() {
    check(|it| fs_err::remove_file(it.path(ROOTFS)).unwrap(), &["rootfs.sqfs is missing"]);
    check(|it| fs_err::remove_file(it.path(MANIFEST)).unwrap(), &["manifest.json is missing"]);
    let program = |it: &Fixture| fs_err::remove_file(it.path("root/usr/bin/python3.11"));
    check(|it| program(it).unwrap(), &["root/usr/bin/python3.11 is missing"]);
    check(|it| fs_err::remove_dir_all(it.path(ROOT)).unwrap(), &["root is missing"]);
}

#[test]
fn added_file_is_found() {
    check(|it| fs_err::write(it.path("more"), "").unwrap(), &["more does not belong to the image"]);
    check(
        |it| fs_err::write(it.path("root/workspace/left"), "").unwrap(),
        &["root/workspace/left does not belong to the image"],
    );
}

#[test]
fn changed_mode_kind_and_link_are_found() {
    let mode = |it: &Fixture| {
        let permissions = std::fs::Permissions::from_mode(0o4755);
        fs_err::set_permissions(it.path("root/usr/bin/python3.11"), permissions).unwrap();
    };
    check(mode, &["root/usr/bin/python3.11 was changed"]);
    let link = |it: &Fixture| {
        fs_err::remove_file(it.path("root/usr/bin/python3")).unwrap();
        let target = "/usr/bin/python3.11";
        fs_err::os::unix::fs::symlink(target, it.path("root/usr/bin/python3")).unwrap();
    };
    check(link, &["root/usr/bin/python3 was changed"]);
    let kind = |it: &Fixture| {
        fs_err::rename(it.path(VMLINUZ), it.folder.path().join("elsewhere")).unwrap();
        fs_err::os::unix::fs::symlink(it.folder.path().join("elsewhere"), it.path(VMLINUZ))
            .unwrap();
    };
    check(kind, &["vmlinuz was changed"]);
}

#[test]
fn image_is_found_by_its_name() {
    let fixture = Fixture::new();
    let expected = SandboxImage {
        name: "python".to_owned(),
        sha256: fixture.sha256,
        folder: fixture.store.folder().join(fixture.sha256.to_string()),
        vmlinuz: fixture.path(VMLINUZ),
        modules: fixture.path(MODULES),
        rootfs: Some(fixture.path(ROOTFS)),
        root_tree: Some(fixture.path(ROOT)),
        packages: vec![DebianPackage { name: "dash".to_owned(), version: "1".to_owned() }],
        python_modules: vec!["numpy".to_owned()],
        kernel: "6.1".to_owned(),
        recipe: Sha256Hex::of(b"recipe"),
        bytes: fixture.path(TREE).metadata().unwrap().len() + 26,
    };
    assert_eq!(fixture.store.find("python").unwrap(), expected);
}

#[track_caller]
fn check_refused(poison: impl FnOnce(&Fixture), name: &str, expected: &str) {
    let fixture = Fixture::new();
    poison(&fixture);
    assert_eq!(fixture.store.find(name).unwrap_err().to_string(), expected);
}

#[test]
fn an_unusable_image_is_refused_with_the_reason() {
    check_refused(|_| {}, "data", "image `data`: it has not been built");
    check_refused(
        |_| {},
        "../python",
        "image `../python`: an image name may contain only lower-case letters, digits and `-`",
    );
    check_refused(
        |it| fs_err::write(it.path(ROOTFS), "cut").unwrap(),
        "python",
        "image `python`: `rootfs.sqfs` is missing or was changed",
    );
    check_refused(
        |it| fs_err::write(it.path(MANIFEST), "{}").unwrap(),
        "python",
        "image `python`: its manifest was changed",
    );
    check_refused(
        |it| fs_err::write(it.store.folder().join("tags/python"), "latest").unwrap(),
        "python",
        "image `python`: its tag is not a digest",
    );
    let other_tag = |it: &Fixture| {
        let tags = it.store.folder().join(TAGS);
        fs_err::copy(tags.join("python"), tags.join("data")).unwrap();
    };
    check_refused(other_tag, "data", "image `data`: its tag points to an image named `python`");
}

#[test]
fn the_image_list_shows_names_and_problems() {
    let fixture = Fixture::new();
    let words = |fixture: &Fixture| -> Vec<_> {
        let listed = fixture.store.list().unwrap();
        let state = |it: ImageListing| match it.image {
            Ok(image) => (it.name, image.sha256.to_string(), it.built.is_some()),
            Err(error) => (it.name, error.to_string(), it.built.is_some()),
        };
        listed.into_iter().map(state).collect()
    };
    assert_eq!(words(&fixture), [("python".to_owned(), fixture.sha256.to_string(), true)]);
    fs_err::remove_file(fixture.path(MODULES)).unwrap();
    let problem = "image `python`: `modules.cpio` is missing or was changed".to_owned();
    assert_eq!(words(&fixture), [("python".to_owned(), problem, false)]);
    let nowhere = ImageStore::at(fixture.folder.path().join("nowhere"));
    assert!(nowhere.list().unwrap().is_empty());
    assert_eq!(nowhere.untagged().unwrap(), []);
}

#[test]
fn damaged_image_is_replaced_by_a_new_build_of_the_same() {
    let fixture = Fixture::new();
    let draft = fixture.folder.path().join("draft");
    assert!(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(fixture.path(""))
            .arg(&draft)
            .status()
            .unwrap()
            .success()
    );
    fs_err::write(fixture.path(VMLINUZ), "kernal").unwrap();
    let retired = fixture.folder.path().join("retired");
    fixture.store.install(&draft, fixture.sha256, &retired, "python").unwrap();
    assert_eq!(fixture.problems(), [] as [String; 0]);
    assert_eq!(fs_err::read_to_string(retired.join(VMLINUZ)).unwrap(), "kernal");
}

#[test]
fn an_image_without_a_tag_is_listed_as_untagged() {
    let fixture = Fixture::new();
    assert_eq!(fixture.store.untagged().unwrap(), []);
    fs_err::remove_file(fixture.store.folder().join("tags/python")).unwrap();
    assert_eq!(fixture.store.untagged().unwrap(), [fixture.sha256]);
}
