use super::*;
use crate::tidy::headlines;

#[test]
fn a_number_above_its_limit_fails_with_the_worst_file() {
    let settings = LanguageSettings::built_in().unwrap();
    let tree = SourceTree::of(&[("docs/a.md", "nobody reads what nobody wrote")]);
    let problems = check(&settings, &tree).unwrap();
    let limit = settings.limits["docs"];
    assert_eq!(
        headlines(&problems),
        [format!("xtask/language.toml: [language] docs is 4000.0 (limit: {limit:.1})")]
    );
    assert_eq!(
        problems[0].hint,
        "docs/a.md (2): for \"nobody\" write \"no one, or the active form\""
    );
}

#[test]
fn plain_names_and_prose_pass() {
    let settings = LanguageSettings::built_in().unwrap();
    let tree =
        SourceTree::of(&[("a.md", "The run continues."), ("src/a.rs", "struct RunRequest;")]);
    assert_eq!(check(&settings, &tree).unwrap(), []);
}

#[test]
fn a_subject_over_72_characters_fails() {
    let long = "x".repeat(73);
    let log = format!("abc1234 {long}\nabc1235 {}\n", &long[1..]);
    assert_eq!(
        headlines(&check_subjects(&log)),
        ["abc1234: [language] the subject has 73 characters"]
    );
}
