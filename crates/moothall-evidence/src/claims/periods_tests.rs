use super::{CitationConflict, disagreement, other_date, other_item};
use crate::claims::support_tests::{events, facts, index, sheet};

#[track_caller]
fn check(ids: &[&str], words: &str, expected: Option<(&str, &str)>) {
    let sheet = sheet();
    let index = index(&sheet);
    let found = disagreement(words, &facts(&index, ids), index.sheet().unwrap());
    assert_eq!(found, expected.map(of_words), "{words}");
}

fn of_words((printed, detail): (&str, &str)) -> CitationConflict {
    CitationConflict { printed: printed.to_owned(), detail: detail.to_owned() }
}

#[test]
fn a_year_named_in_a_sentence_must_be_cited() {
    let revenue = &["Revenue:FY2025"];
    check(revenue, "In fiscal 2025 it grew", None);
    check(revenue, "In FY25 it grew", None);
    check(revenue, "In fiscal 2023 it grew", Some(("2023", "the citations are of 2025")));
    check(revenue, "in 2025 it grew", None);
    check(revenue, "in 2024 it grew", Some(("2024", "the citations are of 2025")));
    check(&["Revenue.yoy:FY2025"], "it grew from fiscal 2024", None);
    check(revenue, "in fiscal 2028 it will grow", None);
}

#[test]
fn a_quarter_named_in_a_sentence_must_be_cited() {
    let third = &["Revenue:FY2025Q3"];
    check(third, "In Q3 it grew", None);
    check(third, "In the third fiscal quarter it grew", None);
    check(third, "In the fourth quarter it grew", Some(("Q4", "the citations are of FY2025Q3")));
    check(&["Revenue:FY2025"], "In Q4 it grew", Some(("Q4", "the citations are of FY2025")));
    check(&["Cash:FY2025"], "At the end of Q4 it held", None);
    check(&["Revenue:FY2025"], "launch by Q3 with this revenue", None);
}

#[test]
fn a_cited_quarter_does_not_support_a_sentence_about_the_year() {
    let third = &["Revenue:FY2025Q3"];
    check(third, "In fiscal 2025 it sold", Some(("fiscal 2025", "the citations are of FY2025Q3")));
    check(third, "In the June quarter of fiscal 2025 it sold", None);
}

#[test]
fn a_date_beside_an_event_must_be_one_of_its_days() {
    let events = events();
    let events: Vec<_> = events.iter().collect();
    for words in
        ["On October 30, 2025 it said", "On 29 October 2025 it said", "On 2025-10-30", "It said"]
    {
        assert_eq!(other_date(words, &events), None, "{words}");
    }
    assert_eq!(
        other_date("On October 3, 2025 it said", &events),
        Some(of_words(("October 3, 2025", "the cited event has 2025-10-29, 2025-10-30")))
    );
    assert_eq!(other_date("On October 3, 2025 it said", &[]), None);
}

#[test]
fn an_item_beside_an_event_must_be_one_of_its_items() {
    let events = events();
    let events: Vec<_> = events.iter().collect();
    assert_eq!(other_item("under Item 2.02 it said", &events), None);
    assert_eq!(
        other_item("under Item 5.02 it said", &events),
        Some(of_words(("Item 5.02", "the cited event has items 2.02, 9.01")))
    );
}

#[test]
fn a_balance_of_the_fourth_quarter_is_that_of_the_year() {
    let sheet = sheet();
    let index = index(&sheet);
    let cited = |metric, period| {
        let found = index.sheet().unwrap().cited(metric, period)?;
        Some(found.id.to_string())
    };
    assert_eq!(cited("Cash", "FY2025Q4").as_deref(), Some("Cash:FY2025"));
    assert_eq!(cited("Cash", "FY2025Q3"), None);
    // What a company earns in a quarter is not what it earns in the year.
    assert_eq!(cited("Revenue", "FY2025Q4").as_deref(), Some("Revenue:FY2025Q4"));
    assert_eq!(cited("Capex", "FY2025Q4"), None);
}
