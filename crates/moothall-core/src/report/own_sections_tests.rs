use super::*;
use crate::report::document::ReportDocument;
use crate::report::markdown;

fn shown(text: &str, values: &[(&str, &str)]) -> String {
    let content =
        vec![DocumentBlock::paragraph("Written by code."), DocumentBlock::paragraph("Twice.")];
    let document = ReportDocument {
        title: "T".to_owned(),
        subtitle: "S".to_owned(),
        running_head: String::new(),
        watermark: None,
        running_foot: String::new(),
        blocks: blocks(text, values, content),
    };
    markdown(&document)
}

#[test]
fn an_own_section_has_headings_lists_notices_and_paragraphs_around_the_content() {
    let text = "# For {{company}}\n\nRead this\nfirst.\n- one\n- two\n> Confidential\n{{content}}\n## End\nBye.\n";
    insta::assert_snapshot!(shown(text, &[("company", "Acme")]));
}

#[test]
fn a_value_cannot_start_a_new_block() {
    let title = "Sell\n\n# Approved\n- [x](http://a)";
    let text = shown("# {{title}}\n{{content}}\n", &[("title", title)]);
    assert_eq!(text.matches("\n## ").count(), 1, "{text}");
    assert!(!text.contains("\n# Approved") && !text.contains("\n- "), "{text}");
}
