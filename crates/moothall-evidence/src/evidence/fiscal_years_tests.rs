use super::*;

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

/// Years of 52 and 53 weeks that end on the last Saturday of September.
fn september() -> FiscalYears {
    FiscalYears::new(BTreeMap::from([
        (2022, day("2022-09-24")),
        (2023, day("2023-09-30")),
        (2024, day("2024-09-28")),
    ]))
}

#[track_caller]
fn check(start: Option<&str>, end: &str, expected: Option<FiscalPeriod>) {
    assert_eq!(september().label(start.map(day), day(end)), expected, "{start:?} {end}");
}

#[test]
fn spans_are_labelled_by_their_own_dates() {
    check(Some("2022-09-25"), "2023-09-30", Some(FiscalPeriod::Year(2023)));
    check(Some("2022-09-25"), "2022-12-31", Some(FiscalPeriod::Quarter(2023, 1)));
    check(Some("2023-01-01"), "2023-04-01", Some(FiscalPeriod::Quarter(2023, 2)));
    check(Some("2022-09-25"), "2023-04-01", Some(FiscalPeriod::YearToDate(2023, 2)));
    check(Some("2022-09-25"), "2023-07-01", Some(FiscalPeriod::YearToDate(2023, 3)));
    check(Some("2023-07-02"), "2023-09-30", Some(FiscalPeriod::Quarter(2023, 4)));
}

#[test]
fn the_current_fiscal_year_has_quarters_but_no_full_year() {
    check(Some("2024-09-29"), "2024-12-28", Some(FiscalPeriod::Quarter(2025, 1)));
    check(Some("2024-09-29"), "2025-03-29", Some(FiscalPeriod::YearToDate(2025, 2)));
    check(Some("2024-09-29"), "2025-09-27", None);
    check(None, "2025-09-27", None);
    check(Some("2025-09-28"), "2025-12-27", None);
}

#[test]
fn balances_are_labelled_by_the_period_they_close() {
    check(None, "2023-09-30", Some(FiscalPeriod::Year(2023)));
    check(None, "2023-07-01", Some(FiscalPeriod::Quarter(2023, 3)));
    check(None, "2023-06-15", Some(FiscalPeriod::Quarter(2023, 3)));
    check(None, "2023-05-15", None);
    check(None, "2019-12-31", None);
}

#[test]
fn twelve_months_to_the_end_of_a_quarter_are_not_a_fiscal_year() {
    // Twelve months to the end of a quarter, as some filers tag average share counts.
    check(Some("2022-04-03"), "2023-04-01", None);
    // A half-year that does not start with the fiscal year.
    check(Some("2023-01-01"), "2023-07-01", None);
}

#[test]
fn twelve_week_quarters_are_recognised() {
    let years =
        FiscalYears::new(BTreeMap::from([(2023, day("2023-08-26")), (2024, day("2024-08-31"))]));
    let label = |start, end| years.label(Some(day(start)), day(end));
    assert_eq!(label("2023-08-27", "2023-11-18"), Some(FiscalPeriod::Quarter(2024, 1)));
    assert_eq!(label("2023-11-19", "2024-02-10"), Some(FiscalPeriod::Quarter(2024, 2)));
    assert_eq!(label("2024-02-11", "2024-05-04"), Some(FiscalPeriod::Quarter(2024, 3)));
    assert_eq!(label("2024-05-05", "2024-08-31"), Some(FiscalPeriod::Quarter(2024, 4)));
}

#[test]
fn a_year_that_ends_in_the_first_days_of_january_belongs_to_the_year_before() {
    // Two years of 52 weeks can end in one calendar year; each must keep its label.
    assert_eq!(label_year(day("2017-01-01")), 2016);
    assert_eq!(label_year(day("2017-12-31")), 2017);
    assert_eq!(label_year(day("2026-01-25")), 2026);
}

#[test]
fn the_most_common_fiscal_year_offset_is_used() {
    let closed = [
        (day("2023-01-31"), Some(2022)),
        (day("2024-01-31"), Some(2023)),
        (day("2025-01-31"), Some(2025)),
        (day("2026-01-31"), None),
        (day("2022-01-31"), Some(i32::MIN)),
    ];
    assert_eq!(usual_offset(closed.iter()), -1);
    assert_eq!(usual_offset([].iter()), 0);
}
