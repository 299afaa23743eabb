use super::*;

#[track_caller]
fn check(text: &str, expected: Option<Period>) {
    assert_eq!(Period::parse(text), expected, "{text}");
}

#[test]
fn periods_are_read_as_people_write_them() {
    check("FY2025", Some(Period::Year(2025)));
    check("fy 2025", Some(Period::Year(2025)));
    check("FY26", Some(Period::Year(2026)));
    check("FY2026Q1", Some(Period::Quarter(2026, 1)));
    check("Q1 FY2026", Some(Period::Quarter(2026, 1)));
    check("Q4-FY26", Some(Period::Quarter(2026, 4)));
    check("FY2026Q3YTD", Some(Period::YearToDate(2026, 3)));
    check("FY2026_Q1_TTM", Some(Period::TrailingYear(2026, 1)));
    check("Q1FY2026TTM", Some(Period::TrailingYear(2026, 1)));
}

#[test]
fn a_period_that_would_be_a_guess_is_refused() {
    for text in [
        "2026Q1",
        "2025",
        "Q1 2026",
        "FY2026Q5",
        "FY2026Q0",
        "FY2026Q",
        "FY",
        "FY202",
        "FY20255",
        "FY2025YTD",
        "FY2025TTM",
        "FY+025",
        "TTM",
        "",
        "FY2025FY2025",
        "FY２０２５",
    ] {
        check(text, None);
    }
    check(&"FY2025".repeat(100), None);
}

#[test]
fn files_have_one_spelling_of_a_period() {
    for (period, written) in [
        (Period::Year(2025), "\"FY2025\""),
        (Period::Quarter(2026, 1), "\"FY2026Q1\""),
        (Period::YearToDate(2026, 3), "\"FY2026Q3YTD\""),
        (Period::TrailingYear(2026, 1), "\"FY2026Q1TTM\""),
    ] {
        assert_eq!(serde_json::to_string(&period).unwrap(), written);
        assert_eq!(serde_json::from_str::<Period>(written).unwrap(), period);
    }
    assert!(serde_json::from_str::<Period>("\"fy2025\"").is_err());
    assert!(serde_json::from_str::<Period>("\"Q1FY2026\"").is_err());
}

#[test]
fn a_balance_sheet_closes_the_quarter_of_a_sum() {
    assert_eq!(Period::TrailingYear(2026, 1).closing(), Period::Quarter(2026, 1));
    assert_eq!(Period::YearToDate(2026, 3).closing(), Period::Quarter(2026, 3));
    assert_eq!(Period::Year(2025).closing(), Period::Year(2025));
}

#[test]
fn a_year_before_is_the_same_kind_of_period() {
    assert_eq!(Period::Quarter(2026, 1).year_before(), Period::Quarter(2025, 1));
    assert_eq!(Period::Year(2025).years_before(5), Period::Year(2020));
}
