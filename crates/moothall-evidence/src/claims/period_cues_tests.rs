use super::{PeriodCue, allows_period, period_cue};
use crate::claims::clause::clause_before;
use crate::evidence::FiscalPeriod;

/// Checks the words around a number; `#` marks its position.
#[track_caller]
fn check(sentence: &str, expected: PeriodCue) {
    let (left, right) = sentence.split_once('#').unwrap();
    assert_eq!(period_cue(clause_before(left), right), expected, "{sentence}");
}

#[test]
fn period_cues_beside_a_number_are_recognised() {
    check("up from $#", PeriodCue::Earlier);
    check("it was # a year earlier", PeriodCue::Earlier);
    check("it was #, the previous year", PeriodCue::Earlier);
    check("it rose from 5% to #", PeriodCue::Later);
    check("it rose to #", PeriodCue::Unsaid);
    check("it ranged from # to", PeriodCue::Unsaid);
    check("it was # in fiscal 2024", PeriodCue::FiscalYear(2024));
    check("it was # for fy24", PeriodCue::FiscalYear(2024));
    check("the # of 2021", PeriodCue::Year(2021));
    check("it was # in the third quarter", PeriodCue::Quarter(3));
    check("it was # in q2", PeriodCue::Quarter(2));
    check("in fiscal 2025 revenue was #", PeriodCue::FiscalYear(2025));
    check("fy2025 revenue was #", PeriodCue::FiscalYear(2025));
    check("in 2025 it was 5% and #", PeriodCue::Unsaid);
    check("since fiscal 2021 it was #", PeriodCue::Unsaid);
}

#[test]
fn a_period_cue_excludes_a_fact_only_if_another_period_is_cited() {
    let (old, new) = (FiscalPeriod::Year(2024), FiscalPeriod::Year(2025));
    for (period_cue, period, others, expected) in [
        (PeriodCue::Earlier, new, &[old][..], false),
        (PeriodCue::Earlier, old, &[new], true),
        (PeriodCue::Earlier, new, &[], true),
        (PeriodCue::Later, old, &[new], false),
        (PeriodCue::Later, new, &[old], true),
        (PeriodCue::FiscalYear(2025), old, &[new], false),
        (PeriodCue::FiscalYear(2023), old, &[new], true),
        (PeriodCue::Year(2025), old, &[new], false),
        (PeriodCue::Year(2023), old, &[new], true),
        (
            PeriodCue::Quarter(2),
            FiscalPeriod::Quarter(2025, 1),
            &[FiscalPeriod::Quarter(2025, 2)],
            false,
        ),
        (PeriodCue::Quarter(2), new, &[old], true),
        (PeriodCue::Unsaid, old, &[new], true),
    ] {
        assert_eq!(
            allows_period(period_cue, period, others, &[]),
            expected,
            "{period_cue:?} {period}"
        );
    }
    assert!(allows_period(PeriodCue::Year(2025), old, &[new], &[2024, 2025]));
}
