use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_promise(text: &str, expected: &[&str]) {
    let tree = SourceTree::of(&[
        ("SPECIFICATION.md", text),
        (
            "crates/moothall-models/src/ledger_tests.rs",
            "#[test] fn never_overshoots() {} // not_a_test",
        ),
        (
            "crates/moothall-models/tests/it/faults.rs",
            "faults! { openai, ollama; connection_reset: retried(3) }",
        ),
        ("crates/moothall-models/src/ledger.rs", "fn in_the_product() {}"),
    ]);
    assert_eq!(headlines(&check(&tree, &["gateway".to_owned()])), expected);
}

#[test]
fn promises_with_their_tests_pass() {
    check_promise(
        "| promise | shown by |\n|---|---|\n| a | `test:never_overshoots` |\n| b | `test:moothall_models::ledger::tests::never_overshoots` |\n\
         | c | `test:faults::{openai, ollama}::connection_reset` |\n| d | `bench:gateway` |\n| e | `cargo test` |\n",
        &[],
    );
}

#[test]
fn promise_whose_test_was_renamed_fails() {
    check_promise(
        "x\n\n`test:never_overshot`\n",
        &["SPECIFICATION.md:3: [specification] unknown test `never_overshot`"],
    );
}

#[test]
fn each_choice_of_a_group_needs_its_test() {
    check_promise(
        "`test:faults::{openai,google}::connection_reset`\n",
        &["SPECIFICATION.md:1: [specification] unknown test `faults::google::connection_reset`"],
    );
}

#[test]
fn names_in_comments_and_product_code_are_not_tests() {
    check_promise(
        "`test:not_a_test` `test:in_the_product`\n",
        &[
            "SPECIFICATION.md:1: [specification] unknown test `not_a_test`",
            "SPECIFICATION.md:1: [specification] unknown test `in_the_product`",
        ],
    );
}

#[test]
fn promise_without_its_benchmark_fails() {
    check_promise(
        "`bench:sandbox`\n",
        &["SPECIFICATION.md:1: [specification] unknown benchmark `cargo xtask bench sandbox`"],
    );
}

#[test]
fn missing_specification_fails() {
    assert_eq!(
        headlines(&check(&SourceTree::default(), &[])),
        ["SPECIFICATION.md: [specification] is missing"]
    );
}

#[test]
fn groups_expand_in_every_combination() {
    assert_eq!(expand("a::{b,c}::{d,e}"), ["a::b::d", "a::b::e", "a::c::d", "a::c::e"]);
}
