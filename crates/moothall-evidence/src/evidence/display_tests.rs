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
fn all_amounts_of_a_table_have_the_same_unit() {
    let table = |sheet: &FactSheet, ids: &[&str]| -> Vec<String> {
        let ids: Vec<FactId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        let scale = sheet.amount_scale(&ids);
        ids.iter().map(|id| sheet.display_value_in(id, scale).unwrap()).collect()
    };
    let ids = ["Revenue:FY2025", "Capex:FY2025", "OperatingMargin:FY2025"];
    assert_eq!(table(&APPLE.sheet, &ids), ["$416,161 million", "$12,715 million", "32.0%"]);
    let ids = ["Revenue:FY2024", "NetIncome:FY2024"];
    assert_eq!(table(&LOGISTIC_PROPERTIES.sheet, &ids), ["$43,862 thousand", "-$29,285 thousand"]);

    let amounts = [1_214_871_000, -335_312_000, 0].map(Decimal::from);
    let scale = AmountScale::of(&amounts);
    assert_eq!(
        amounts.map(|amount| scale.text(amount)),
        ["1,214.9 million", "-335.3 million", "0.0 million"]
    );
    // An amount that would be lost in millions.
    let amounts = [1_214_871_000, 52_000].map(Decimal::from);
    let scale = AmountScale::of(&amounts);
    assert_eq!(amounts.map(|amount| scale.text(amount)), ["1,214,871.0 thousand", "52.0 thousand"]);
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
