use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(html: &str, expected: &[&str]) {
    assert_eq!(paragraphs(html), expected);
}

#[test]
fn blocks_are_paragraphs_and_white_space_is_one_space() {
    check("<p>One\n  two</p><div>Three</div>four", &["One two", "Three", "four"]);
    check("<DIV><P>A</P></DIV>\n\n<P></P>  <H2>B</H2>", &["A", "B"]);
    check("", &[]);
}

#[test]
fn inline_html_elements_do_not_split_words() {
    check("<p><span>I</span><b>tem</b> <i>1.</i></p>", &["Item 1."]);
    check(
        "<p><ix:nonNumeric name=\"x\">Total <ix:nonFraction>12</ix:nonFraction></ix:nonNumeric></p>",
        &["Total 12"],
    );
}

#[test]
fn one_line_break_is_a_space_and_two_end_a_paragraph() {
    check("<p>One<br>two<br/><br/>three<br /> <br />four</p>", &["One two", "three", "four"]);
}

#[test]
fn a_table_row_is_a_paragraph_with_separated_cells() {
    check("<table><tr><td>•</td><td>Word</td></tr><tr><td>A</td></tr></table>", &["• Word", "A"]);
}

#[test]
fn html_entities_are_decoded_and_unknown_ones_kept() {
    check(
        "<p>R&amp;D&nbsp;&#8217;s &#x201c;x&#X201D; &#146; &lt;b&gt; &unknown; & &; &#xffffffff;</p>",
        &["R&D ’s “x” ’ <b> &unknown; & &; &#xffffffff;"],
    );
}

#[test]
fn invisible_html_content_is_left_out() {
    check(
        "<head><title>T</title></head><p>A</p><style>p{}</style><script>if (a<b) {}</script>B",
        &["A", "B"],
    );
    check("<div style=\"DISPLAY: none\"><div>x</div>y</div><p>A</p>", &["A"]);
    check("<ix:header><ix:hidden>x</ix:hidden></ix:header><p>A</p>", &["A"]);
    check("<p>A<!-- <p>x</p> -->B</p>", &["AB"]);
    check("<p>A\u{200b}B\u{202e}C\u{7}</p>", &["ABC"]);
}

#[test]
fn invalid_markup_is_text_and_unclosed_markup_ends_the_text() {
    check("<p>a < b and 3<4</p>", &["a < b and 3<4"]);
    check("<p>A</p><p class=\"x", &["A"]);
    check("<p>A</p><!-- B", &["A"]);
    check("<p>A</p><", &["A", "<"]);
}

#[test]
fn many_unclosed_html_tags_are_read_in_linear_time() {
    let html = "<a<!--&#<".repeat(200_000);
    paragraphs(&html);
    let html = "<div style=\"display:none\">".repeat(100_000);
    check(&html, &[]);
}

proptest! {
    #[test]
    fn html_paragraphs_have_no_line_breaks_or_hidden_characters(
        html in "([<>/&;#! a-z\u{a0}\n\u{202e}]|<p>|<br>|</p>|<td>|&amp;|<!--|-->|<style>|</style>){0,60}"
    ) {
        for paragraph in paragraphs(&html) {
            prop_assert!(!paragraph.is_empty());
            prop_assert!(!paragraph.chars().any(is_hidden));
            prop_assert_eq!(paragraph.split_whitespace().collect::<Vec<_>>().join(" "), paragraph);
        }
    }

    #[test]
    fn paragraphs_of_plain_text_are_the_text(words in prop::collection::vec("[A-Za-zé]{1,8}", 1..20)) {
        let html: String = words.iter().map(|word| format!("<p>{word}</p>\n")).collect();
        prop_assert_eq!(paragraphs(&html), words);
    }
}
