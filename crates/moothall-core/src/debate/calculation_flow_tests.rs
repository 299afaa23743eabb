//! Calculations in whole debates.

use std::cell::RefCell;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{Ran, in_form, input, run, run_in_order, said};
use super::*;
use crate::PromptRevision;
use crate::claims::CalculatedValue;
use crate::program::support::execution;
use crate::sandbox::{ExecutionExit, FileRef, SandboxFailure, SandboxFailureKind};

fn with_calculations(rounds: u32) -> DebateInput {
    let mut input = DebateInput { calculations: Some(FileRef::of(b"{}")), ..input(rounds) };
    input.calls.prompts = PromptRevision::CURRENT;
    input
}

/// A valid answer with a calculation.
fn calculating(id: &str, message: Option<&str>, code: &str) -> EffectResult {
    let mut turn: Value = serde_json::from_str(&in_form(id)).unwrap();
    if let Some(message) = message {
        turn["message"] = json!(message);
    }
    turn["calculation"] = json!({"purpose": "What it shows.", "code": code});
    said(turn.to_string())
}

/// What the loader prints for a margin of 14.2 %.
fn executed() -> EffectResult {
    let output = json!({
        "error": null, "facts": ["Revenue:FY2025"], "literals": ["100"],
        "values": [{"name": "margin", "unit": "%", "value": "14.2"}],
    });
    let exit = ExecutionExit::Exited { code: 0 };
    EffectResult::Executed(Box::new(execution(exit, &output.to_string(), "")))
}

/// A valid answer without a calculation.
fn plain(id: &str) -> EffectResult {
    let mut turn: Value = serde_json::from_str(&in_form(id)).unwrap();
    if id.contains("/score/") {
        return said(turn["scores"].to_string());
    }
    turn["calculation"] = Value::Null;
    said(turn.to_string())
}

fn is_execution(id: &str) -> bool {
    id.ends_with("/calculation")
}

/// The newest prompt of a request.
fn prompt(ran: &Ran, id: &str) -> String {
    ran.question(id).turns.last().unwrap().block.text.to_string()
}

fn one_calculation() -> Ran {
    run(with_calculations(2), |id| match id {
        "m7/round-1/D1" => calculating(id, None, "result('margin', facts['A:FY2025'], '%')"),
        "m7/round-2/D1" => {
            let mut turn: Value = serde_json::from_str(&in_form(id)).unwrap();
            turn["message"] = json!("The margin is 14.2% [X0:m7-D1-1].");
            said(turn.to_string())
        }
        "m7/round-2/D2" => {
            let mut turn: Value = serde_json::from_str(&in_form(id)).unwrap();
            turn["message"] = json!("The margin is 15.2% [X0:m7-D1-1].");
            said(turn.to_string())
        }
        id if is_execution(id) => executed(),
        id => plain(id),
    })
}

#[test]
fn a_calculation_runs_after_its_half_round_and_both_sides_read_its_result() {
    let ran = one_calculation();
    let place = ran.waves.iter().position(|wave| *wave == ["m7/round-1/D1/calculation"]).unwrap();
    assert!(ran.waves[place - 1].contains(&"m7/round-1/D3".to_owned()));
    assert!(ran.waves[place + 1].contains(&"m7/round-2/critic/D1".to_owned()));
    let line = "X0:m7-D1-1 (D1): What it shows. Result: margin 14.2%. Basis: facts read: \
                Revenue:FY2025.";
    for reader in ["m7/round-2/critic/D1", "m7/round-2/D1"] {
        assert!(prompt(&ran, reader).contains(line), "{}", prompt(&ran, reader));
    }
    for other in ["m7/round-2/critic/D2", "m7/round-2/D2", "m7/round-1/D1"] {
        assert!(!prompt(&ran, other).contains("X0:m7-D1-1 ("), "{other}");
    }
    let [one] = ran.debated().calculations.as_slice() else { panic!("one calculation") };
    let expected: [&[CalculatedValue]; 1] = [one.values()];
    assert_eq!(expected[0].len(), 1);
    assert_eq!((one.id.as_str(), one.round, one.thread.as_str()), ("X0:m7-D1-1", 1, "D1"));
    assert!(ran.keys().contains(&"m7/round-1/D1/calculation:calculated"));
    let schema = ran.question("m7/round-1/critic").schema.as_ref().unwrap();
    assert!(schema.text().contains("calculation"));
    assert!(ran.question("m7/round-1/critic").system[1].text.contains("facts[\"Revenue:FY2025\"]"));
}

#[test]
fn a_number_that_differs_from_the_calculation_it_cites_is_a_finding_for_both_sides() {
    let ran = one_calculation();
    let misquoted: Vec<_> = ran
        .rules()
        .into_iter()
        .filter(|(rule, _)| rule == "debate.calculation-misquoted")
        .map(|(_, subject)| subject)
        .collect();
    assert_eq!(misquoted, ["m7/round-2/D2"]);
    let score = prompt(&ran, "m7/score/D2");
    assert!(score.contains("\"15.2%\" does not match what it cites: X0:m7-D1-1"), "{score}");
}

#[test]
fn every_speaker_has_two_calculations_and_a_debate_eight() {
    let ran = run(with_calculations(4), |id| match id {
        id if is_execution(id) => executed(),
        id if id.contains("/score/") => plain(id),
        id => calculating(id, None, "result('one', 1)"),
    });
    let results = &ran.debated().calculations;
    assert_eq!(results.len(), 8);
    for speaker in ["critic", "D1", "D2", "D3"] {
        assert_eq!(results.iter().filter(|one| one.speaker == speaker).count(), 2, "{speaker}");
    }
    let ids: Vec<&str> = results.iter().map(|one| one.id.as_str()).collect();
    assert!(ids.contains(&"X0:m7-critic-2") && ids.contains(&"X0:m7-D3-2"), "{ids:?}");
    let press = prompt(&ran, "m7/round-4/critic/D3");
    assert!(press.contains("its author has none left"), "{press}");
}

#[test]
fn a_calculation_without_a_sandbox_is_recorded_as_not_run_and_the_debate_goes_on() {
    let ran = run(with_calculations(2), |id| match id {
        "m7/round-1/critic" => calculating(id, None, "result('one', 1)"),
        id if is_execution(id) => EffectResult::NotExecuted(SandboxFailure {
            kind: SandboxFailureKind::NoEngine,
            detail: "this run has no sandbox".to_owned(),
        }),
        id => plain(id),
    });
    assert_eq!(ran.debated().rounds_done, 2);
    let not_run = "Result: not run: no sandbox for calculations.";
    for reader in ["m7/round-1/D1", "m7/round-1/D3", "m7/round-2/critic/D2"] {
        assert!(prompt(&ran, reader).contains(not_run), "{reader}: {}", prompt(&ran, reader));
    }
}

#[test]
fn a_program_that_is_too_long_is_not_executed() {
    let ran = run(with_calculations(1), |id| match id {
        "m7/round-1/D2" => calculating(id, None, &"x = 1\n".repeat(61)),
        id => plain(id),
    });
    assert!(!ran.waves.iter().flatten().any(|id| is_execution(id)));
    let [one] = ran.debated().calculations.as_slice() else { panic!("one calculation") };
    assert_eq!(one.outcome_text(), "not run: it has more than 60 lines");
}

#[test]
fn debates_without_calculations_ask_and_read_as_before() {
    let ran = run(input(2), |id| match id {
        "m7/round-1/D1" => calculating(id, None, "result('one', 1)"),
        id => said(in_form(id)),
    });
    assert!(ran.asked.iter().any(|(id, _)| id == "m7/round-1/D1/ask-2"), "an unknown field");
    assert!(ran.debated().calculations.is_empty());
    let firsts = ran.asked.iter().filter(|(id, _)| !id.ends_with("/ask-2"));
    // A retry quotes the unknown field, as before.
    let mut prompts = firsts.flat_map(|(_, request)| request.prompt_texts());
    assert!(prompts.all(|text| !text.contains("attach one short Python program")));
    let schemas = ran.asked.iter().filter_map(|(_, request)| request.schema.as_ref());
    assert!(schemas.into_iter().all(|schema| !schema.text().contains("calculation")));
}

#[test]
fn an_id_does_not_tell_that_a_move_is_planted_or_debated_again() {
    for debate in ["control-1", "m7/d2", "r2/m7"] {
        let markdown = "# m7: sell more\n\nIt pays.".into();
        let move_id = debate.to_owned();
        let input = DebateInput { move_id, move_markdown: markdown, ..with_calculations(1) };
        let first = format!("{debate}/round-1/D1");
        let ran = run(input, |id| match id {
            id if id == first => calculating(&id.replace(debate, "m7"), None, "result('one', 1)"),
            id if is_execution(id) => executed(),
            id => plain(&id.replace(debate, "m7")),
        });
        assert_eq!(ran.debated().calculations[0].id, "X0:m7-D1-1");
        let shown = ran.asked.iter().flat_map(|(_, request)| request.prompt_texts());
        let shown: Vec<&str> = shown.into_iter().collect();
        assert!(shown.iter().all(|text| !text.contains(&format!("X0:{debate}"))), "{debate}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn ids_results_and_prompts_do_not_depend_on_the_order_of_answers(order in prop::collection::vec(0usize..100, 20..60)) {
        let answer = |id: &str| match id {
            id if is_execution(id) => executed(),
            id if id.contains("/score/") => plain(id),
            id => calculating(id, Some("It is 14.3% [X0:m7-critic-1]."), "result('one', 1)"),
        };
        let at = RefCell::new(0);
        let choose = |_: usize| {
            let mut at = at.borrow_mut();
            *at += 1;
            order[*at % order.len()]
        };
        let known = run(with_calculations(2), answer);
        prop_assert_eq!(known.end(), run_in_order(with_calculations(2), answer, choose).end());
    }
}
