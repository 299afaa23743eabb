use super::*;

#[test]
fn one_line_joins_lines_and_removes_hidden_characters() {
    assert_eq!(
        one_line("  Open\n\n# stores\u{202e} in\tAsia \u{1b}[2J", 80),
        "Open # stores in Asia [2J"
    );
    assert_eq!(one_line("Open stores in Asia", 12), "Open stores…");
}

#[test]
fn a_fence_is_longer_than_any_inside() {
    assert_eq!(fenced("a ```` b"), "`````\na ```` b\n`````");
    assert_eq!(fenced("plain"), "```\nplain\n```");
}

#[test]
fn one_line_has_no_line_breaks_and_a_maximum_length() {
    assert_eq!(one_line(" a\n\n b\t c ", 20), "a b c");
    assert_eq!(one_line("abcdef", 6), "abcdef");
    assert_eq!(one_line("abcdefg", 6), "abcde…");
    assert_eq!(one_line(&"\u{1f980}".repeat(1000), 3), "\u{1f980}\u{1f980}…");
}

#[test]
fn text_cannot_close_its_own_fence() {
    assert_eq!(fenced("a\n"), "```\na\n```");
    assert_eq!(fenced("a ``` b\n````"), "`````\na ``` b\n````\n`````");
}

#[test]
fn placeholders_are_filled_once_and_filled_text_is_not_searched() {
    let template = "{{a}} and {{b}}, {{a}}; {{unknown}} { {{\n";
    let filled = fill(template, &[("a", "{{b}}"), ("b", "{{a}}}}")]);
    assert_eq!(filled, "{{b}} and {{a}}}}, {{b}};  { {{");
}

#[test]
fn the_table_of_hidden_characters_is_sorted_and_consistent() {
    let mut before = '\0';
    for (first, last, kind) in HIDDEN {
        assert!(before < *first && first <= last, "{first:?}");
        assert_eq!((hidden_kind(*first), hidden_kind(*last)), (Some(*kind), Some(*kind)));
        before = *last;
    }
    for c in ['\0', 'a', '\u{ac}', '\u{ae}', '\u{2027}', '\u{e1000}', char::MAX] {
        assert_eq!(hidden_kind(c), None, "{c:?}");
    }
}

#[test]
fn displayed_text_has_no_control_hidden_or_bidirectional_characters() {
    for c in ('\0'..=char::MAX).filter(|c| is_hidden(*c)) {
        let (text, line) = (sanitize(&format!("a{c}b")), sanitize_line(&format!("a{c}b")));
        assert!(["ab", "a\u{fffd}b"].contains(&line.as_str()), "{c:?}: {line:?}");
        match c {
            '\n' | '\t' => assert_eq!(text, format!("a{c}b")),
            _ => assert_eq!(text, line),
        }
        // Whitespace separates words; other hidden characters are removed.
        assert!(["ab", "a b"].contains(&one_line(&format!("a{c}b"), 9).as_str()), "{c:?}");
    }
    assert_eq!(sanitize("👩\u{200d}💻 co\u{ad}op ❤\u{fe0f}"), "👩💻 coop ❤\u{fe0f}");
}

#[test]
fn escape_sequences_are_neutralized_and_text_is_kept() {
    let said = "a\tb\nc\u{1b}[2J \u{9b}1m \u{7}\r\u{8}\u{7f}ä…";
    assert_eq!(sanitize(said), "a\tb\nc\u{fffd}[2J \u{fffd}1m \u{fffd}\u{fffd}\u{fffd}\u{fffd}ä…");
}

#[test]
fn text_inside_a_line_cannot_start_a_new_line() {
    assert_eq!(
        sanitize_line("m\nerror: x\r\u{85}\ty"),
        "m\u{fffd}error: x\u{fffd}\u{fffd}\u{fffd}y"
    );
}

#[test]
fn escaped_text_spells_out_invisible_characters() {
    let said = "a\x1b[2Jb\rc\u{202e}d\u{200b}e\u{9b}f\tg\nh\u{fe0f}";
    assert_eq!(escaped(said), "a\\u{1b}[2Jb\\u{d}c\\u{202e}d\\u{200b}e\\u{9b}f\tg\\u{a}h\\u{fe0f}");
    assert_eq!(escaped_lines("a\nb\x07\n"), "a\nb\\u{7}\n");
}
