//! Workflows in the guest take the same steps as outside, and their transcript can be read at the
//! end.

use moothall_core::debate::{Debate, DebateInput, DebateLogEntry, log_json};
use moothall_core::guest::{GuestMessage, GuestWorkflow, HostMessage, StepSummary};
use moothall_core::model::{ModelReply, StopReason, TokenUsage, UsageBasis};
use moothall_core::{EffectId, EffectResult, RoundStatus, RunEventBody, Workflow};

use crate::debate_input::debate_input;
use crate::guest::Guest;

/// Replies that do not follow the required format: the debate has little content but still ends.
fn said(id: &EffectId) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        fallback: None,
        text: format!("Words of {id}: \"ä\"."),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: TokenUsage::default(),
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: None,
    })
}

#[track_caller]
fn step(answer: GuestMessage) -> StepSummary {
    match answer {
        GuestMessage::Step(step) => *step,
        other => panic!("no step: {other:?}"),
    }
}

#[test]
fn a_debate_in_a_guest_takes_the_same_steps_and_writes_its_logs_round_by_round() {
    let mut guest = Guest::start();
    let mut outside = Debate::new(debate_input()).unwrap();
    let workflow = GuestWorkflow::Debate { input: Box::new(debate_input()) };
    let mut next = step(guest.ask(&HostMessage::Start(Box::new(workflow))));
    assert_eq!(next, StepSummary::of(outside.start()).unwrap());
    let mut open = Vec::new();
    let mut rounds: Vec<Vec<u8>> = Vec::new();
    while next.outcome.is_none() {
        open.extend(next.perform.into_iter().map(|(id, _)| id));
        let id = open.pop().unwrap();
        match &rounds[..] {
            [] => assert!(guest.get("logs/i1.json", 1 << 20).is_err(), "no round is over yet"),
            [.., so_far] => assert_eq!(guest.get("logs/i1.json", 1 << 20).unwrap(), *so_far),
        }
        let result = Box::new(said(&id));
        next = step(guest.ask(&HostMessage::Result { id: id.clone(), result }));
        assert_eq!(next, StepSummary::of(outside.resume(&id, said(&id)).unwrap()).unwrap());
        if next.publish.iter().any(|event| completes_round(&event.body)) {
            rounds.push(log_json(&outside.logs()["i1"]).into_bytes());
        }
    }
    assert_eq!(rounds.len(), 2);
    for (name, log) in outside.logs() {
        let bytes = guest.get(&format!("logs/{name}.json"), 1 << 20).unwrap();
        assert_eq!(bytes, log_json(&log).as_bytes());
        assert_eq!(serde_json::from_slice::<Vec<DebateLogEntry>>(&bytes).unwrap(), log);
        assert_eq!(log.len(), 4);
    }
}

fn completes_round(body: &RunEventBody) -> bool {
    matches!(body, RunEventBody::SandboxRound { status: RoundStatus::DmResponded, .. })
}

#[test]
fn the_guest_refuses_an_invalid_debate() {
    let mut guest = Guest::start();
    let input = DebateInput { rounds: 0, ..debate_input() };
    let workflow = GuestWorkflow::Debate { input: Box::new(input) };
    assert_eq!(
        guest.ask(&HostMessage::Start(Box::new(workflow))),
        GuestMessage::Refused { why: "this workflow cannot run inside a guest".to_owned() }
    );
}

#[test]
fn a_debate_does_not_end_if_its_logs_cannot_be_written() {
    let mut guest = Guest::start();
    guest.write("logs", b"a file where the folder should be");
    let mut input = debate_input();
    input.decision_makers.truncate(1);
    input.rounds = 1;
    let workflow = GuestWorkflow::Debate { input: Box::new(input) };
    let mut answer = guest.ask(&HostMessage::Start(Box::new(workflow)));
    while let GuestMessage::Step(step) = &answer {
        let id = step.perform.first().expect("the end was told").0.clone();
        let result = Box::new(said(&id));
        answer = guest.ask(&HostMessage::Result { id, result });
    }
    assert!(
        matches!(&answer, GuestMessage::Refused { why } if why.contains("create `logs/i1.json.new`")),
        "{answer:?}"
    );
}
