use super::*;
use crate::event::UnavailableModel;
use crate::model::{CallPurpose, TokenUsage, UsageBasis};

fn replied(effect_id: &str, purpose: CallPurpose, instead_of: Option<FailureKind>) -> RunEventBody {
    RunEventBody::ModelReplied {
        effect_id: effect_id.parse().unwrap(),
        purpose,
        model: "anthropic/b".parse().unwrap(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
        instead_of: instead_of
            .map(|reason| UnavailableModel { model: "openai/a".parse().unwrap(), reason }),
    }
}

#[test]
fn answers_of_fallbacks_are_counted_by_role_and_place() {
    let events = [
        replied("m10/round-1/critic", CallPurpose::Critic, Some(FailureKind::Server)),
        replied("m2/round-1/critic", CallPurpose::Critic, Some(FailureKind::Auth)),
        replied("m2/D1/round-1/critic", CallPurpose::Critic, Some(FailureKind::Auth)),
        replied("m3/round-1/critic", CallPurpose::Critic, None),
        replied("analyst_1", CallPurpose::Analyst, Some(FailureKind::Auth)),
    ];
    let table = FallbackUse::of_events(&events);
    let lines: Vec<String> = table.iter().map(FallbackUse::describe).collect();
    assert_eq!(
        lines,
        [
            "analysts: 1 answer by anthropic/b instead of openai/a (auth): analyst_1 1",
            "critic: 3 answers by anthropic/b instead of openai/a (server): m2 2, m10 1",
        ]
    );
}

#[test]
fn only_the_first_answer_of_a_fallback_is_announced() {
    let mut table = Vec::new();
    let first = replied("m1/round-1/critic", CallPurpose::Critic, Some(FailureKind::Server));
    let notice = FallbackUse::count(&mut table, &first).map(FallbackUse::notice);
    let expected = "critic: openai/a is unavailable (server); using anthropic/b";
    assert_eq!(notice.as_deref(), Some(expected));
    assert_eq!(FallbackUse::count(&mut table, &first), None);
    let other = replied("m1/D1/score", CallPurpose::Score, Some(FailureKind::Server));
    assert!(FallbackUse::count(&mut table, &other).is_some());
}
