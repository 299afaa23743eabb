use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_length(path: &str, lines: usize, expected: &[&str]) {
    let tree = SourceTree::of(&[(path, &"\n".repeat(lines))]);
    assert_eq!(headlines(&check(&tree)), expected);
}

#[test]
fn short_file_passes() {
    check_length("src/a.rs", 500, &[]);
}

#[test]
fn long_file_warns() {
    check_length("src/a.rs", 501, &["src/a.rs: warning: [file-length] 501 lines, more than 500"]);
    check_length("src/a.rs", 800, &["src/a.rs: warning: [file-length] 800 lines, more than 500"]);
}

#[test]
fn very_long_file_fails() {
    check_length("src/a.rs", 801, &["src/a.rs: [file-length] 801 lines, more than 800"]);
}

#[test]
fn tests_may_be_longer_up_to_a_point() {
    check_length("src/a_tests.rs", 1500, &[]);
    check_length(
        "src/a_tests.rs",
        1501,
        &["src/a_tests.rs: [file-length] 1501 lines, more than 1500"],
    );
    check_length(
        "tests/it/a.rs",
        1501,
        &["tests/it/a.rs: [file-length] 1501 lines, more than 1500"],
    );
}

#[test]
fn files_that_are_not_rust_may_have_any_length() {
    check_length("Cargo.lock", 9000, &[]);
}
