use proptest::prelude::*;

use super::*;

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn filing(accession: &str, form: &str, filed: &str) -> Filing {
    Filing {
        accession: AccessionNumber::parse(accession).unwrap(),
        form: form.to_owned(),
        filed: day(filed),
        report_date: None,
        items: Vec::new(),
        primary_document: None,
    }
}

const DOCUMENT: &str = r#"{
    "cik": "0000320193", "name": "Apple Inc.", "sicDescription": "Electronic Computers",
    "tickers": ["AAPL"], "fiscalYearEnd": "0926", "phone": "(408) 996-1010",
    "formerNames": [{"name": "APPLE COMPUTER INC", "from": "1994-01-26T05:00:00.000Z"}, {"name": null}],
    "filings": {"recent": {
        "accessionNumber": ["0000320193-25-000079", "0000320193-26-000005", "broken", "0000320193-26-000006"],
        "filingDate": ["2025-10-31", "2026-01-29", "2026-01-01", "2026-01-30"],
        "reportDate": ["2025-09-27", "2026-01-29", "2026-01-01", ""],
        "form": ["10-K", "8-K", "10-Q", "10-Q"],
        "items": ["", "2.02,9.01", "", ""],
        "primaryDocument": ["aapl-20250927.htm", "../../passwd", "x.htm"]
    }, "files": [{"name": "CIK0000320193-submissions-001.json"}]}
}"#;

#[test]
fn filings_are_parsed_newest_first_without_unreadable_rows() {
    assert_eq!(
        FilerSubmissions::parse(DOCUMENT.as_bytes()).unwrap(),
        FilerSubmissions {
            cik: Cik::new(320_193).unwrap(),
            name: "Apple Inc.".to_owned(),
            industry: Some("Electronic Computers".to_owned()),
            fiscal_year_end: Some("09-26".to_owned()),
            former_names: vec!["APPLE COMPUTER INC".to_owned()],
            filings: vec![
                filing("0000320193-26-000006", "10-Q", "2026-01-30"),
                Filing {
                    report_date: Some(day("2026-01-29")),
                    items: ItemCode::list("2.02,9.01"),
                    ..filing("0000320193-26-000005", "8-K", "2026-01-29")
                },
                Filing {
                    report_date: Some(day("2025-09-27")),
                    primary_document: Some("aapl-20250927.htm".to_owned()),
                    ..filing("0000320193-25-000079", "10-K", "2025-10-31")
                },
            ],
            has_older: true,
        }
    );
}

#[test]
fn a_filer_may_have_a_numeric_cik_and_few_fields() {
    let document = r#"{"cik": 7, "fiscalYearEnd": "1340", "filings": {"recent": {"accessionNumber": [], "filingDate": [], "form": []}}}"#;
    assert_eq!(
        FilerSubmissions::parse(document.as_bytes()).unwrap(),
        FilerSubmissions {
            cik: Cik::new(7).unwrap(),
            name: String::new(),
            industry: None,
            fiscal_year_end: None,
            former_names: Vec::new(),
            filings: Vec::new(),
            has_older: false,
        }
    );
}

#[test]
fn filing_columns_are_truncated_to_the_shortest_required_one() {
    let document = r#"{"cik": 7, "filings": {"recent": {
        "accessionNumber": ["0000000007-26-000001", "0000000007-26-000002", "0000000007-26-000003"],
        "filingDate": ["2026-01-01", "2026-01-02"],
        "form": ["10-K", "10-Q", "8-K", "8-K"]}}}"#;
    assert_eq!(
        FilerSubmissions::parse(document.as_bytes()).unwrap().filings,
        [
            filing("0000000007-26-000002", "10-Q", "2026-01-02"),
            filing("0000000007-26-000001", "10-K", "2026-01-01"),
        ]
    );
}

#[test]
fn filings_after_the_requested_day_are_excluded() {
    let submissions = FilerSubmissions::parse(DOCUMENT.as_bytes()).unwrap();
    let forms = |as_of: &str| -> Vec<&str> {
        submissions.until(day(as_of)).map(|filing| filing.form.as_str()).collect()
    };
    assert_eq!(forms("2026-01-29"), ["8-K", "10-K"]);
    assert_eq!(forms("2025-10-30"), [""; 0]);
    let annual = submissions.newest_annual(day("2026-06-01")).unwrap();
    assert_eq!(annual.filed, day("2025-10-31"));
    assert_eq!(submissions.newest_annual(day("2025-10-30")), None);
    assert_eq!(submissions.newest_numbers(), Some(day("2026-01-30")));
}

#[test]
fn registrant_is_stale_after_eighteen_months_without_an_annual_report() {
    let filed = Some(day("2025-01-01"));
    assert!(!is_stale(filed, day("2026-07-03")));
    assert!(is_stale(filed, day("2026-07-04")));
    assert!(is_stale(None, day("2026-07-04")));
}

#[test]
fn annual_reports_are_recognised_by_their_form() {
    for form in ["10-K", "10-K/A", "10-KT", "20-F", "20-F/A", "40-F"] {
        assert!(is_annual(form), "{form}");
    }
    for form in ["10-Q", "8-K", "6-K", "NT 10-K", "10-K/A/A", ""] {
        assert!(!is_annual(form), "{form}");
    }
}

#[test]
fn a_file_name_with_special_characters_is_not_plain() {
    for name in ["aapl-20250927.htm", "d123_10k.htm", "0001.txt"] {
        assert!(is_plain_file_name(name), "{name}");
    }
    for name in ["", "..", ".htaccess", "a/b.xml", "a b.htm", "a%2f.htm", "a?b", "ä.htm", "-a"] {
        assert!(!is_plain_file_name(name), "{name}");
    }
}

#[test]
fn an_invalid_list_of_filings_is_refused() {
    for document in ["", "{}", "[]", r#"{"cik": 0, "filings": {}}"#, r#"{"cik": 1}"#] {
        let refused = FilerSubmissions::parse(document.as_bytes());
        assert!(matches!(refused, Err(EvidenceError::Json { .. })), "{document}: {refused:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = FilerSubmissions::parse(&bytes);
    }

    #[test]
    fn a_filing_list_with_a_changed_byte_never_panics(at in 0..DOCUMENT.len(), byte in any::<u8>()) {
        let mut bytes = DOCUMENT.as_bytes().to_vec();
        bytes[at] = byte;
        if let Ok(read) = FilerSubmissions::parse(&bytes) {
            prop_assert!(read.filings.len() <= 4);
            prop_assert!(read.filings.is_sorted_by_key(|filing| std::cmp::Reverse(filing.filed)));
        }
    }
}
