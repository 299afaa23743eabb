use super::*;
use crate::evidence::test_data::{APPLE, NVIDIA};

#[track_caller]
fn row(sheet: &FactSheet, id: &str) -> FactRow {
    sheet.rows().into_iter().find(|row| row.id == id).unwrap()
}

#[test]
fn a_filed_fact_links_to_its_filing() {
    assert_eq!(
        row(&APPLE.sheet, "CurrentLiabilities:FY2018").cells(),
        [
            "CurrentLiabilities:FY2018",
            "CurrentLiabilities",
            "FY2018",
            "115929000000",
            "USD",
            "filed",
            "us-gaap:LiabilitiesCurrent",
            "",
            "",
            "0000320193-19-000119",
            "10-K",
            "2019-10-31",
            "",
            "2018-09-29",
            "116866000000 filed 2018-11-05",
            "https://www.sec.gov/Archives/edgar/data/320193/000032019319000119/0000320193-19-000119-index.htm",
        ]
    );
}

#[test]
fn a_derived_fact_names_its_inputs() {
    let row = row(&APPLE.sheet, "Revenue.yoy:FY2025");
    assert_eq!(row.source, "derived");
    assert_eq!(row.formula, "(Revenue - Revenue a year before) / Revenue a year before");
    assert_eq!(row.inputs, ["Revenue:FY2025", "Revenue:FY2024"]);
    assert_eq!(row.unit, "ratio");
    assert_eq!(row.link, "");
}

#[test]
fn a_split_adjusted_fact_shows_the_filed_value() {
    let row = row(&NVIDIA.sheet, "EPSDiluted:FY2022");
    assert_eq!(row.value, "0.385");
    assert_eq!(row.unit, "USD/share");
    assert_eq!(row.formula, "3.85 as filed, 10:1 split since");
}

#[test]
fn fact_rows_start_with_the_most_important_metrics() {
    let rows = APPLE.sheet.rows();
    assert_eq!(rows.len(), APPLE.sheet.facts.len());
    let first: Vec<&str> = rows.iter().take(2).map(|row| row.id.as_str()).collect();
    assert_eq!(first, ["Revenue:FY2017", "Revenue:FY2018"]);
    assert_eq!(FactRow::HEADINGS.len(), rows[0].cells().len());
    let json = serde_json::to_value(&rows[0]).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, FactRow::HEADINGS);
}
