//! Workflows inside: the same steps as outside, and what was said is there to be read at the end.

use moothall_core::consult::board;
use moothall_core::debate::{Calls, Debate, DebateInput, Entry, log_json};
use moothall_core::guest::{FromGuest, GuestWorkflow, SaidStep, ToGuest};
use moothall_core::model::{ModelReply, StopReason, Usage, UsageBasis};
use moothall_core::{EffectId, EffectResult, Workflow};

use crate::guest::Guest;

fn input() -> DebateInput {
    let board = board();
    DebateInput {
        move_id: "m1".to_owned(),
        company: "Helix Instruments".to_owned(),
        dossier: "Revenue 412".into(),
        move_markdown: "# m1: Sell more".into(),
        machine_findings: Vec::new(),
        rounds: 2,
        critic: board.critic,
        decision_makers: board.decision_makers,
        metrics: board.metrics,
        critic_model: "demo".parse().unwrap(),
        decision_maker_model: "demo".parse().unwrap(),
        calls: Calls::default(),
    }
}

/// Nobody keeps to the form: the debate is poor, and ends nevertheless.
fn said(id: &EffectId) -> EffectResult {
    EffectResult::ModelReplied(ModelReply {
        text: format!("Words of {id}: \"ä\"."),
        stop: StopReason::End,
        model: "m".to_owned(),
        usage: Usage::default(),
        usage_basis: UsageBasis::Estimated,
        cost_micro_usd: None,
    })
}

#[track_caller]
fn step(answer: FromGuest) -> SaidStep {
    match answer {
        FromGuest::Step(step) => *step,
        other => panic!("no step: {other:?}"),
    }
}

#[test]
fn a_debate_takes_the_same_steps_inside_and_leaves_its_conversations() {
    let mut guest = Guest::start();
    let mut outside = Debate::new(input()).unwrap();
    let workflow = GuestWorkflow::Debate { input: Box::new(input()) };
    let mut next = step(guest.ask(&ToGuest::Start(Box::new(workflow))));
    assert_eq!(next, SaidStep::of(outside.start()).unwrap());
    let mut open = Vec::new();
    while next.outcome.is_none() {
        open.extend(next.perform.into_iter().map(|(id, _)| id));
        let id = open.pop().unwrap();
        assert!(guest.get("logs/i1.json", 1 << 20).is_err(), "it is not over yet");
        let result = Box::new(said(&id));
        next = step(guest.ask(&ToGuest::Result { id: id.clone(), result }));
        assert_eq!(next, SaidStep::of(outside.resume(&id, said(&id)).unwrap()).unwrap());
    }
    for (name, log) in outside.logs() {
        let bytes = guest.get(&format!("logs/{name}.json"), 1 << 20).unwrap();
        assert_eq!(bytes, log_json(&log).as_bytes());
        assert_eq!(serde_json::from_slice::<Vec<Entry>>(&bytes).unwrap(), log);
        assert_eq!(log.len(), 4);
    }
}

#[test]
fn a_debate_that_cannot_be_held_is_refused() {
    let mut guest = Guest::start();
    let input = DebateInput { rounds: 0, ..input() };
    let workflow = GuestWorkflow::Debate { input: Box::new(input) };
    assert_eq!(
        guest.ask(&ToGuest::Start(Box::new(workflow))),
        FromGuest::Refused { why: "this workflow cannot run inside a guest".to_owned() }
    );
}

#[test]
fn an_end_whose_conversations_cannot_be_written_is_not_told() {
    let mut guest = Guest::start();
    guest.write("logs", b"a file where the folder should be");
    let mut input = input();
    input.decision_makers.truncate(1);
    input.rounds = 1;
    let workflow = GuestWorkflow::Debate { input: Box::new(input) };
    let mut answer = guest.ask(&ToGuest::Start(Box::new(workflow)));
    while let FromGuest::Step(step) = &answer {
        let id = step.perform.first().expect("the end was told").0.clone();
        let result = Box::new(said(&id));
        answer = guest.ask(&ToGuest::Result { id, result });
    }
    assert!(
        matches!(&answer, FromGuest::Refused { why } if why.contains("make `logs/i1.json`")),
        "{answer:?}"
    );
}
