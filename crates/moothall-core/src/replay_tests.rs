use super::*;
use crate::ask::AskWorkflow;
use crate::model::{ModelReply, ModelRequest, StopReason, TokenUsage, UsageBasis};

fn workflow() -> AskWorkflow {
    let request = ModelRequest::ask("openai/gpt-5-mini".parse().unwrap(), "How many?", 50);
    AskWorkflow::new(request, Box::new(|_: &serde_json::Value| Vec::new())).unwrap()
}

fn reply() -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text: "Three.".to_owned(),
        stop: StopReason::End,
        model: "gpt-5-mini".to_owned(),
        usage: TokenUsage { input: 10, output: 3, ..TokenUsage::default() },
        usage_basis: UsageBasis::Reported,
        cost_micro_usd: None,
    })
}

/// Replays the workflow with one reply, recorded for a request with this hash.
fn replayed(request_sha256: Option<Sha256Hex>) -> Result<ReplayResult<AskWorkflow>, ReplayFault> {
    let result = reply();
    replay(workflow(), |_| Some(RecordedResult { request_sha256, result: &result }))
}

#[test]
fn a_result_is_used_only_for_the_request_that_it_was_recorded_for() {
    let start = replay(workflow(), |_| None).unwrap();
    assert_eq!((start.outcome, start.answered), (None, BTreeMap::new()));
    let (id, effect) = start.open.first_key_value().unwrap();
    let asked = effect.request_hash().unwrap();

    let end = replayed(Some(asked)).unwrap();
    assert!(end.outcome.is_some());
    assert_eq!(end.answered, BTreeMap::from([(id.clone(), asked)]));
    assert_eq!(end.open, BTreeMap::new());
    let unchecked = replayed(None).unwrap();
    assert!(unchecked.outcome.is_some());
    assert_eq!(unchecked.answered, BTreeMap::new());

    let answered = Sha256Hex::of(b"another request");
    let fault = replayed(Some(answered)).unwrap_err();
    assert_eq!(fault, ReplayFault::OtherQuestion { id: id.clone(), asked, answered });
    assert_eq!(fault.effect_id(), Some(id));
}
