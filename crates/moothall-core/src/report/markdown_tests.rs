use super::*;

#[track_caller]
fn check(words: &str, expected: &str) {
    let document = ReportDocument {
        title: "T".to_owned(),
        subtitle: "S".to_owned(),
        running_head: String::new(),
        watermark: None,
        running_foot: String::new(),
        blocks: vec![DocumentBlock::paragraph(words)],
    };
    assert_eq!(markdown(&document), format!("# T\n\n*S*\n\n{expected}\n"));
}

#[test]
fn markdown_special_characters_are_escaped() {
    check("a *b* _c_ ~~d~~ `e` \\f", r"a \*b\* \_c\_ \~\~d\~\~ 'e' \\f");
    check("<b>x</b> &lt; &#x202e; R&D; R&D", "&lt;b>x&lt;/b> &amp;lt; &amp;#x202e; R&amp;D; R&D");
    check("[a](https://b.c) ![d](e) [f][g] [^1]", "[a] (https: //b.c) ! [d] (e) [f] [g] [ ^1]");
    check("see www.example.org", "see www .example.org");
}

#[test]
fn markdown_block_markers_at_line_starts_are_escaped() {
    check("# a", r"\# a");
    check("> a", r"\> a");
    check("- a", r"\- a");
    check("--- a", r"\--- a");
    check("-5% a", "-5% a");
    check("1. a", r"1\. a");
    check("1.5 a", "1.5 a");
    check("[a]: b", "[a] : b");
    check("| a | b |", r"\| a | b |");
}

#[test]
fn text_charts_have_a_fixed_width() {
    assert_eq!(bar(80, 120), "███████░░░");
    assert_eq!(bar(0, 0), "░░░░░░░░░░");
    assert_eq!(dots(&[1, 7, 7, 10], 10), "●·····●··●");
}
