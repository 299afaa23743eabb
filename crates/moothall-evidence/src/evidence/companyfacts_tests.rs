use super::*;

const ROW: &str = r#"{"start":"2023-10-01","end":"2024-09-28","val":391035000000,
    "accn":"0000320193-24-000123","fy":2024,"fp":"FY","form":"10-K","filed":"2024-11-01"}"#;

fn document(rows: &str) -> Vec<u8> {
    format!(
        r#"{{"cik":320193,"entityName":"Apple Inc.","facts":{{"us-gaap":{{"Revenues":
        {{"label":"x","description":null,"units":{{"USD":[{rows}]}}}}}}}}}}"#
    )
    .into_bytes()
}

/// Checks the number of readable and unreadable rows.
#[track_caller]
fn check_row(row: &str, expected: (usize, usize)) {
    let facts = CompanyFacts::parse(&document(&format!("{ROW},{row}"))).unwrap();
    let read = facts.concepts["us-gaap:Revenues"]["USD"].len() - 1;
    assert_eq!((read, facts.unreadable_rows()), expected, "{row}");
}

#[test]
fn a_row_keeps_the_digits_that_were_filed() {
    let facts = CompanyFacts::parse(&document(ROW)).unwrap();
    let filing = FactsFiling {
        filed: CalendarDay::parse("2024-11-01").unwrap(),
        accession: "0000320193-24-000123".to_owned(),
        form: ReportForm("10-K"),
        fiscal_year: Some(2024),
    };
    let row = ReportedValue {
        start: CalendarDay::parse("2023-10-01"),
        end: CalendarDay::parse("2024-09-28").unwrap(),
        value: Decimal::from(391_035_000_000_i64),
        filing: 0,
    };
    let units = BTreeMap::from([("USD".to_owned(), vec![row])]);
    assert_eq!(
        facts,
        CompanyFacts {
            cik: Cik::new(320_193).unwrap(),
            entity: "Apple Inc.".to_owned(),
            filings: vec![filing],
            concepts: BTreeMap::from([("us-gaap:Revenues".to_owned(), units)]),
            unreadable_rows: 0,
        }
    );
}

#[test]
fn numbers_are_read_in_every_spelling_of_the_service() {
    for (written, expected) in [
        ("416161000000", "416161000000"),
        ("7.46", "7.46"),
        ("1e-05", "0.00001"),
        ("1E3", "1000"),
        ("-3.80", "-3.8"),
        ("0.0", "0"),
    ] {
        let value = decimal(written).unwrap();
        assert_eq!(value.to_string(), expected);
    }
    for written in ["null", "\"1\"", "true", "[1]", "1e30", "1e-20", "1e400", "1000000000000000001"]
    {
        assert_eq!(decimal(written), None, "{written}");
    }
}

#[test]
fn an_invalid_row_does_not_hide_the_other_rows() {
    check_row(ROW, (1, 0));
    check_row(&ROW.replace("391035000000", "null"), (0, 1));
    check_row(&ROW.replace("2024-09-28", "2024-09-31"), (0, 1));
    check_row(&ROW.replace("2023-10-01", "yesterday"), (0, 1));
    check_row(&ROW.replace("2023-10-01", "2025-10-01"), (0, 1));
    check_row(&ROW.replace("0000320193-24-000123", "../../etc/passwd"), (0, 1));
    check_row(&ROW.replace("2024-11-01", ""), (0, 1));
    check_row(&ROW.replace("2024,", "null,"), (1, 0));
}

#[test]
fn only_periodic_reports_count() {
    for (form, read) in [
        ("10-K", 1),
        ("10-K/A", 1),
        ("10-Q", 1),
        ("20-F", 1),
        ("40-F", 1),
        ("6-K", 1),
        ("DEF 14A", 0),
        ("8-K", 0),
        ("10-KSB", 0),
    ] {
        check_row(&ROW.replace("10-K", form), (read, 0));
    }
}

#[test]
fn line_breaks_in_a_company_name_are_removed() {
    let bytes = document(ROW);
    let text = String::from_utf8(bytes).unwrap().replace("Apple Inc.", "Apple\\n\\u202eInc.");
    let facts = CompanyFacts::parse(text.as_bytes()).unwrap();
    assert_eq!(facts.entity(), "Apple Inc.");
}

#[test]
fn an_invalid_company_facts_document_is_an_error() {
    for text in ["", "{}", "[]", "{\"cik\":1,\"entityName\":\"x\"}", "<html>"] {
        let error = CompanyFacts::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "cannot parse the company facts document");
    }
    let error = CompanyFacts::parse(&vec![b' '; MAX_BYTES + 1]).unwrap_err();
    assert!(matches!(error, EvidenceError::TooLarge { .. }));
}
