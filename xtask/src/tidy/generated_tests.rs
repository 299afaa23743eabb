use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_cli(committed: &[(&str, &str)], fresh: &str, expected: &[&str]) {
    assert_eq!(
        headlines(&check(&SourceTree::of(committed), &[("cli.md", fresh.to_owned())])),
        expected
    );
}

#[test]
fn fresh_file_passes() {
    check_cli(&[("cli.md", "# ask\n")], "# ask\n", &[]);
}

#[test]
fn stale_file_fails_at_the_first_line_that_differs() {
    check_cli(
        &[("cli.md", "# ask\nold\n")],
        "# ask\nnew\n",
        &["cli.md:2: [generated] is out of date from this line"],
    );
}

#[test]
fn a_truncated_generated_file_fails() {
    check_cli(
        &[("cli.md", "# ask\n")],
        "# ask\nmore\n",
        &["cli.md:2: [generated] is out of date from this line"],
    );
}

#[test]
fn missing_file_fails() {
    check_cli(&[], "# ask\n", &["cli.md: [generated] is missing"]);
}
