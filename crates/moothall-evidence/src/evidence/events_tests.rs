use super::super::submissions::AccessionNumber;
use super::*;

fn filing(number: u32, form: &str, items: &str) -> Filing {
    Filing {
        accession: AccessionNumber::parse(&format!("0000000007-26-{number:06}")).unwrap(),
        form: form.to_owned(),
        filed: CalendarDay::parse("2026-01-29").unwrap(),
        report_date: None,
        items: ItemCode::list(items),
        primary_document: None,
    }
}

#[track_caller]
fn check(items: &str, expected: &str) {
    assert_eq!(FilingEvent::of(&filing(1, "8-K", items)).unwrap().subjects(), expected);
}

#[test]
fn event_items_are_described_and_exhibits_only_if_nothing_else_is() {
    check("2.02,9.01", "results of operations and financial condition (2.02)");
    check(
        "1.01, 2.03,9.01",
        "entry into a material agreement (1.01); new direct financial obligation (2.03)",
    );
    check("9.01", "financial statements and exhibits (9.01)");
    check("5,7", "item 5; item 7");
    check("", "report without item codes");
    check("drop table,<b>", "report without item codes");
}

#[test]
fn only_current_reports_are_events() {
    let filings = ["8-K", "10-Q", "8-K/A", "6-K", "4", "8-K12B", "DEF 14A"]
        .map(|form| filing(1, form, "8.01"));
    let forms: Vec<String> = events(filings.iter()).into_iter().map(|event| event.form).collect();
    assert_eq!(forms, ["8-K", "8-K/A", "6-K", "8-K12B"]);
}

#[test]
fn only_the_first_events_up_to_the_limit_are_kept() {
    let filings: Vec<Filing> = (0..100).map(|number| filing(number, "8-K", "8.01")).collect();
    let kept = events(filings.iter());
    assert_eq!(kept.len(), MAX_EVENTS);
    assert_eq!(kept[MAX_EVENTS - 1].accession, "0000000007-26-000039");
}

#[test]
fn an_announcement_of_results_is_recognised_by_its_item() {
    let event = |items| FilingEvent::of(&filing(1, "8-K", items)).unwrap();
    assert!(event("7.01,2.02").is_results());
    assert!(!event("7.01").is_results());
}

#[test]
fn a_filing_event_keeps_its_serialized_form() {
    let event = FilingEvent::of(&filing(1, "8-K", "2.02")).unwrap();
    let written = r#"{"accession":"0000000007-26-000001","form":"8-K","filed":"2026-01-29","items":["2.02"]}"#;
    assert_eq!(serde_json::to_string(&event).unwrap(), written);
    assert_eq!(serde_json::from_str::<FilingEvent>(written).unwrap(), event);
}
