use super::*;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("primes.txt", "2 3 5\n"),
        ("a.schema.json", "{}"),
        ("b.json", r#"{"type": "object"}"#),
        ("c.json", r#"{"type": "sedan"}"#),
        ("d.json", "[1, 2]"),
        ("e.txt", r#"{"type": "object"}"#),
    ] {
        fs_err::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn text(text: &str) -> OutputExpectation {
    OutputExpectation::Text { text: text.to_owned() }
}

fn pattern(text: &str) -> OutputExpectation {
    OutputExpectation::Pattern { pattern: text.parse().unwrap() }
}

fn schema(name: &str, text: &str) -> OutputExpectation {
    OutputExpectation::Schema { schema: OutputSchema::parse(name, text).unwrap() }
}

#[track_caller]
fn check(words: &str, expected: &OutputExpectation) {
    assert_eq!(expectation(words).unwrap(), *expected, "{words}");
}

#[test]
fn an_expectation_prefix_selects_its_kind() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    check("text:regex:x", &text("regex:x"));
    check("regex:^2 3", &pattern("^2 3"));
    check(&format!("file:{}", path("b.json")), &text(r#"{"type": "object"}"#));
    check(&format!("schema:{}", path("c.json")), &schema("c", r#"{"type":"sedan"}"#));
}

#[test]
fn an_expectation_without_prefix_is_a_file_or_a_regex() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    check(&path("primes.txt"), &text("2 3 5\n"));
    check(&path("a.schema.json"), &schema("a.schema", "{}"));
    check(&path("b.json"), &schema("b", r#"{"type":"object"}"#));
    check(&path("c.json"), &text(r#"{"type": "sedan"}"#));
    check(&path("d.json"), &text("[1, 2]"));
    check(&path("e.txt"), &text(r#"{"type": "object"}"#));
    check("no-such-file.txt", &pattern("no-such-file.txt"));
}

#[test]
fn an_invalid_expectation_is_a_usage_error() {
    for words in ["(", "regex:[", "file:/no/such/file", "schema:/no/such/file"] {
        let error = expectation(words).unwrap_err();
        assert_eq!(error.exit, crate::error::CliExit::Usage, "{words}");
    }
}
