use super::*;

#[test]
fn days_are_counted_through_leap_years() {
    let day = |ms: u64| {
        let PolicyDate { year, month, day } = today(ms);
        format!("{year}-{month:02}-{day:02}")
    };
    const DAY: u64 = 24 * 60 * 60 * 1000;
    assert_eq!(day(0), "1970-01-01");
    assert_eq!(day(951_782_400_000), "2000-02-29");
    assert_eq!(day(951_782_400_000 + DAY), "2000-03-01");
    assert_eq!(day(1_798_761_599_999), "2026-12-31");
    assert_eq!(day(1_798_761_600_000), "2027-01-01");
}
