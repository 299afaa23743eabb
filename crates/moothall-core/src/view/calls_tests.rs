use super::*;
use crate::event::{PauseReason, StageStatus};
use crate::model::{FailureKind, UsageBasis};
use crate::view::CostBreakdown;

fn id(path: &str) -> EffectId {
    path.parse().unwrap()
}

fn replied(path: &str, purpose: CallPurpose, cost: Option<u64>) -> RunEventBody {
    RunEventBody::ModelReplied {
        effect_id: id(path),
        purpose,
        model: "openai/gpt-5-mini".parse().unwrap(),
        usage: TokenUsage { input: 100, cache_read: 40, output: 7, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: cost.map(MicroUsd::new),
        instead_of: None,
    }
}

fn rejected(path: &str) -> RunEventBody {
    RunEventBody::OutputRejected { effect_id: id(path), problems: vec!["no stance".to_owned()] }
}

fn turn(path: &str) -> RunEventBody {
    RunEventBody::SandboxTurn {
        effect_id: id(path),
        move_id: "m1".to_owned(),
        thread: "D1".to_owned(),
        round: 1,
        role: "D1".to_owned(),
        preview: String::new(),
        stance: None,
        cites: Vec::new(),
    }
}

fn scored(degraded: Vec<DebateDegradation>) -> RunEventBody {
    RunEventBody::SandboxScored {
        move_id: "m1".to_owned(),
        score: 8,
        out_of: 12,
        breakdown: BTreeMap::new(),
        rounds_done: 1,
        degraded,
        key_objection: None,
        reasoning: BTreeMap::new(),
    }
}

fn round(number: u32, status: RoundStatus) -> RunEventBody {
    RunEventBody::SandboxRound { move_id: "m1".to_owned(), round: number, status }
}

fn debate_started() -> RunEventBody {
    RunEventBody::LayerStart { layer: 3, status: StageStatus::Running }
}

/// Events at these times; every call took 500 ms and two attempts.
fn log<'a>(events: impl IntoIterator<Item = &'a (u64, RunEventBody)>) -> RunCalls {
    let mut calls = RunCalls::default();
    for (seq, (at_ms, body)) in (1..).zip(events) {
        calls.apply(seq, *at_ms, body, Some(EffectTiming { latency_ms: 500, tries: 2 }));
    }
    calls
}

#[test]
fn a_call_says_who_made_it_for_what_and_what_it_took() {
    let opening = replied("m1/round-1/critic", CallPurpose::Critic, Some(12));
    let calls = log(&[(1_000, debate_started()), (2_300, opening)]);
    let expected = ModelCall {
        seq: 2,
        call: id("m1/round-1/critic"),
        purpose: CallPurpose::Critic,
        role: "critic".to_owned(),
        member: Some("critic".to_owned()),
        stage: "debate".to_owned(),
        move_id: Some("m1".to_owned()),
        round: Some(1),
        model: "openai/gpt-5-mini".parse().unwrap(),
        started_at_ms: 1_800,
        length_ms: 500,
        queued_ms: Some(800),
        prompt_tokens: 140,
        cached_tokens: 40,
        output_tokens: 7,
        cost_micro_usd: Some(MicroUsd::new(12)),
        attempts: 2,
        retry: false,
        result: CallResult::Used,
        reasons: Vec::new(),
    };
    assert_eq!(calls.calls, [expected]);
    assert_eq!(calls.find(&id("m1/round-1/critic")), calls.calls.first());
    assert_eq!(calls.find(&id("m1")), None);
}

#[test]
fn role_member_move_and_round_follow_from_the_call() {
    let checked = RunEventBody::ClaimChecked {
        effect_id: id("analyst_2"),
        document: "m4.md".to_owned(),
        numbers: 3,
        supported: 2,
        flagged: Vec::new(),
        rewrite: true,
    };
    let events = [
        replied("F1", CallPurpose::InferFinancial, None),
        replied("analyst_2", CallPurpose::Analyst, None),
        checked,
        replied("m4/rewrite", CallPurpose::Analyst, None),
        replied("m4/round-2/critic/D3/ask-2", CallPurpose::Critic, None),
        replied("m4/round-2/D3/ask-2", CallPurpose::DecisionMaker, None),
        replied("m4/score/D1", CallPurpose::Score, None),
        replied("m0/score/D2", CallPurpose::ScoreNothing, None),
        replied("attempt-2/generate/ask-2", CallPurpose::Generate, None),
        replied("attempt-1/propose-2", CallPurpose::Edit, None),
    ];
    let events: Vec<(u64, RunEventBody)> = events.into_iter().map(|body| (9, body)).collect();
    let shown: Vec<String> = log(&events)
        .calls
        .iter()
        .map(|call| {
            let (member, move_id) = (call.member.as_deref(), call.move_id.as_deref());
            let round = call.round.map_or_else(|| "-".to_owned(), |round| round.to_string());
            let retry = if call.retry { " retry" } else { "" };
            let (member, move_id) = (member.unwrap_or("-"), move_id.unwrap_or("-"));
            format!("{}: {} {member} {move_id} {round}{retry}", call.call, call.role)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "F1: inference F1 - -",
            "analyst_2: analysts analyst_2 - -",
            "m4/rewrite: analysts analyst_2 m4 - retry",
            "m4/round-2/critic/D3/ask-2: critic critic m4 2 retry",
            "m4/round-2/D3/ask-2: decision makers D3 m4 2 retry",
            "m4/score/D1: decision makers D1 m4 -",
            "m0/score/D2: decision makers D2 m0 -",
            "attempt-2/generate/ask-2: programmer - - 2 retry",
            "attempt-1/propose-2: editor - - 1",
        ]
    );
    let calls = log(&events);
    let reasons = &calls.find(&id("analyst_2")).unwrap().reasons;
    assert_eq!(*reasons, ["m4.md: 2 of 3 numbers supported; rewritten"]);
}

#[test]
fn a_result_tells_used_rejected_degraded_and_failed_calls_apart() {
    let failed = RunEventBody::ModelFailed {
        effect_id: id("m1/round-2/D1"),
        purpose: CallPurpose::DecisionMaker,
        model: "demo".parse().unwrap(),
        kind: FailureKind::Refused,
        detail: "content filter".to_owned(),
    };
    let from_text = DebateDegradation::ScoreFromText { decision_maker: "D1".to_owned() };
    let events = [
        replied("m1/round-1/critic", CallPurpose::Critic, Some(1)),
        turn("m1/round-1/critic"),
        // The second answer is invalid too, so its text is kept.
        replied("m1/round-1/D1", CallPurpose::DecisionMaker, Some(1)),
        rejected("m1/round-1/D1"),
        replied("m1/round-1/D1/ask-2", CallPurpose::DecisionMaker, Some(1)),
        rejected("m1/round-1/D1/ask-2"),
        turn("m1/round-1/D1/ask-2"),
        failed,
        replied("m1/score/D1", CallPurpose::Score, Some(1)),
        rejected("m1/score/D1"),
        replied("m1/score/D1/ask-2", CallPurpose::Score, Some(1)),
        rejected("m1/score/D1/ask-2"),
        scored(vec![from_text]),
    ];
    let events: Vec<(u64, RunEventBody)> = events.into_iter().map(|body| (9, body)).collect();
    let shown: Vec<String> = log(&events)
        .calls
        .iter()
        .map(|call| format!("{}: {} {:?}", call.call, call.result.as_str(), call.reasons))
        .collect();
    assert_eq!(
        shown,
        [
            "m1/round-1/critic: used []",
            "m1/round-1/D1: rejected [\"no stance\"]",
            "m1/round-1/D1/ask-2: degraded [\"no stance\", \"kept as unstructured text\"]",
            "m1/round-2/D1: failed [\"refused: content filter\"]",
            "m1/score/D1: rejected [\"no stance\"]",
            "m1/score/D1/ask-2: degraded [\"no stance\", \"scores read from prose\"]",
        ]
    );
}

#[test]
fn a_call_is_queued_from_the_event_that_it_follows_from() {
    let paused =
        RunEventBody::RunPaused { number: 1, reason: PauseReason::Person, detail: String::new() };
    let events = [
        (1_000, debate_started()),
        (2_000, replied("m1/round-1/critic", CallPurpose::Critic, None)),
        (2_000, round(1, RoundStatus::CriticResponded)),
        (2_700, replied("m1/round-1/D1", CallPurpose::DecisionMaker, None)),
        (2_700, rejected("m1/round-1/D1")),
        (3_250, replied("m1/round-1/D1/ask-2", CallPurpose::DecisionMaker, None)),
        (3_250, round(1, RoundStatus::DmResponded)),
        (3_600, replied("m1/score/D1", CallPurpose::Score, None)),
        (3_600, paused),
        (90_000, replied("m1/score/D2", CallPurpose::Score, None)),
        (90_000, replied("attempt-1/propose", CallPurpose::Edit, None)),
    ];
    let queued: Vec<Option<u64>> = log(&events).calls.iter().map(|call| call.queued_ms).collect();
    // A call that started before the commit of what it follows from did not wait.
    assert_eq!(queued, [Some(500), Some(200), Some(50), Some(0), None, None]);
}

#[test]
fn the_calls_cost_as_much_as_the_cost_breakdown_says() {
    let bodies = [
        replied("F2", CallPurpose::InferTrend, Some(1)),
        replied("analyst_1", CallPurpose::Analyst, Some(1_000_003)),
        replied("m1/round-1/critic", CallPurpose::Critic, Some(333)),
        replied("m1/round-1/D1", CallPurpose::DecisionMaker, None),
        replied("m1/score/D1", CallPurpose::Score, Some(50)),
    ];
    let costs = CostBreakdown::of_events(&bodies);
    let events: Vec<(u64, RunEventBody)> = bodies.into_iter().map(|body| (9, body)).collect();
    let log = log(&events);
    let page = log.page(&log.matching(&crate::view::CallFilter::default(), &|_| None), 0, 2);
    for (parts, sums) in [
        (&costs.roles, &page.all.roles),
        (&costs.stages, &page.all.stages),
        (&costs.models, &page.all.models),
    ] {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| (part.name.as_str(), u64::from(part.calls), part.cost_micro_usd))
            .collect();
        let sums: Vec<_> =
            sums.iter().map(|sum| (sum.name.as_str(), sum.calls, sum.cost_micro_usd)).collect();
        assert_eq!(parts, sums);
    }
    for sums in [&page.all.moves, &page.all.results] {
        let cost: u64 = sums.iter().map(|sum| sum.cost_micro_usd.micros()).sum();
        assert_eq!((cost, page.all.total.cost_micro_usd.micros()), (1_000_387, 1_000_387));
    }
    assert_eq!(page.all.total.unpriced_calls, 1);
}

#[test]
fn an_event_applied_twice_is_one_call() {
    let mut calls = log(&[(9, replied("F1", CallPurpose::InferFinancial, None))]);
    let before = calls.clone();
    calls.apply(1, 9, &replied("F1", CallPurpose::InferFinancial, None), None);
    assert_eq!(calls, before);
}
