use super::*;
use crate::tidy::headlines;

#[test]
fn a_nested_lock_file_must_match_the_dependencies_of_our_crates() {
    let checked = |locked: &str| {
        let lock = format!(
            "[[package]]\nname = \"moothall-a\"\nversion = \"0.1.0\"\ndependencies = [{locked}]\n\
             [[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n"
        );
        let manifest = "[dependencies]\nserde.workspace = true\ntoml.workspace = true\n\
                        [dev-dependencies]\ninsta.workspace = true\n";
        let manifest = ("crates/moothall-a/Cargo.toml", manifest);
        let files = [(LOCKS[0], lock.as_str()), (LOCKS[1], "package = []"), manifest];
        headlines(&check(&SourceTree::of(&files)).unwrap())
    };
    assert_eq!(checked("\"serde\", \"toml 1.0.0\""), Vec::<String>::new());
    assert_eq!(
        checked("\"serde\""),
        [format!("{}: [nested-locks] the dependencies of `moothall-a` have changed", LOCKS[0])]
    );
}
