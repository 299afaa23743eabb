use super::*;

fn lines(difference: &DraftDiff, notes: &mut LineNotes) -> String {
    difference.hunks.iter().map(|hunk| hunk_lines(hunk, notes)).collect()
}

#[test]
fn a_long_diff_line_is_truncated_with_a_marker() {
    let mut none = LineNotes::default();
    let (base, after) = ("", format!("{}\n", "x".repeat(10_000)));
    let text = lines(&moothall_workspace::difference(base, &after), &mut none);
    assert!(text.len() < 1_000 && text.contains("(line is longer)"), "{}", text.len());
    let text = lines(&moothall_workspace::full_difference(base, &after), &mut none);
    assert!(text.contains(&"x".repeat(10_000)) && !text.contains("(line is longer)"));
}

#[test]
fn a_removed_final_newline_is_shown_as_a_changed_line() {
    let text = lines(&moothall_workspace::difference("a\nb\n", "a\nb"), &mut LineNotes::default());
    let plain = anstream::adapter::strip_str(&text).to_string();
    let marked = "    1   a\n    2 - b\n    2 + b\n        \\ No newline at end of file\n";
    assert_eq!(plain, marked);
}

#[test]
fn findings_are_shown_below_their_lines() {
    let note = "warn path.tmp: path in a temporary directory".to_owned();
    let mut beside = LineNotes { new: BTreeMap::from([(2, vec![note])]), ..LineNotes::default() };
    let text = lines(&moothall_workspace::difference("a\n", "a\nb\n"), &mut beside);
    let plain = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(
        plain,
        "    1   a\n    2 + b\n        ▲ warn path.tmp: path in a temporary directory\n"
    );
    assert!(beside.new.is_empty());
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
