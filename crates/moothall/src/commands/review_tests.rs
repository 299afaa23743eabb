use super::*;

#[test]
fn a_long_diff_line_is_truncated_with_a_marker() {
    let mut none = BTreeMap::new();
    let (base, after) = ("", format!("{}\n", "x".repeat(10_000)));
    let text = lines(&moothall_workspace::difference(base, &after), &mut none);
    assert!(text.len() < 1_000 && text.contains("(line is longer)"), "{}", text.len());
    let text = lines(&moothall_workspace::full_difference(base, &after), &mut none);
    assert!(text.contains(&"x".repeat(10_000)) && !text.contains("(line is longer)"));
}

#[test]
fn a_removed_final_newline_is_shown_as_a_changed_line() {
    let text = lines(&moothall_workspace::difference("a\nb\n", "a\nb"), &mut BTreeMap::new());
    let plain = anstream::adapter::strip_str(&text).to_string();
    let marked = "    1   a\n    2 - b\n    2 + b\n        \\ No newline at end of file\n";
    assert_eq!(plain, marked);
}

#[test]
fn findings_are_shown_below_their_lines() {
    let mut beside =
        BTreeMap::from([(2, vec!["warn path.tmp: path in a temporary directory".to_owned()])]);
    let text = lines(&moothall_workspace::difference("a\n", "a\nb\n"), &mut beside);
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(
        plain,
        "    1   a\n    2 + b\n        ▲ warn path.tmp: path in a temporary directory\n"
    );
    assert!(beside.is_empty());
}

#[test]
fn a_version_prefix_must_match_the_current_version() {
    let seal = Sha256Hex::of(b"x");
    let digits = seal.to_string();
    assert_eq!(expand_seal(&digits[..12], Some(seal)).unwrap(), seal);
    for (typed, now) in
        [("abc", Some(seal)), (&digits[..12], Some(Sha256Hex::of(b"y"))), (&digits[..12], None)]
    {
        assert!(expand_seal(typed, now).is_err());
    }
}
