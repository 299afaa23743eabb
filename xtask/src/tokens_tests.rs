use super::*;

#[track_caller]
fn check(source: &str, expected: &[(&str, usize)]) {
    let found = tokens(source).unwrap();
    let found: Vec<_> = found.iter().map(|token| (token.text.as_str(), token.line)).collect();
    assert_eq!(found, expected);
}

#[test]
fn code_becomes_tokens_with_lines() {
    check(
        "use a::{\n b };",
        &[("use", 1), ("a", 1), (":", 1), (":", 1), ("{", 1), ("b", 2), ("}", 2), (";", 2)],
    );
}

#[test]
fn comments_and_strings_are_left_out() {
    check("// HashMap\nx = \"HashMap\" /* HashMap */", &[("x", 2), ("=", 2)]);
}

#[test]
fn broken_source_is_an_error() {
    assert!(tokens("fn {").is_err());
}
