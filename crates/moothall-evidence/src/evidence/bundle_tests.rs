use super::super::day::CalendarDay;
use super::super::item_code::ItemCode;
use super::super::test_data::{APPLE, LOGISTIC_PROPERTIES, Sample};
use super::*;

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn company() -> CompanyProfile {
    CompanyProfile {
        name: "Helix Instruments, Inc. (fictional)".to_owned(),
        ticker: Some(Ticker::parse("HLXI").unwrap()),
        cik: Cik::new(9_990_001),
        industry: None,
        fiscal_year_end: Some("12-31".to_owned()),
        former_names: Vec::new(),
        fictional: true,
    }
}

fn evidence(sample: &Sample, as_of: &str, results_filed: &str) -> Evidence {
    Evidence {
        company: company(),
        provenance: Provenance::Filings,
        sheet: Some(FactSheet { as_of: day(as_of), ..sample.sheet.clone() }),
        events: vec![FilingEvent {
            accession: "0000320193-26-000005".to_owned(),
            form: "8-K".to_owned(),
            filed: day(results_filed),
            report_date: None,
            items: ItemCode::list("2.02,9.01"),
        }],
        passages: Vec::new(),
        documents: Vec::new(),
        headlines: Vec::new(),
        missing: Vec::new(),
        sources: Vec::new(),
    }
}

#[track_caller]
fn check(as_of: &str, results_filed: &str, expected: &[&str]) {
    assert_eq!(evidence(&APPLE, as_of, results_filed).warnings(), expected);
}

#[test]
fn fresh_evidence_needs_no_warning() {
    check("2026-03-05", "2026-01-29", &[]);
    check("2026-05-10", "2026-01-30", &[]);
}

#[test]
fn an_old_report_or_unfiled_results_cause_a_warning() {
    check(
        "2026-05-11",
        "2026-04-30",
        &[
            "the newest report used is 101 days old: 10-Q of 2026-01-30",
            "an 8-K of 2026-04-30 announces results that are not in these facts",
        ],
    );
}

#[test]
fn evidence_without_a_fact_sheet_has_no_age_warning() {
    let none = Evidence { sheet: None, ..evidence(&APPLE, "2030-01-01", "2029-01-01") };
    assert_eq!((none.warnings(), none.newest_filing()), (Vec::new(), None));
}

#[test]
fn the_newest_filing_is_dated_by_the_end_of_its_period() {
    let found = newest_filing(&LOGISTIC_PROPERTIES.sheet).unwrap();
    assert_eq!((found.form.as_str(), found.end), ("20-F", day("2024-12-31")));
    let annual = newest_annual(&APPLE.sheet).unwrap();
    assert_eq!((annual.form.as_str(), annual.filed), ("10-K", day("2025-10-31")));
}

#[test]
fn company_and_provenance_keep_their_serialized_form() {
    let written = r#"{"name":"Helix Instruments, Inc. (fictional)","ticker":"HLXI","cik":"0009990001","fiscal_year_end":"12-31","fictional":true}"#;
    assert_eq!(serde_json::to_string(&company()).unwrap(), written);
    assert_eq!(serde_json::from_str::<CompanyProfile>(written).unwrap(), company());
    let provenances = [
        (Provenance::Filings, r#"{"from":"filings"}"#),
        (Provenance::Recorded { name: "x".to_owned() }, r#"{"from":"recorded","name":"x"}"#),
        (Provenance::Synthetic, r#"{"from":"synthetic"}"#),
    ];
    for (provenance, written) in provenances {
        assert_eq!(serde_json::to_string(&provenance).unwrap(), written);
        assert_eq!(serde_json::from_str::<Provenance>(written).unwrap(), provenance);
    }
}

#[test]
fn evidence_round_trips_through_json() {
    let evidence = evidence(&APPLE, "2026-03-05", "2026-01-29");
    let written = serde_json::to_string(&evidence).unwrap();
    assert_eq!(serde_json::from_str::<Evidence>(&written).unwrap(), evidence);
}
