use super::*;

const MANIFEST_WITH_TWO: &str =
    "[package]\nname = \"x\"\n[[bin]]\nname = \"sse\"\n[[bin]]\nname = \"receipt\"\n";

fn names(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn targets_are_the_bins_of_the_manifest() {
    assert_eq!(target_names(MANIFEST_WITH_TWO).unwrap(), names(&["sse", "receipt"]));
}

#[test]
fn manifest_without_targets_is_an_error() {
    let error = target_names("[package]\nname = \"x\"\n").unwrap_err();
    assert_eq!(error.to_string(), "`fuzz/libfuzzer/Cargo.toml` lists no [[bin]]");
}

#[test]
fn only_the_named_targets_are_chosen() {
    assert_eq!(
        select_targets(names(&["sse", "receipt"]), &names(&["receipt"])).unwrap(),
        names(&["receipt"])
    );
}

#[test]
fn unknown_target_is_an_error_that_names_the_known_ones() {
    let error = select_targets(names(&["sse", "receipt"]), &names(&["ssse"])).unwrap_err();
    assert_eq!(error.to_string(), "no fuzz target `ssse`\nhint: there are sse, receipt");
}
