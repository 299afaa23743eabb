use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_text(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(headlines(&check(&SourceTree::of(&[(path, text)]))), expected);
}

#[test]
fn a_linux_crate_fails_as_an_unconditional_dependency() {
    check_text(
        "crates/a/Cargo.toml",
        "[dependencies]\nlandlock = \"0.4\"\nserde = \"1\"\n",
        &["crates/a/Cargo.toml: [linux-only] `landlock` exists on Linux only"],
    );
}

#[test]
fn a_linux_crate_passes_as_a_linux_only_dependency() {
    let text = "[target.'cfg(target_os = \"linux\")'.dependencies]\nlandlock = \"0.4\"\n";
    check_text("crates/a/Cargo.toml", text, &[]);
}

#[test]
fn the_guest_agent_may_use_linux_crates() {
    check_text(GUEST, "[dependencies]\nseccompiler = \"0.5\"\n", &[]);
}

#[test]
fn broken_manifest_fails() {
    assert_eq!(check(&SourceTree::of(&[("crates/a/Cargo.toml", "[package\n")])).len(), 1);
}
