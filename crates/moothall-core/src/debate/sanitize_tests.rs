use super::*;

#[test]
fn hidden_and_control_characters_are_removed_and_lines_are_kept() {
    let text = " a\u{1b}[2J b\u{202e}c\r\n\td\u{200b}e\u{2028}f\u{e0041} \u{7}";
    assert_eq!(clean(text, 100), "a[2J bc\n def");
    assert_eq!(clean("\u{7} \u{7} ", 100), "");
}

#[test]
fn too_long_debate_text_is_truncated_with_a_marker() {
    assert_eq!(clean("abcdefghij", 10), "abcdefghij");
    assert_eq!(clean("abcdefghijk", 10), "abcd […]");
    // Never splits a character.
    assert_eq!(clean("ääääää", 10), "ää […]");
    assert_eq!(clean("abc", 2), " […]");
}
