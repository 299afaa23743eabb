use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_tree(printed: &str, expected: &[&str]) {
    assert_eq!(headlines(&check_dependencies(&parse(printed).unwrap())), expected);
}

#[track_caller]
fn check_file(source: &str, expected: &[&str]) {
    let tree = SourceTree::of(&[("crates/moothall-core/src/step.rs", source)]);
    assert_eq!(headlines(&check_sources(&tree)), expected);
}

#[test]
fn listed_dependencies_pass() {
    check_tree(
        "0moothall-core v0.1.0 (path)\n1serde v1.0.0\n2serde_derive v1.0.0 (proc-macro)\n\n",
        &[],
    );
}

#[test]
fn direct_dependency_that_is_not_listed_fails() {
    check_tree(
        "0moothall-core v0.1.0\n1tokio v1.0.0\n",
        &[
            "crates/moothall-core/Cargo.toml: [core-purity] `moothall-core` pulls in `tokio`, which is not on the allowlist",
        ],
    );
}

#[test]
fn indirect_dependency_that_is_not_listed_fails_once() {
    check_tree(
        "0moothall-core v0.1.0\n1sha2 v0.11.0\n2getrandom v0.4.0\n1serde v1.0.0\n3getrandom v0.4.0\n",
        &[
            "crates/moothall-core/Cargo.toml: [core-purity] `moothall-core` pulls in `getrandom`, which is not on the allowlist",
        ],
    );
}

#[test]
fn naming_an_indirect_dependency_in_the_manifest_fails() {
    check_tree(
        "0moothall-core v0.1.0\n1libc v0.2.0\n",
        &[
            "crates/moothall-core/Cargo.toml: [core-purity] `moothall-core` pulls in `libc`, which is not on the allowlist",
        ],
    );
}

#[test]
fn unreadable_tree_is_an_error() {
    assert!(parse("moothall-core v0.1.0\n").is_err());
}

#[test]
fn pure_source_passes_regardless_of_its_comments() {
    check_file(
        "//! No `HashMap`, no async, no std::fs.\nuse std::{cmp::Ordering, collections::{BTreeMap, BTreeSet}, time::Duration};\nconst WHY: &str = \"unsafe\";\n",
        &[],
    );
}

#[test]
fn a_core_module_with_side_effects_fails() {
    check_file(
        "fn f() {\n    std::fs::read(\"x\");\n}\n",
        &["crates/moothall-core/src/step.rs:2: [core-purity] `std::fs` in `moothall-core`"],
    );
}

#[test]
fn modules_in_a_grouped_use_fail() {
    check_file(
        "use std::{collections::{BTreeMap, btree_map}, env,\n    net::TcpStream};\n",
        &[
            "crates/moothall-core/src/step.rs:1: [core-purity] `std::env` in `moothall-core`",
            "crates/moothall-core/src/step.rs:2: [core-purity] `std::net` in `moothall-core`",
        ],
    );
}

#[test]
fn clock_hash_order_async_and_unsafe_fail() {
    check_file(
        "use std::time::Instant;\nuse std::collections::HashMap;\nasync fn f() {}\nfn g() { unsafe {} }\n",
        &[
            "crates/moothall-core/src/step.rs:1: [core-purity] `Instant` in `moothall-core`",
            "crates/moothall-core/src/step.rs:2: [core-purity] `HashMap` in `moothall-core`",
            "crates/moothall-core/src/step.rs:3: [core-purity] `async` in `moothall-core`",
            "crates/moothall-core/src/step.rs:4: [core-purity] `unsafe` in `moothall-core`",
        ],
    );
}

#[test]
fn tests_and_other_crates_may_have_side_effects() {
    let source = "use std::fs;";
    let tree = SourceTree::of(&[
        ("crates/moothall-core/src/step_tests.rs", source),
        ("crates/moothall-core/tests/it/main.rs", source),
        ("crates/moothall-models/src/lib.rs", source),
    ]);
    assert_eq!(headlines(&check_sources(&tree)), [""; 0]);
}
