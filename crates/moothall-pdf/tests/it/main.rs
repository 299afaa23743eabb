//! The library and the program that `moothall` starts.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use moothall_core::report::document::{Block, Column, Document, Field, Link, Span, Table};
use moothall_core::text;
use moothall_pdf::{MAX_BYTES, Paper, Pdf, PdfError, typeset};

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

fn pdf(document: &Document, paper: Paper) -> Result<Pdf, PdfError> {
    typeset(serde_json::to_string(document).unwrap(), paper)
}

/// Runs the program with this input.
fn program(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_moothall-pdf"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may refuse before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn program_writes_what_the_library_makes() {
    let document = document("plain");
    let made = program(&["a4"], &serde_json::to_vec(&document).unwrap());
    assert!(made.status.success(), "{made:?}");
    assert_eq!(made.stdout, pdf(&document, Paper::A4).unwrap().bytes);
}

#[test]
fn program_refuses_input_that_is_no_document() {
    for (input, error) in [
        (
            vec![b' '; MAX_BYTES + 1],
            "error: the document is too long to typeset (limit: 8388608 bytes)\n",
        ),
        (b"\xff".to_vec(), "error: stream did not contain valid UTF-8\n"),
        (b"{}".to_vec(), "error: the template failed: "),
        (b"{".to_vec(), "error: the template failed: "),
    ] {
        let made = program(&["letter"], &input);
        let stderr = String::from_utf8(made.stderr).unwrap();
        assert_eq!(made.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with(error), "{stderr}");
        assert!(made.stdout.is_empty());
    }
}

#[test]
fn program_shows_its_usage_for_an_unknown_paper() {
    let made = program(&["b5"], b"");
    assert_eq!(made.status.code(), Some(2));
    let usage = "error: usage: moothall-pdf a4|letter <document.json >memo.pdf\n";
    assert_eq!(String::from_utf8(made.stderr).unwrap(), usage);
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
fn characters_that_nobody_sees_do_not_reach_the_pages() {
    let pages = |words: &str| {
        let document = Document {
            blocks: vec![
                Block::heading(1, words),
                Block::notice(words),
                Block::Paragraph { words: vec![Span::text(words), Span::strong(words)] },
                Block::Fields { rows: vec![Field::new(words, words)] },
                Block::Table(Table {
                    columns: vec![Column::words(words)],
                    rows: vec![vec![vec![Span::text(words)]]],
                    has_total: false,
                }),
            ],
            ..document("plain")
        };
        pdf(&document, Paper::A4).unwrap().bytes
    };
    let hidden: String =
        ('\0'..=char::MAX).filter(|c| text::is_unseen(*c) || c.is_control()).collect();
    let (spaces, others): (String, String) = hidden.chars().partition(|c| c.is_whitespace());
    assert_eq!(pages(&format!("a{others}b")), pages("ab"));
    assert_eq!(pages(&format!("a{spaces}b")), pages("a b"));
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
