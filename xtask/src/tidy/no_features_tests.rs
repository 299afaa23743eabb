use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_text(text: &str, expected: &[&str]) {
    let tree = SourceTree::of(&[("crates/a/Cargo.toml", text)]);
    assert_eq!(headlines(&check(&tree)), expected);
}

#[test]
fn a_manifest_that_enables_features_of_dependencies_passes() {
    check_text(
        "[package]\nname = \"a\"\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\n",
        &[],
    );
}

#[test]
fn features_table_fails() {
    check_text(
        "[package]\nname = \"a\"\n[features]\nfast = []\n",
        &["crates/a/Cargo.toml: [no-features] has a `[features]` table"],
    );
}

#[test]
fn optional_dependency_fails() {
    check_text(
        "[dependencies]\nserde = { version = \"1\", optional = true }\n",
        &["crates/a/Cargo.toml: [no-features] dependency `serde` is optional"],
    );
}

#[test]
fn broken_manifest_fails() {
    let tree = SourceTree::of(&[("Cargo.toml", "[package\n")]);
    assert_eq!(check(&tree).len(), 1);
}

#[test]
fn features_in_test_fixtures_are_ignored() {
    let tree = SourceTree::of(&[("crates/a/tests/fixtures/b/Cargo.toml", "[features]\n")]);
    assert_eq!(headlines(&check(&tree)), [""; 0]);
}
