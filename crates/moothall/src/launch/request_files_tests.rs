use super::*;

fn text_file(name: &str, text: &str) -> RequestFile {
    RequestFile { name: name.to_owned(), text: Some(text.to_owned()), base64: None }
}

fn message(files: &[RequestFile]) -> String {
    let error = documents(files).unwrap_err();
    assert_eq!(error.code, Some(ErrorCode::BadFile));
    assert!(error.hint.is_some() || error.message.starts_with("too many"), "{error}");
    error.message
}

#[test]
fn text_and_base64_have_the_same_content() {
    let encoded = RequestFile {
        name: "b.md".to_owned(),
        text: None,
        base64: Some(STANDARD.encode("# Plan")),
    };
    let found = documents(&[text_file("a.md", "# Plan"), encoded]).unwrap();
    let expected = [("a.md", b"# Plan"), ("b.md", b"# Plan")];
    assert!(
        found
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .eq(expected.iter().map(|(name, bytes)| (*name, bytes.as_slice())))
    );
}

#[test]
fn file_names_cannot_be_paths_or_invisible() {
    for name in
        ["", ".md", "../plan.md", "/etc/plan.md", "a\\b.md", "a\nb.md", " a.md", "a\u{202e}.md"]
    {
        assert!(message(&[text_file(name, "x")]).starts_with("invalid file name"), "{name:?}");
    }
    assert!(message(&[text_file(&format!("{}.md", "a".repeat(120)), "x")]).starts_with("invalid"));
}

#[test]
fn documents_are_limited_in_type_size_and_number() {
    assert_eq!(message(&[text_file("run.exe", "x")]), "unsupported type of document `run.exe`");
    let large = "x".repeat((4 << 20) + 1);
    assert_eq!(message(&[text_file("a.md", &large)]), "`a.md` is larger than 4 MiB");
    let many: Vec<RequestFile> =
        (0..9).map(|n| text_file(&format!("{n}.md"), &large[1..])).collect();
    assert_eq!(message(&many), "the files are larger than 32 MiB together");
    let many: Vec<RequestFile> =
        (0..=MAX_DOCUMENTS).map(|n| text_file(&format!("{n}.md"), "x")).collect();
    assert_eq!(message(&many), "too many documents: 201 (limit: 200)");
    let twice = [text_file("a.md", "x"), text_file("a.md", "y")];
    assert_eq!(message(&twice), "two files have the name `a.md`");
}

#[test]
fn a_file_has_exactly_one_content() {
    let none = RequestFile { name: "a.md".to_owned(), text: None, base64: None };
    assert_eq!(message(&[none]), "`a.md` needs either `text` or `base64`");
    let broken =
        RequestFile { name: "a.md".to_owned(), text: None, base64: Some("not base64".to_owned()) };
    assert_eq!(message(&[broken]), "`a.md` is not valid base64");
}
