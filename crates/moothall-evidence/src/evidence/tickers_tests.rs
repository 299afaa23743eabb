use proptest::prelude::*;

use super::*;

fn ticker(text: &str) -> Ticker {
    Ticker::parse(text).unwrap()
}

fn row(symbol: &str, cik: u64, title: &str) -> TickerListing {
    TickerListing { ticker: ticker(symbol), cik: Cik::new(cik).unwrap(), title: title.to_owned() }
}

#[track_caller]
fn check(document: &str, symbol: &str, expected: Result<TickerListing, TickerLookupError>) {
    let table = TickerTable::parse(document.as_bytes()).unwrap();
    assert_eq!(table.find(&ticker(symbol)).cloned(), expected);
}

const ROWS: &str = r#"{
    "0": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple Inc."},
    "1": {"cik_str": "0001067983", "ticker": "BRK-B", "title": "BERKSHIRE\u001b[2J HATHAWAY INC"},
    "2": {"cik_str": 1, "ticker": "TWO", "title": "First"},
    "3": {"cik_str": 2, "ticker": "TWO", "title": "Second"},
    "4": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple Inc."},
    "5": {"cik_str": 3, "ticker": null, "title": "No symbol"},
    "6": {"cik_str": 0, "ticker": "ZERO", "title": "No filer"},
    "7": {"cik_str": 4, "ticker": "../../etc", "title": "No symbol either"}
}"#;

#[test]
fn symbol_is_found_in_any_case_and_with_a_dot_for_a_dash() {
    check(ROWS, "aapl", Ok(row("AAPL", 320_193, "Apple Inc.")));
    check(ROWS, " brk.b ", Ok(row("BRK-B", 1_067_983, "BERKSHIRE[2J HATHAWAY INC")));
}

#[test]
fn symbol_of_two_filers_is_refused_with_both() {
    let both = vec![row("TWO", 1, "First"), row("TWO", 2, "Second")];
    check(ROWS, "TWO", Err(TickerLookupError::Ambiguous(both)));
}

#[test]
fn an_unlisted_symbol_is_unknown() {
    check(ROWS, "AAPLE", Err(TickerLookupError::Unknown));
    check(ROWS, "ZERO", Err(TickerLookupError::Unknown));
}

#[test]
fn table_with_exchanges_is_read_by_the_names_of_its_fields() {
    let document = r#"{"fields": ["name", "cik", "exchange", "ticker"], "data": [
        ["Snowflake Inc.", 1640147, "NYSE", "SNOW"], ["short"], ["No symbol", 5, null, null]]}"#;
    check(document, "SNOW", Ok(row("SNOW", 1_640_147, "Snowflake Inc.")));
    let table = TickerTable::parse(document.as_bytes()).unwrap();
    assert_eq!(table.listings().count(), 1);
}

#[test]
fn document_without_a_readable_row_is_refused() {
    for document in ["{}", r#"{"0": 1}"#, r#"{"fields": ["a"], "data": []}"#] {
        let refused = TickerTable::parse(document.as_bytes());
        assert!(matches!(refused, Err(EvidenceError::Invalid { .. })), "{document}: {refused:?}");
    }
    for document in ["", "[]", "<html>Your Request Originates from an Undeclared Tool</html>"] {
        let refused = TickerTable::parse(document.as_bytes());
        assert!(matches!(refused, Err(EvidenceError::Json { .. })), "{document}: {refused:?}");
    }
}

#[test]
fn text_that_could_escape_a_directory_is_not_a_ticker() {
    for text in ["", "..", ".A", "-A", "A/B", "A B", "ABCDEFGHIJK", "Ä", "A\0", "A\n1"] {
        assert_eq!(Ticker::parse(text), Err(InvalidTicker(cleaned(text, 40))), "{text:?}");
    }
}

#[test]
fn a_ticker_keeps_its_serialized_form() {
    assert_eq!(serde_json::to_string(&ticker("brk.b")).unwrap(), r#""BRK.B""#);
    assert_eq!(serde_json::from_str::<Ticker>(r#""BRK.B""#).unwrap(), ticker("BRK.B"));
    assert!(serde_json::from_str::<Ticker>(r#""brk.b""#).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = TickerTable::parse(&bytes);
    }

    #[test]
    fn a_parsed_ticker_is_safe_in_a_path(text in any::<String>()) {
        if let Ok(ticker) = Ticker::parse(&text) {
            prop_assert!(ticker.as_str().len() <= 10);
            prop_assert!(!ticker.as_str().contains(['/', '\\', '\0']));
            prop_assert!(!ticker.as_str().starts_with('.'));
        }
    }
}
