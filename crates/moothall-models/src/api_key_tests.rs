use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let key = ApiKey::new("sk-0123456789".to_owned());
    assert_eq!(key.remove_from(text), expected);
    assert_eq!(key.is_in(text), text.contains("sk-0123456789"));
}

#[test]
fn an_api_key_is_redacted_anywhere_in_a_text() {
    check("wrong key sk-0123456789, and again sk-0123456789", "wrong key ***, and again ***");
    check("nothing here", "nothing here");
    check("", "");
}

#[test]
fn the_start_of_an_api_key_at_a_truncation_is_redacted() {
    // Regression: error texts are truncated, and a key at the cut left its first characters behind.
    check("wrong key sk-01234", "wrong key ***");
    check("wrong key sk-0", "wrong key ***");
    check("wrong key sk-", "wrong key sk-");
}

#[test]
fn a_very_short_api_key_is_not_redacted_from_ordinary_text() {
    assert_eq!(ApiKey::new("a".to_owned()).remove_from("a banana"), "a banana");
}
