use super::*;
use crate::evidence::test_data::{APPLE, JPMORGAN, LOGISTIC_PROPERTIES, SNOWFLAKE};

#[track_caller]
fn check(sheet: &FactSheet, id: &str, expected: Option<&str>) {
    assert_eq!(sheet.display_value(&id.parse().unwrap()).as_deref(), expected);
}

#[test]
fn fact_values_are_displayed_with_their_usual_units() {
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
fn currencies_other_than_the_dollar_are_named() {
    let sheet = FactSheet { currency: "EUR".to_owned(), ..JPMORGAN.sheet.clone() };
    check(&sheet, "Revenue:FY2025", Some("EUR 182,447 million"));
}

#[test]
fn metrics_missing_from_the_filings_are_listed_in_one_line() {
    assert_eq!(
        APPLE.sheet.missing_values().unwrap(),
        "not filed under an equivalent tag: SellingMarketing FY2021, FY2022; GeneralAdmin \
         FY2021, FY2022; Acquisitions FY2023, FY2024, FY2025; InterestExpense FY2024, FY2025"
    );
    let sheet = FactSheet { gaps: Vec::new(), ..APPLE.sheet.clone() };
    assert_eq!(sheet.missing_values(), None);
}
