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
