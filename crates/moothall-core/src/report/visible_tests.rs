use super::*;

#[test]
fn invisible_characters_are_removed_from_report_lines() {
    let hidden = "a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0041}f\u{fe0f}g\u{3164}h\u{0}i\u{1b}[2Jj\u{2028}k\u{85}l";
    assert_eq!(visible_line(hidden), "abcdefghi[2Jj k l");
}

#[test]
fn stacked_combining_marks_are_limited() {
    let pile = format!("e{}x é", "\u{301}".repeat(50));
    assert_eq!(visible_line(&pile), format!("e{}x é", "\u{301}".repeat(3)));
}
