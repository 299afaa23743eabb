use super::*;
use crate::evidence::test_data::{APPLE, JPMORGAN, LOGISTIC_PROPERTIES, SNOWFLAKE};

#[track_caller]
fn check(sheet: &FactSheet, id: &str, expected: Option<&str>) {
    assert_eq!(sheet.words(&id.parse().unwrap()).as_deref(), expected);
}

#[test]
fn values_are_written_as_people_write_them() {
    check(&APPLE.sheet, "Revenue:FY2025", Some("$416,161 million"));
    check(&APPLE.sheet, "OperatingMargin:FY2025", Some("32.0%"));
    check(&APPLE.sheet, "GrossMargin.delta:FY2025", Some("0.7 percentage points"));
    check(&APPLE.sheet, "EPSDiluted:FY2025", Some("$7.46 per share"));
    check(&APPLE.sheet, "SharesDiluted:FY2025", Some("15,005 million shares"));
    check(&APPLE.sheet, "CurrentRatio:FY2025", Some("0.89x"));
    check(&APPLE.sheet, "DSO:FY2025", Some("34.9 days"));
    check(&SNOWFLAKE.sheet, "NetIncome:FY2025", Some("-$1,286 million"));
    check(&LOGISTIC_PROPERTIES.sheet, "Revenue:FY2024", Some("$43,862 thousand"));
    check(&APPLE.sheet, "Revenue:FY2030", None);
}

#[test]
fn other_currencies_are_named() {
    let sheet = FactSheet { currency: "EUR".to_owned(), ..JPMORGAN.sheet.clone() };
    check(&sheet, "Revenue:FY2025", Some("EUR 182,447 million"));
}

#[test]
fn what_no_filing_has_is_listed_in_a_line() {
    assert_eq!(
        APPLE.sheet.gap_words().unwrap(),
        "not filed under an equivalent tag: SellingMarketing FY2021, FY2022; GeneralAdmin \
         FY2021, FY2022; Acquisitions FY2023, FY2024, FY2025; InterestExpense FY2024, FY2025"
    );
    let sheet = FactSheet { gaps: Vec::new(), ..APPLE.sheet.clone() };
    assert_eq!(sheet.gap_words(), None);
}
