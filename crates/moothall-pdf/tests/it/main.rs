//! What comes out of the typesetter.

#![allow(clippy::unwrap_used, reason = "tests")]

use moothall_core::report::Paper;
use moothall_core::report::document::{Block, Column, Document, Field, Link, Span, Table};
use moothall_pdf::pdf;

/// What would be read as markup, were it read.
const HOSTILE: &str = "#panic(\"read\") $x^2$ *bold* _emph_ `raw` @label <label> = head #import \"/etc/passwd\" \
    \\u{202e} // comment /* open [ ] { } ~ -- --- ... https://example.org";

fn document(words: &str) -> Document {
    let link = Link::new("https://www.sec.gov/Archives/edgar/data/1/2/3-index.htm");
    let cell = |text: &str| vec![Span::text(text)];
    let mut blocks = vec![
        Block::heading(1, words),
        Block::notice(words),
        Block::Paragraph {
            words: vec![
                Span::strong(words),
                Span::Cite { id: "F0:Revenue:FY2025".to_owned(), url: link, listed: true },
                Span::Cite { id: "F0:Cash:FY2025".to_owned(), url: None, listed: true },
                Span::Cite { id: words.to_owned(), url: None, listed: false },
                Span::Mark { number: 1 },
            ],
        },
        Block::List { numbered: true, items: vec![cell(words)] },
        Block::List { numbered: false, items: vec![cell(words), Vec::new()] },
        Block::Fields { rows: vec![Field::new(words, words)] },
        Block::chapter(1, "A table"),
    ];
    let columns = vec![Column::wide(words), Column::numbers("n"), Column::words("chart")];
    let row = |id: String| {
        vec![
            vec![Span::Source { id }, Span::text(words)],
            vec![Span::Dots { values: vec![1, 5, 10], top: 10 }],
            vec![Span::Bar { value: 80, top: 120 }],
        ]
    };
    let mut rows = vec![row("F0:Cash:FY2025".to_owned())];
    rows.extend((0..30).map(|number| row(format!("F0:Cash:FY{number}"))));
    blocks.push(Block::Table(Table { columns, rows, has_total: true }));
    blocks.push(Block::Fine { words: cell(words) });
    Document {
        title: words.to_owned(),
        subtitle: words.to_owned(),
        running_head: words.to_owned(),
        watermark: Some("FICTIONAL COMPANY".to_owned()),
        running_foot: words.to_owned(),
        blocks,
    }
}

#[test]
fn words_are_printed_and_never_read() {
    for paper in [Paper::A4, Paper::Letter] {
        let made = pdf(&document(HOSTILE), paper).unwrap();
        assert!(made.bytes.starts_with(b"%PDF-"), "it is no PDF");
        // The same words without a sign that could be markup take as many pages.
        let plain = HOSTILE.replace(|sign: char| !sign.is_ascii_alphanumeric() && sign != ' ', "x");
        assert_eq!(made.pages, pdf(&document(&plain), paper).unwrap().pages);
    }
}

#[test]
fn equal_documents_have_equal_bytes() {
    let plain = document("plain");
    let (one, other) = (pdf(&plain, Paper::A4).unwrap(), pdf(&plain, Paper::A4).unwrap());
    assert_eq!(one, other);
}

#[test]
fn an_empty_document_is_a_page() {
    let mut empty = document("");
    empty.blocks.clear();
    empty.watermark = None;
    assert_eq!(pdf(&empty, Paper::Letter).unwrap().pages, 1);
}
