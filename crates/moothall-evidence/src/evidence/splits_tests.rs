use super::*;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

fn day(text: &str) -> CalendarDay {
    CalendarDay::parse(text).unwrap()
}

fn vote(before: &str, after: &str, factor: u32) -> SplitVote {
    SplitVote { after: day(after), before: day(before), factor }
}

#[track_caller]
fn check_factor(unit: FactUnit, old: &str, new: &str, expected: Option<u32>) {
    assert_eq!(factor_between(unit, decimal(old), decimal(new)), expected, "{old} {new}");
}

#[test]
fn a_whole_ratio_within_rounding_is_a_split() {
    check_factor(FactUnit::PerShare, "11.89", "2.97", Some(4));
    check_factor(FactUnit::PerShare, "-11.89", "-2.97", Some(4));
    check_factor(FactUnit::PerShare, "112.2", "5.61", Some(20));
    check_factor(FactUnit::Shares, "4648913000", "18595651000", Some(4));
}

#[test]
fn other_ratios_are_restatements() {
    check_factor(FactUnit::PerShare, "6.08", "5.90", None);
    check_factor(FactUnit::PerShare, "11.89", "2.80", None);
    // A cent of rounding could produce any ratio here.
    check_factor(FactUnit::PerShare, "0.02", "0.01", None);
    check_factor(FactUnit::PerShare, "2.97", "-0.74", None);
    check_factor(FactUnit::PerShare, "0", "1", None);
    check_factor(FactUnit::PerShare, "1", "0", None);
    check_factor(FactUnit::Shares, "1", "9", None);
    check_factor(FactUnit::Shares, "28600000", "168142740", None);
}

#[test]
fn a_split_is_dated_by_the_first_filing_on_the_new_basis() {
    let found = splits(vec![
        vote("2019-10-31", "2021-10-29", 4),
        vote("2019-10-31", "2020-10-30", 4),
        vote("2020-01-29", "2021-01-28", 4),
    ]);
    assert_eq!(found, [ShareSplit { first_filed: day("2020-10-30"), factor: 4 }]);
}

#[test]
fn two_splits_by_the_same_factor_are_two() {
    // Two 2:1 splits within a year: the annual report spans both and shows 4:1.
    let found = splits(vec![
        vote("2021-11-20", "2022-11-20", 2),
        vote("2022-02-20", "2023-02-20", 2),
        vote("2022-09-27", "2023-09-27", 4),
        vote("2022-11-20", "2023-11-20", 2),
    ]);
    assert_eq!(
        found,
        [
            ShareSplit { first_filed: day("2022-11-20"), factor: 2 },
            ShareSplit { first_filed: day("2023-09-27"), factor: 2 },
        ]
    );
    assert_eq!(factor_since(&found, day("2022-09-27")), 4);
    assert_eq!(factor_since(&found, day("2022-11-20")), 2);
    assert_eq!(factor_since(&found, day("2023-09-27")), 1);
}

#[test]
fn more_splits_than_a_company_can_have_are_ignored() {
    let votes = (0..20)
        .map(|year| vote(&format!("{}-01-01", 2000 + year), &format!("{}-12-31", 2000 + year), 50));
    let found = splits(votes.collect());
    assert_eq!(found.len(), 3);
    assert!(are_sound(&found));
}
