use super::*;

#[track_caller]
fn check(text: &str, expected: Option<FiscalPeriod>) {
    assert_eq!(FiscalPeriod::parse(text), expected, "{text}");
}

#[test]
fn common_spellings_of_a_period_are_parsed() {
    check("FY2025", Some(FiscalPeriod::Year(2025)));
    check("fy 2025", Some(FiscalPeriod::Year(2025)));
    check("FY26", Some(FiscalPeriod::Year(2026)));
    check("FY2026Q1", Some(FiscalPeriod::Quarter(2026, 1)));
    check("Q1 FY2026", Some(FiscalPeriod::Quarter(2026, 1)));
    check("Q4-FY26", Some(FiscalPeriod::Quarter(2026, 4)));
    check("FY2026Q3YTD", Some(FiscalPeriod::YearToDate(2026, 3)));
    check("FY2026_Q1_TTM", Some(FiscalPeriod::TrailingYear(2026, 1)));
    check("Q1FY2026TTM", Some(FiscalPeriod::TrailingYear(2026, 1)));
}

#[test]
fn an_ambiguous_period_is_refused() {
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
fn a_period_keeps_its_serialized_form() {
    for (period, written) in [
        (FiscalPeriod::Year(2025), "\"FY2025\""),
        (FiscalPeriod::Quarter(2026, 1), "\"FY2026Q1\""),
        (FiscalPeriod::YearToDate(2026, 3), "\"FY2026Q3YTD\""),
        (FiscalPeriod::TrailingYear(2026, 1), "\"FY2026Q1TTM\""),
    ] {
        assert_eq!(serde_json::to_string(&period).unwrap(), written);
        assert_eq!(serde_json::from_str::<FiscalPeriod>(written).unwrap(), period);
    }
    assert!(serde_json::from_str::<FiscalPeriod>("\"fy2025\"").is_err());
    assert!(serde_json::from_str::<FiscalPeriod>("\"Q1FY2026\"").is_err());
}

#[test]
fn a_multi_quarter_period_closes_with_its_last_quarter() {
    assert_eq!(FiscalPeriod::TrailingYear(2026, 1).closing(), FiscalPeriod::Quarter(2026, 1));
    assert_eq!(FiscalPeriod::YearToDate(2026, 3).closing(), FiscalPeriod::Quarter(2026, 3));
    assert_eq!(FiscalPeriod::Year(2025).closing(), FiscalPeriod::Year(2025));
}

#[test]
fn a_year_before_is_the_same_kind_of_period() {
    assert_eq!(FiscalPeriod::Quarter(2026, 1).year_before(), FiscalPeriod::Quarter(2025, 1));
    assert_eq!(FiscalPeriod::Year(2025).years_before(5), FiscalPeriod::Year(2020));
}
