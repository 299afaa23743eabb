use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_text(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(headlines(&check(&SourceTree::of(&[(path, text)]))), expected);
}

#[test]
fn crate_of_linux_fails_as_a_dependency_of_every_system() {
    check_text(
        "crates/a/Cargo.toml",
        "[dependencies]\nlandlock = \"0.4\"\nserde = \"1\"\n",
        &["crates/a/Cargo.toml: [linux-only] `landlock` exists on Linux only"],
    );
}

#[test]
fn crate_of_linux_passes_as_a_dependency_of_linux() {
    let text = "[target.'cfg(target_os = \"linux\")'.dependencies]\nlandlock = \"0.4\"\n";
    check_text("crates/a/Cargo.toml", text, &[]);
}

#[test]
fn agent_inside_of_sandboxes_is_of_linux() {
    check_text(GUEST, "[dependencies]\nseccompiler = \"0.5\"\n", &[]);
}

#[test]
fn broken_manifest_fails() {
    assert_eq!(check(&SourceTree::of(&[("crates/a/Cargo.toml", "[package\n")])).len(), 1);
}
