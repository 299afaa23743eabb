//! Tests of the library and of the program that `moothall` starts.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use moothall_core::report::document::{
    DocumentBlock, DocumentField, DocumentTable, FilingLink, ReportDocument, TableColumn, TextSpan,
};
use moothall_core::text;
use moothall_pdf::{MAX_BYTES, PdfError, PdfFile, PdfPaperSize, typeset};

/// Text that would have an effect if it were parsed as markup.
const HOSTILE: &str = "#panic(\"read\") $x^2$ *bold* _emph_ `raw` @label <label> = head #import \"/etc/passwd\" \
    \\u{202e} // comment /* open [ ] { } ~ -- --- ... https://example.org";

fn document(words: &str) -> ReportDocument {
    let link = FilingLink::new("https://www.sec.gov/Archives/edgar/data/1/2/3-index.htm");
    let cell = |text: &str| vec![TextSpan::text(text)];
    let mut blocks = vec![
        DocumentBlock::heading(1, words),
        DocumentBlock::notice(words),
        DocumentBlock::Paragraph {
            words: vec![
                TextSpan::strong(words),
                TextSpan::Cite { id: "F0:Revenue:FY2025".to_owned(), url: link, listed: true },
                TextSpan::Cite { id: "F0:Cash:FY2025".to_owned(), url: None, listed: true },
                TextSpan::Cite { id: words.to_owned(), url: None, listed: false },
                TextSpan::Mark { number: 1 },
            ],
        },
        DocumentBlock::List { numbered: true, items: vec![cell(words)] },
        DocumentBlock::List { numbered: false, items: vec![cell(words), Vec::new()] },
        DocumentBlock::Fields { rows: vec![DocumentField::new(words, words)] },
        DocumentBlock::chapter(1, "A table"),
    ];
    let columns =
        vec![TableColumn::wide(words), TableColumn::numbers("n"), TableColumn::words("chart")];
    let row = |id: String| {
        vec![
            vec![TextSpan::Source { id }, TextSpan::text(words)],
            vec![TextSpan::Dots { values: vec![1, 5, 10], top: 10 }],
            vec![TextSpan::Bar { value: 80, top: 120 }],
        ]
    };
    let mut rows = vec![row("F0:Cash:FY2025".to_owned())];
    rows.extend((0..30).map(|number| row(format!("F0:Cash:FY{number}"))));
    blocks.push(DocumentBlock::Table(DocumentTable { columns, rows, has_total: true }));
    blocks.push(DocumentBlock::Fine { words: cell(words) });
    ReportDocument {
        title: words.to_owned(),
        subtitle: words.to_owned(),
        running_head: words.to_owned(),
        watermark: Some("FICTIONAL COMPANY".to_owned()),
        running_foot: words.to_owned(),
        blocks,
    }
}

fn pdf(document: &ReportDocument, paper: PdfPaperSize) -> Result<PdfFile, PdfError> {
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
    // The program may exit before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

#[test]
fn the_pdf_program_writes_the_output_of_the_library() {
    let document = document("plain");
    let made = program(&["a4"], &serde_json::to_vec(&document).unwrap());
    assert!(made.status.success(), "{made:?}");
    assert_eq!(made.stdout, pdf(&document, PdfPaperSize::A4).unwrap().bytes);
}

#[test]
fn the_pdf_program_refuses_invalid_documents() {
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
fn report_text_is_typeset_and_never_interpreted_as_markup() {
    for paper in [PdfPaperSize::A4, PdfPaperSize::Letter] {
        let made = pdf(&document(HOSTILE), paper).unwrap();
        assert!(made.bytes.starts_with(b"%PDF-"), "it is no PDF");
        // The same text without possible markup characters takes as many pages.
        let plain = HOSTILE.replace(|sign: char| !sign.is_ascii_alphanumeric() && sign != ' ', "x");
        assert_eq!(made.pages, pdf(&document(&plain), paper).unwrap().pages);
    }
}

#[test]
fn hidden_characters_are_removed_from_pdf_pages() {
    let pages = |words: &str| {
        let document = ReportDocument {
            blocks: vec![
                DocumentBlock::heading(1, words),
                DocumentBlock::notice(words),
                DocumentBlock::Paragraph {
                    words: vec![TextSpan::text(words), TextSpan::strong(words)],
                },
                DocumentBlock::Fields { rows: vec![DocumentField::new(words, words)] },
                DocumentBlock::Table(DocumentTable {
                    columns: vec![TableColumn::words(words)],
                    rows: vec![vec![vec![TextSpan::text(words)]]],
                    has_total: false,
                }),
            ],
            ..document("plain")
        };
        pdf(&document, PdfPaperSize::A4).unwrap().bytes
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
    let (one, other) =
        (pdf(&plain, PdfPaperSize::A4).unwrap(), pdf(&plain, PdfPaperSize::A4).unwrap());
    assert_eq!(one, other);
}

#[test]
fn an_empty_document_is_a_page() {
    let mut empty = document("");
    empty.blocks.clear();
    empty.watermark = None;
    assert_eq!(pdf(&empty, PdfPaperSize::Letter).unwrap().pages, 1);
}
