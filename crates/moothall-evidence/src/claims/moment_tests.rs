use super::{Moment, can_be, moment};
use crate::claims::clause::reach_of;
use crate::evidence::Period;

/// The words to the left and to the right of a number, which stands at `#`.
#[track_caller]
fn check(sentence: &str, expected: Moment) {
    let (left, right) = sentence.split_once('#').unwrap();
    assert_eq!(moment(reach_of(left), right), expected, "{sentence}");
}

#[test]
fn words_beside_a_number_say_when() {
    check("up from $#", Moment::Earlier);
    check("it was # a year earlier", Moment::Earlier);
    check("it was #, the previous year", Moment::Earlier);
    check("it rose from 5% to #", Moment::Later);
    check("it rose to #", Moment::Unsaid);
    check("it ranged from # to", Moment::Unsaid);
    check("it was # in fiscal 2024", Moment::FiscalYear(2024));
    check("it was # for fy24", Moment::FiscalYear(2024));
    check("the # of 2021", Moment::Year(2021));
    check("it was # in the third quarter", Moment::Quarter(3));
    check("it was # in q2", Moment::Quarter(2));
    check("in fiscal 2025 revenue was #", Moment::FiscalYear(2025));
    check("fy2025 revenue was #", Moment::FiscalYear(2025));
    check("in 2025 it was 5% and #", Moment::Unsaid);
    check("since fiscal 2021 it was #", Moment::Unsaid);
}

#[test]
fn a_period_is_refused_only_where_another_is_known() {
    let (old, new) = (Period::Year(2024), Period::Year(2025));
    for (moment, period, others, expected) in [
        (Moment::Earlier, new, &[old][..], false),
        (Moment::Earlier, old, &[new], true),
        (Moment::Earlier, new, &[], true),
        (Moment::Later, old, &[new], false),
        (Moment::Later, new, &[old], true),
        (Moment::FiscalYear(2025), old, &[new], false),
        (Moment::FiscalYear(2023), old, &[new], true),
        (Moment::Year(2025), old, &[new], false),
        (Moment::Year(2023), old, &[new], true),
        (Moment::Quarter(2), Period::Quarter(2025, 1), &[Period::Quarter(2025, 2)], false),
        (Moment::Quarter(2), new, &[old], true),
        (Moment::Unsaid, old, &[new], true),
    ] {
        assert_eq!(can_be(moment, period, others, &[]), expected, "{moment:?} {period}");
    }
    assert!(can_be(Moment::Year(2025), old, &[new], &[2024, 2025]));
}
