use super::*;

#[test]
fn a_line_stays_one_line_and_shows_all_it_says() {
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
fn one_line_has_neither_breaks_nor_more_than_it_may() {
    assert_eq!(one_line(" a\n\n b\t c ", 20), "a b c");
    assert_eq!(one_line("abcdef", 6), "abcdef");
    assert_eq!(one_line("abcdefg", 6), "abcde…");
    assert_eq!(one_line(&"\u{1f980}".repeat(1000), 3), "\u{1f980}\u{1f980}…");
}

#[test]
fn no_text_closes_its_own_fence() {
    assert_eq!(fenced("a\n"), "```\na\n```");
    assert_eq!(fenced("a ``` b\n````"), "`````\na ``` b\n````\n`````");
}

#[test]
fn fills_every_place_once_and_never_searches_what_was_filled_in() {
    let template = "{{a}} and {{b}}, {{a}}; {{unknown}} { {{\n";
    let filled = fill(template, &[("a", "{{b}}"), ("b", "{{a}}}}")]);
    assert_eq!(filled, "{{b}} and {{a}}}}, {{b}};  { {{");
}
