use super::*;

#[test]
fn what_cannot_be_seen_is_gone() {
    let hidden = "a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0041}f\u{fe0f}g\u{3164}h\u{0}i\u{1b}[2Jj\u{2028}k\u{85}l";
    assert_eq!(visible_line(hidden), "abcdefghi[2Jj k l");
}

#[test]
fn marks_do_not_pile_up() {
    let pile = format!("e{}x é", "\u{301}".repeat(50));
    assert_eq!(visible_line(&pile), format!("e{}x é", "\u{301}".repeat(3)));
}
