use super::*;
use crate::tidy::headlines;

fn checked(reason: &str) -> Vec<String> {
    let deny =
        format!("[advisories]\nignore = [{{ id = \"RUSTSEC-1\", reason = \"{reason}\" }}]\n");
    let lock = "[[package]]\nname = \"rsa\"\nversion = \"0.9.8\"\n";
    headlines(&check(&SourceTree::of(&[(DENY, &deny), (LOCK, lock)])).unwrap())
}

#[test]
fn an_ignored_advisory_names_a_locked_crate_and_its_removal_condition() {
    assert_eq!(checked("rsa, by a: not used; leaves with a 2"), Vec::<String>::new());
    assert_eq!(
        checked("gone, by a: not used; leaves with a 2"),
        ["deny.toml: [advisories] RUSTSEC-1: `gone` is not in Cargo.lock"]
    );
    assert_eq!(
        checked("rsa, by a: not used"),
        [
            "deny.toml: [advisories] RUSTSEC-1: the reason does not say when the entry can be removed"
        ]
    );
}
