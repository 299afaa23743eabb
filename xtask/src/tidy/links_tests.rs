use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_readme(text: &str, expected: &[&str]) {
    let tree = SourceTree::of(&[
        ("README.md", text),
        (
            "ARCHITECTURE.md",
            "# The house\n\n## To add a `command`, touch these\n\n## Twice\n\n## Twice\n\n<a id=\"by-hand\"></a>\n",
        ),
        ("crates/moothall/src/main.rs", ""),
    ]);
    assert_eq!(headlines(&check(&tree)), expected);
}

#[test]
fn valid_links_pass() {
    check_readme(
        "# Title\n[a](ARCHITECTURE.md) [b](./ARCHITECTURE.md#to-add-a-command-touch-these) [c](#title) [d](crates/moothall)\n\
         [e](ARCHITECTURE.md#twice-1) [f](ARCHITECTURE.md#by-hand) [g](https://example.com/#x) [h](crates/moothall/src/main.rs#L1)\n",
        &[],
    );
}

#[test]
fn missing_file_fails() {
    check_readme(
        "text\n\n[a](NOWHERE.md)\n",
        &["README.md:3: [links] `NOWHERE.md` does not exist"],
    );
}

#[test]
fn missing_image_fails() {
    check_readme("![a](demo.svg)\n", &["README.md:1: [links] `demo.svg` does not exist"]);
}

#[test]
fn reference_link_to_a_missing_file_fails() {
    check_readme("[a]\n\n[a]: NOWHERE.md\n", &["README.md:1: [links] `NOWHERE.md` does not exist"]);
}

#[test]
fn missing_anchor_fails() {
    check_readme(
        "[a](ARCHITECTURE.md#the-garden)\n[b](#nothing)\n",
        &[
            "README.md:1: [links] `ARCHITECTURE.md#the-garden`: `ARCHITECTURE.md` has no heading `#the-garden`",
            "README.md:2: [links] `#nothing`: `README.md` has no heading `#nothing`",
        ],
    );
}

#[test]
fn link_out_of_the_tree_fails() {
    check_readme(
        "[a](../other/README.md)\n",
        &["README.md:1: [links] `../other/README.md` does not exist"],
    );
}

#[test]
fn absolute_and_empty_links_fail() {
    check_readme(
        "[a](/etc/hosts) [b]()\n",
        &["README.md:1: [links] `/etc/hosts` is absolute", "README.md:1: [links] empty link"],
    );
}

#[test]
fn links_in_code_are_not_links() {
    check_readme("`[a](NOWHERE.md)`\n\n```\n[a](NOWHERE.md)\n```\n", &[]);
}

#[test]
fn page_of_the_book_that_links_out_of_it_fails() {
    let tree = SourceTree::of(&[
        ("README.md", ""),
        ("docs/src/SUMMARY.md", "[a](a.md)\n"),
        ("docs/src/a.md", "[readme](../../README.md)\n"),
    ]);
    assert_eq!(
        headlines(&check(&tree)),
        ["docs/src/a.md:1: [links] `../../README.md` points outside the book"]
    );
}

#[test]
fn page_that_the_table_of_contents_does_not_name_fails() {
    let tree = SourceTree::of(&[
        ("docs/src/SUMMARY.md", "- [a](guide/a.md)\n"),
        ("docs/src/guide/a.md", ""),
        ("docs/src/b.md", ""),
    ]);
    assert_eq!(
        headlines(&check(&tree)),
        ["docs/src/b.md: [links] is not listed in docs/src/SUMMARY.md"]
    );
}
