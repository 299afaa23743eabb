use proptest::prelude::*;

use super::*;

#[test]
fn days_are_counted_from_1970() {
    assert_eq!(CalendarDay::parse("1970-01-01"), Some(CalendarDay(0)));
    assert_eq!(CalendarDay::parse("2000-03-01"), Some(CalendarDay(11_017)));
    assert_eq!(CalendarDay::parse("1969-12-31"), Some(CalendarDay(-1)));
    assert_eq!(CalendarDay::parse("0000-01-01"), Some(CalendarDay::MIN));
    assert_eq!(CalendarDay::parse("9999-12-31"), Some(CalendarDay::MAX));
}

#[test]
fn an_invalid_date_is_not_parsed() {
    for text in [
        "2025-02-29",
        "1900-02-29",
        "2025-04-31",
        "2025-13-01",
        "2025-00-10",
        "2025-01-00",
        "2025-1-01",
        "25-01-01",
        "2025/01/01",
        "2025-01-01T00:00:00",
        "+025-01-01",
        "2025-01-0é",
        "",
    ] {
        assert_eq!(CalendarDay::parse(text), None, "{text}");
    }
    assert!(CalendarDay::parse("2024-02-29").is_some());
    assert!(CalendarDay::parse("2000-02-29").is_some());
}

#[test]
fn a_moment_has_its_day_in_utc() {
    assert_eq!(CalendarDay::from_unix_seconds(0), CalendarDay(0));
    assert_eq!(CalendarDay::from_unix_seconds(-1), CalendarDay(-1));
    assert_eq!(CalendarDay::from_unix_seconds(1_762_000_000).to_string(), "2025-11-01");
    assert_eq!(CalendarDay::from_unix_seconds(i64::MAX), CalendarDay::MAX);
    assert_eq!(CalendarDay::from_unix_seconds(i64::MIN), CalendarDay::MIN);
}

#[test]
fn a_day_is_written_as_text() {
    let day = CalendarDay::parse("2025-09-27").unwrap();
    assert_eq!(serde_json::to_string(&day).unwrap(), "\"2025-09-27\"");
    assert!(serde_json::from_str::<CalendarDay>("\"2025-09-31\"").is_err());
    assert!(serde_json::from_str::<CalendarDay>("20358").is_err());
}

proptest! {
    #[test]
    fn a_formatted_day_is_parsed_back(number in CalendarDay::MIN.0..=CalendarDay::MAX.0) {
        let day = CalendarDay(number);
        prop_assert_eq!(CalendarDay::parse(&day.to_string()), Some(day));
    }

    #[test]
    fn formatted_days_sort_chronologically(number in CalendarDay::MIN.0..CalendarDay::MAX.0) {
        prop_assert!(CalendarDay(number).to_string() < CalendarDay(number + 1).to_string());
    }

    #[test]
    fn adding_days_stays_within_the_calendar(number in CalendarDay::MIN.0..=CalendarDay::MAX.0, step: i32) {
        let there = CalendarDay(number).plus_days(step);
        prop_assert!((CalendarDay::MIN..=CalendarDay::MAX).contains(&there));
    }
}
