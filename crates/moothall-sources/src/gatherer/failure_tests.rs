use moothall_core::consult::GatherFailure;
use moothall_core::evidence::Cik;

use super::*;

fn listing(ticker: &str, cik: u64, title: &str) -> TickerListing {
    let cik = Cik::new(cik).unwrap();
    TickerListing { ticker: Ticker::parse(ticker).unwrap(), cik, title: title.to_owned() }
}

#[track_caller]
fn check(typed: &str, expected: &[&str]) {
    let known = [
        listing("AAPL", 1, "Apple Inc."),
        listing("AAP", 2, "ADVANCE AUTO PARTS INC"),
        listing("BRK-A", 3, "BERKSHIRE HATHAWAY INC"),
        listing("BRK-B", 3, "BERKSHIRE HATHAWAY INC"),
        listing("MSFT", 4, "MICROSOFT CORP"),
    ];
    let near = suggestions(&Ticker::parse(typed).unwrap(), &known);
    let symbols: Vec<&str> = near.iter().map(|one| one.ticker.as_str()).collect();
    assert_eq!(symbols, expected);
}

#[test]
fn similar_symbols_are_suggested_nearest_first() {
    check("APPL", &["AAPL"]);
    check("AAPLE", &["AAPL", "AAP"]);
    check("MSTF", &["MSFT"]);
    check("QQQQQ", &[]);
}

#[test]
fn a_typed_company_name_suggests_only_its_own_symbol() {
    check("APPLE", &["AAPL"]);
    check("MICROSOFT", &["MSFT"]);
    check("BERKSHIRE", &["BRK-A"]);
}

#[test]
fn a_journaled_gather_failure_keeps_its_kind_message_and_hint() {
    let error = unavailable("the facts", &EdgarError::RateLimited);
    assert!(error.is_retryable && error.hint.is_some());
    assert_eq!(
        GatherFailure::from(error),
        GatherFailure {
            kind: GatherFailureKind::Unavailable,
            detail: "cannot fetch the facts: the server's rate limit was exceeded; wait ten minutes without sending requests, then try again".to_owned(),
        }
    );
}

#[test]
fn a_too_large_document_names_the_limit_and_the_settings() {
    let error = unavailable("the facts", &EdgarError::TooLarge);
    assert!(!error.is_retryable);
    assert_eq!(
        GatherFailure::from(error),
        GatherFailure {
            kind: GatherFailureKind::Unreadable,
            detail: "cannot fetch the facts: document exceeds the limit of 64 MiB; check `evidence.data_url` and `evidence.www_url`; the size limit cannot be changed".to_owned(),
        }
    );
}
