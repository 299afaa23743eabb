use super::super::support::{input, small_input, synthetic};
use super::*;

#[test]
fn calls_are_counted_by_role() {
    let counted = |input: &ConsultInput| -> Vec<(CallPurpose, u32)> {
        estimate(input, None).roles.iter().map(|role| (role.purpose, role.calls)).collect()
    };
    assert_eq!(
        counted(&input()),
        [
            (CallPurpose::InferFinancial, 1),
            (CallPurpose::InferTrend, 1),
            (CallPurpose::Analyst, 5),
            (CallPurpose::Critic, 15 * 28),
            (CallPurpose::DecisionMaker, 15 * 30),
            (CallPurpose::Score, 15 * 3),
        ]
    );
    assert_eq!(calls(&input()), 922);
    assert_eq!(calls(&synthetic(input())), 924);
    let mut small = small_input();
    small.committee.rounds = 2;
    assert_eq!(calls(&small), 2 + 2 + 2 * 13);
    assert_eq!(counted(&small)[2], (CallPurpose::Analyst, 2));
}

#[test]
fn the_upper_end_is_above_the_lower_one_and_both_grow_with_the_work() {
    let whole = estimate(&input(), Some(5_000));
    let small = estimate(&small_input(), Some(5_000));
    for (low, high) in whole.roles.iter().map(|role| (role.low, role.high)) {
        assert!(low.prompt() <= high.prompt() && low.output <= high.output);
    }
    assert!(whole.low().total() > small.low().total());
    assert!(whole.high().total() > small.high().total());
}

#[test]
fn short_evidence_lowers_the_estimate() {
    let f1 = |evidence| estimate(&input(), evidence).roles[0].clone();
    let (short, unknown) = (f1(Some(200)), f1(None));
    assert!(short.low.prompt() * 3 < unknown.low.prompt() * 2, "{short:?} {unknown:?}");
    assert!(short.high.prompt() < unknown.high.prompt(), "{short:?} {unknown:?}");
    // More evidence than fits is not sent.
    assert_eq!(f1(Some(1_000_000)).high, unknown.high);
}

#[test]
fn the_largest_call_is_a_score_after_a_whole_debate() {
    let whole = estimate(&input(), Some(5_000));
    let score = whole.roles.iter().find(|role| role.purpose == CallPurpose::Score).unwrap();
    assert_eq!(times(&whole.largest_call, u64::from(score.calls)), score.high);
    // A margin of 15 %, because lengths are estimates.
    let call = TokenUsage { input: 80, output: 5, ..TokenUsage::default() };
    assert_eq!(needed_window(&call), 100);
}

#[test]
fn most_of_a_prompt_is_read_from_the_cache() {
    let low = estimate(&input(), Some(5_000)).low();
    assert!(low.cache_read > 8 * (low.input + low.cache_write_5m), "{low:?}");
}

#[test]
fn the_estimate_for_5000_tokens_of_evidence_matches_its_snapshot() {
    let ConsultEstimate { calls, .. } = estimate(&input(), Some(5_000));
    let (low, high) =
        (estimate(&input(), Some(5_000)).low(), estimate(&input(), Some(5_000)).high());
    insta::assert_debug_snapshot!((calls, low, high));
}
