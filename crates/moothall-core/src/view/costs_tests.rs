use super::*;
use crate::model::{TokenUsage, UsageBasis};

fn replied(purpose: CallPurpose, model: &str, cost: Option<u64>) -> RunEventBody {
    RunEventBody::ModelReplied {
        instead_of: None,
        effect_id: "m1/round-1/critic".parse().unwrap(),
        purpose,
        model: model.parse().unwrap(),
        usage: TokenUsage { input: 10, output: 3, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: cost.map(MicroUsd::new),
    }
}

#[test]
fn every_division_of_the_cost_adds_up_to_the_bill_to_the_micro_dollar() {
    let (small, large) = ("openai/gpt-5-mini", "anthropic/claude-haiku-5-5");
    let events = [
        replied(CallPurpose::InferTrend, small, Some(1)),
        replied(CallPurpose::Analyst, large, Some(1_000_003)),
        replied(CallPurpose::Critic, small, Some(333)),
        replied(CallPurpose::DecisionMaker, large, Some(7)),
        replied(CallPurpose::Score, large, Some(50)),
        replied(CallPurpose::ScoreNothing, small, None),
        RunEventBody::RunCancelled,
    ];
    let costs = CostBreakdown::of_events(&events);
    for (_, parts) in costs.divisions() {
        assert_eq!(parts.iter().map(|part| part.cost_micro_usd.micros()).sum::<u64>(), 1_000_394);
        assert_eq!(parts.iter().map(|part| part.calls).sum::<u32>(), 6);
        assert_eq!(parts.iter().map(|part| part.unpriced_calls).sum::<u32>(), 1);
        assert_eq!(parts.iter().map(|part| part.prompt_tokens).sum::<u64>(), 60);
    }
    let shown = |parts: &[CostPart]| -> Vec<String> {
        parts.iter().map(|part| format!("{} {}", part.name, part.cost_text())).collect()
    };
    assert_eq!(
        shown(&costs.roles),
        [
            "inference $0.000001",
            "analysts $1.000003",
            "critic $0.000333",
            "decision makers $0.000057 and 1 calls with unknown price",
        ]
    );
    assert_eq!(
        shown(&costs.stages),
        [
            "infer $0.000001",
            "analyze $1.000003",
            "debate $0.00034",
            "score $0.00005",
            "score without debate price unknown",
        ]
    );
    assert_eq!(
        shown(&costs.models),
        [
            "openai/gpt-5-mini $0.000334 and 1 calls with unknown price",
            "anthropic/claude-haiku-5-5 $1.00006",
        ]
    );
}
