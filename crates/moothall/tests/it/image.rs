//! `moothall image`, except for building, which is tested in the library.

use insta::assert_snapshot;

use crate::world::World;

#[test]
fn help_of_image_shows_its_commands() {
    let world = World::new();
    let pages = [
        &["image", "--help"][..],
        &["image", "build", "--help"],
        &["image", "list", "--help"],
        &["image", "verify", "--help"],
    ]
    .map(|arguments| world.run(arguments).to_string());
    assert_snapshot!(pages.join("\n\n"));
}

#[test]
fn an_empty_image_list_says_how_to_build_images() {
    let world = World::new();
    let ran = world.run(&["image", "list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran}");
    assert_eq!(ran.stderr, "no images; create them with `moothall image build`\n");
}

#[test]
fn image_that_is_not_built_cannot_be_verified() {
    let world = World::new();
    let ran = world.run(&["image", "verify", "python"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    let expected = "error: image `python`: it has not been built\nhint: create it with `moothall image build`\n";
    assert_eq!(ran.stderr, expected);
    let ran = world.run(&["image", "verify"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    let expected = "error: no images to verify\nhint: create them with `moothall image build`\n";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn building_an_unknown_image_lists_the_available_ones() {
    let ran = World::new().run(&["image", "build", "rust"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    let expected =
        "error: image `rust`: unknown image; available images: debate, python, documents, data\n";
    assert_eq!(ran.stderr, expected);
}

/// A bundle that lists one image without its files.
fn bundle(digest: &str) -> Vec<u8> {
    let list = format!(r#"{{"format":1,"images":[{{"name":"debate","sha256":"{digest}"}}]}}"#);
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(list.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, "bundle.json", list.as_bytes()).unwrap();
    archive.into_inner().unwrap()
}

#[test]
fn an_image_with_an_unexpected_digest_is_not_imported() {
    let world = World::new();
    let digest = "ab".repeat(32);
    let bundle = bundle(&digest);
    let refused = world.run_with_input(&["image", "import", "-"], &bundle);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused}");
    let expected = format!(
        "error: image `debate`: unexpected digest {digest}\nhint: if the machine that exported it printed the same digest, pass `--digest {digest}`\n"
    );
    assert_eq!(refused.stderr, expected);
    let other = "cd".repeat(32);
    let refused = world.run_with_input(&["image", "import", "-", "--digest", &other], &bundle);
    assert_eq!(refused.stderr, expected);
    // With the digest, the import reaches the missing files.
    for more in [&["--digest", &digest][..], &["--any-digest"]] {
        let line = [&["image", "import", "-"][..], more].concat();
        let refused = world.run_with_input(&line, &bundle);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(!refused.stderr.contains("unexpected digest"), "{refused}");
    }
    let invalid = world.run_with_input(&["image", "import", "-", "--digest", "ab"], &bundle);
    assert!(invalid.stderr.contains("not 64 lowercase hexadecimal digits"), "{invalid}");
}
