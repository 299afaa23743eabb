use super::*;
use crate::event::RunEventBody;
use crate::model::{TokenUsage, UsageBasis};

/// Two moves with two rounds each, an analyst and a retry.
fn log() -> RunCalls {
    let mut calls = RunCalls::default();
    let mut seq = 0;
    let mut add = |path: &str, purpose: CallPurpose, model: &str| {
        seq += 1;
        let body = RunEventBody::ModelReplied {
            effect_id: path.parse().unwrap(),
            purpose,
            model: model.parse().unwrap(),
            usage: TokenUsage { input: 10, output: 1, ..TokenUsage::default() },
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: Some(MicroUsd::new(seq)),
            instead_of: None,
        };
        calls.apply(seq, seq * 100, &body, None);
    };
    add("analyst_1", CallPurpose::Analyst, "demo");
    for round in 1..3 {
        for number in [2, 10] {
            add(&format!("m{number}/round-{round}/critic/D1"), CallPurpose::Critic, "demo");
            add(&format!("m{number}/round-{round}/D1"), CallPurpose::DecisionMaker, "demo/two");
        }
    }
    add("m10/round-2/D1/ask-2", CallPurpose::DecisionMaker, "demo");
    calls
}

fn found(log: &RunCalls, filter: CallFilter) -> Vec<u64> {
    let answer = |id: &EffectId| (id.as_str() == "m2/round-1/D1").then_some("We HOLD on.");
    log.matching(&filter, &answer).iter().map(|call| call.seq).collect()
}

#[test]
fn every_filter_selects_its_calls() {
    let log = log();
    let text = |text: &str| Some(text.to_owned());
    let all = CallFilter::default;
    assert_eq!(found(&log, all()).len(), 10);
    assert_eq!(found(&log, CallFilter { role: text("Critic"), ..all() }), [2, 4, 6, 8]);
    assert_eq!(found(&log, CallFilter { role: text("d1"), ..all() }), [3, 5, 7, 9, 10]);
    assert_eq!(found(&log, CallFilter { stage: text("analyze"), ..all() }), [1]);
    assert_eq!(found(&log, CallFilter { move_id: text("m10"), ..all() }), [4, 5, 8, 9, 10]);
    assert_eq!(found(&log, CallFilter { round: Some(2), ..all() }), [6, 7, 8, 9, 10]);
    assert_eq!(found(&log, CallFilter { model: text("demo/two"), ..all() }), [3, 5, 7, 9]);
    assert!(found(&log, CallFilter { result: Some(CallResult::Failed), ..all() }).is_empty());
    assert_eq!(found(&log, CallFilter { only_retries: true, ..all() }), [10]);
    // In the name of a call, and in an answer.
    assert_eq!(found(&log, CallFilter { text: text("ROUND-2/critic"), ..all() }), [6, 8]);
    assert_eq!(found(&log, CallFilter { text: text("hold on"), ..all() }), [3]);
    let both = CallFilter { role: text("critic"), move_id: text("m2"), round: Some(1), ..all() };
    assert_eq!(found(&log, both), [2]);
}

#[test]
fn pages_list_every_matching_call_once_and_each_has_all_sums() {
    let log = log();
    let filter = CallFilter { role: Some("critic".to_owned()), ..CallFilter::default() };
    let matching = log.matching(&filter, &|_| None);
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let page = log.page(&matching, after, 3);
        seen.extend(page.calls.iter().map(|call| call.seq));
        assert_eq!((page.matching.total.calls, page.all.total.calls), (4, 10));
        assert_eq!(page.matching.total.cost_micro_usd, MicroUsd::new(2 + 4 + 6 + 8));
        assert_eq!((page.first_start_ms, page.last_end_ms, page.as_of_seq), (100, 1000, 10));
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(seen, [2, 4, 6, 8]);
    // A page that ends with the last call has no next page.
    assert_eq!(log.page(&matching, 2, 3).next, None);
}

#[test]
fn sums_are_in_the_order_of_a_run_and_moves_by_number() {
    let log = log();
    let sums = CallSums::of(&log.calls);
    let names =
        |sums: &[CallSum]| sums.iter().map(|sum| sum.name.clone()).collect::<Vec<_>>().join(", ");
    assert_eq!(names(&sums.roles), "analysts, critic, decision makers");
    assert_eq!(names(&sums.stages), "analyze, debate");
    assert_eq!(names(&sums.moves), "m2, m10, no move");
    assert_eq!(names(&sums.rounds), "1, 2");
    assert_eq!(names(&sums.models), "demo, demo/two");
    assert_eq!(names(&sums.results), "used");
    assert_eq!(names(&sums.members), "analyst_1, critic, D1");
}
