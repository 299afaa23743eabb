use super::*;

#[test]
fn a_long_line_is_cut_and_says_so() {
    let mut none = BTreeMap::new();
    let (base, after) = ("", format!("{}\n", "x".repeat(10_000)));
    let text = lines(&moothall_workspace::difference(base, &after), &mut none);
    assert!(text.len() < 1_000 && text.contains("(line is longer)"), "{}", text.len());
    let text = lines(&moothall_workspace::whole_difference(base, &after), &mut none);
    assert!(text.contains(&"x".repeat(10_000)) && !text.contains("(line is longer)"));
}

#[test]
fn a_last_line_break_that_goes_is_a_line_that_changes() {
    let text = lines(&moothall_workspace::difference("a\nb\n", "a\nb"), &mut BTreeMap::new());
    let plain = anstream::adapter::strip_str(&text).to_string();
    let marked = "    1   a\n    2 - b\n    2 + b\n        \\ No newline at end of file\n";
    assert_eq!(plain, marked);
}

#[test]
fn findings_stand_below_their_lines() {
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
fn a_seal_is_the_one_that_is_there_or_none() {
    let seal = Sha256Hex::of(b"x");
    let digits = seal.to_string();
    assert_eq!(whole_seal(&digits[..12], Some(seal)).unwrap(), seal);
    for (typed, now) in
        [("abc", Some(seal)), (&digits[..12], Some(Sha256Hex::of(b"y"))), (&digits[..12], None)]
    {
        assert!(whole_seal(typed, now).is_err());
    }
}
