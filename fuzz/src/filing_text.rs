//! Any bytes of a filer or of the service are read without a panic, and what comes of them is bounded
//! and fit for a line: the ticker list, the list of filings, the words of an annual report.

use moothall_core::evidence::events::{MAX_EVENTS, events};
use moothall_core::evidence::passages::{MAX_PASSAGE_CHARS, MAX_PASSAGES, passages};
use moothall_core::evidence::submissions::is_plain_file_name;
use moothall_core::evidence::{
    AccessionNumber, CalendarDay, FilerSubmissions, Filing, Ticker, TickerTable,
};

pub fn filing_text(data: &[u8]) {
    check_tickers(data);
    check_filings(data);
    for form in ["10-K", "20-F"] {
        check_words(data, form);
    }
}

fn check_tickers(data: &[u8]) {
    if let Ok(table) = TickerTable::parse(data) {
        for listing in table.listings() {
            assert!(Ticker::parse(listing.ticker.as_str()).is_ok());
            assert_line(&listing.title, 150);
        }
    }
    if let Ok(ticker) = Ticker::parse(&String::from_utf8_lossy(data)) {
        assert!(is_plain_file_name(ticker.as_str()));
    }
}

fn check_filings(data: &[u8]) {
    let Ok(submissions) = FilerSubmissions::parse(data) else { return };
    assert_line(&submissions.name, 150);
    assert!(submissions.filings.is_sorted_by_key(|filing| std::cmp::Reverse(filing.filed)));
    for filing in &submissions.filings {
        assert_line(&filing.form, 20);
        assert!(filing.primary_document.as_deref().is_none_or(is_plain_file_name));
    }
    let found = events(submissions.until(CalendarDay::MAX));
    assert!(found.len() <= MAX_EVENTS);
    for event in found {
        assert_line(&event.subjects(), 10_000);
    }
}

fn check_words(data: &[u8], form: &str) {
    let Some(accession) = AccessionNumber::parse("0000000007-26-000001") else { return };
    let filing = Filing {
        accession,
        form: form.to_owned(),
        filed: CalendarDay::MIN,
        report_date: None,
        items: Vec::new(),
        primary_document: None,
    };
    let Ok(found) = passages(data, &filing) else { return };
    assert!(found.len() <= MAX_PASSAGES);
    for passage in &found {
        assert!(passage.paragraph > 0);
        assert_line(&passage.text, MAX_PASSAGE_CHARS);
    }
    assert_eq!(passages(data, &filing).ok(), Some(found));
}

/// Checks that the text is one line without terminal control characters.
fn assert_line(text: &str, longest: usize) {
    assert!(text.chars().count() <= longest);
    assert!(!text.chars().any(char::is_control));
}
