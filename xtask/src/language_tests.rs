use super::*;

fn measured(files: &[(&str, &str)]) -> BTreeMap<&'static str, f64> {
    let settings = LanguageSettings::built_in().unwrap();
    let all = settings.measure(&SourceTree::of(files)).unwrap();
    all.into_iter().map(|one| (one.name, (one.value * 10.0).round() / 10.0)).collect()
}

#[test]
fn names_are_counted_outside_tests_and_inside_of_modules() {
    let product =
        "struct Desk; mod m { pub(super) enum RunRequest {} } trait Desk2 {}\nstruct Desk;";
    let found = measured(&[("crates/a/src/a.rs", product), ("crates/a/src/a_tests.rs", product)]);
    assert_eq!(found["repeated_type_names"], 50.0);
    assert_eq!(found["one_word_type_names"], 75.0);
    assert_eq!(found["pub_super"], 500.0);
}

#[test]
fn visibility_named_in_a_string_is_not_counted() {
    let product = "const VISIBILITY: &str = \"pub(super)\"; // pub(super)\n";
    assert_eq!(measured(&[("xtask/src/a.rs", product)])["pub_super"], 0.0);
}

#[test]
fn phrases_are_found_in_prose_only() {
    let found = measured(&[
        ("a.md", "Nobody `nobody` reads this page\n```\nnobody\n```\n"),
        ("a.rs", "// the run goes on after that\nconst TEXT: &str = \"it is told the answer\";\n"),
        ("web/src/a.ts", "const label = \"no one\";"),
    ]);
    assert_eq!(found["docs"], 2000.0);
    assert_eq!(found["comments"], 1666.7);
    assert_eq!(found["strings"], 2000.0);
    assert_eq!(found["web"], 0.0);
}

#[test]
fn a_phrase_does_not_cross_punctuation_and_is_fine_before_its_exception() {
    let found = measured(&[("a.md", "it is no longer there; it goes, on Monday")]);
    assert_eq!(found["docs"], 0.0);
}

#[test]
fn every_measured_name_has_a_limit() {
    let settings = LanguageSettings::built_in().unwrap();
    let measured: Vec<&str> =
        settings.measure(&SourceTree::default()).unwrap().iter().map(|one| one.name).collect();
    let mut limits: Vec<&str> = settings.limits.keys().map(String::as_str).collect();
    limits.sort_by_key(|name| measured.iter().position(|one| one == name));
    assert_eq!(measured, limits);
}
