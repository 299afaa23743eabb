use super::super::result::DebateStance;
use super::super::turn::ObjectionAnswer;
use super::*;

/// How one turn refers to `O1`.
#[derive(Clone, Copy)]
enum Says {
    Presses,
    Withdraws,
    PressesAndWithdraws,
    Nothing,
    Answers,
    Concedes,
    ConcedesInPart,
}
use Says::{Answers, Concedes, ConcedesInPart, Nothing, Presses, PressesAndWithdraws, Withdraws};

fn raised(id: &str, severity: ObjectionSeverity) -> RaisedObjection {
    RaisedObjection {
        id: id.to_owned(),
        severity,
        text: "No buyer.".to_owned(),
        evidence: vec!["F0:Revenue:FY2025".to_owned()],
    }
}

fn critic(objections: Vec<RaisedObjection>, withdrawn: &[&str]) -> CriticTurn {
    let withdrawn = withdrawn.iter().map(|&id| id.to_owned()).collect();
    CriticTurn { message: "a".to_owned(), objections, withdrawn }
}

fn decision_maker(answers: &[&str], conceded: &[&str]) -> DecisionMakerTurn {
    let answer = |id: &&str| ObjectionAnswer { objection: (*id).to_owned(), evidence: Vec::new() };
    DecisionMakerTurn {
        message: "a".to_owned(),
        stance: DebateStance::Hold,
        answers: answers.iter().map(answer).collect(),
        conceded: conceded.iter().map(|&id| id.to_owned()).collect(),
        scores: None,
    }
}

/// Checks the state of the only objection of an opening after these turns, which alternate starting
/// with a decision maker.
#[track_caller]
fn check(turns: &[Says], expected: ObjectionState) {
    let major = ObjectionSeverity::Major;
    let (mut objection_log, _) = ObjectionLog::opening(&critic(vec![raised("new", major)], &[]));
    for (turn, says) in turns.iter().enumerate() {
        let press = || vec![raised("O1", major)];
        match (turn % 2, says) {
            (0, Answers) => {
                drop(objection_log.apply_decision_maker(&decision_maker(&["O1"], &[]), 1))
            }
            (0, Concedes) => {
                drop(objection_log.apply_decision_maker(&decision_maker(&[], &["O1"]), 1))
            }
            (0, ConcedesInPart) => {
                drop(objection_log.apply_decision_maker(&decision_maker(&["O1"], &["O1"]), 1));
            }
            (0, Nothing) => drop(objection_log.apply_decision_maker(&decision_maker(&[], &[]), 1)),
            (1, Presses) => drop(objection_log.apply_critic("D1", &critic(press(), &[]), 2)),
            (1, Withdraws) => drop(objection_log.apply_critic("D1", &critic(vec![], &["O1"]), 2)),
            (1, PressesAndWithdraws) => {
                drop(objection_log.apply_critic("D1", &critic(press(), &["O1"]), 2));
            }
            (1, Nothing) => drop(objection_log.apply_critic("D1", &critic(vec![], &[]), 2)),
            _ => panic!("that is not theirs to say"),
        }
    }
    assert_eq!(objection_log.cases[0].state(), expected);
}

#[test]
fn the_state_of_an_objection_is_derived_from_the_turns() {
    use ObjectionState::{Answered, Conceded, Open, Partly};
    check(&[], Open);
    check(&[Nothing, Nothing], Open);
    check(&[Answers], Answered);
    check(&[Answers, Nothing], Answered);
    // Pressed again after the answer, and settled only if the critic does not press it once more.
    check(&[Answers, Presses], Partly);
    check(&[Answers, Presses, Answers], Partly);
    check(&[Answers, Presses, Answers, Nothing], Answered);
    check(&[Answers, Presses, Nothing, Nothing], Partly);
    check(&[Answers, Presses, Answers, Presses], Partly);
    // Withdrawn.
    check(&[Nothing, Withdraws], Answered);
    check(&[Answers, Presses, Nothing, Withdraws], Answered);
    check(&[Nothing, Withdraws, Nothing, Presses], Open);
    check(&[Answers, PressesAndWithdraws], Partly);
    // Conceded: later turns do not change it.
    check(&[Concedes], Conceded);
    check(&[Concedes, Withdraws], Conceded);
    check(&[Concedes, Presses, Answers, Nothing], Conceded);
    check(&[Nothing, Withdraws, Concedes], Answered);
    check(&[ConcedesInPart], Partly);
    check(&[ConcedesInPart, Nothing, Answers, Nothing], Partly);
    check(&[ConcedesInPart, Nothing, Concedes], Conceded);
    check(&[Concedes, Nothing, ConcedesInPart], Conceded);
}

#[test]
fn objection_ids_are_assigned_by_code_and_read_leniently() {
    let major = ObjectionSeverity::Major;
    let (mut objection_log, opening) =
        ObjectionLog::opening(&critic(vec![raised("X", major), raised("X", major)], &["O1"]));
    let recorded = |index, id: &str, is_new| ObjectionRef { index, id: id.to_owned(), is_new };
    let expected = vec![recorded(0, "O1", true), recorded(1, "O2", true)];
    assert_eq!(opening, CriticTurnRecord { objections: expected, withdrawn: Vec::new() });

    let turn = critic(
        vec![
            raised("new", major),
            raised(" [o2]: ", ObjectionSeverity::Fatal),
            raised("D1-O1", major),
        ],
        &["O9", "o1"],
    );
    let second = objection_log.apply_critic("D1", &turn, 2);
    let expected = vec![
        recorded(0, "D1-O1", true),
        recorded(1, "O2", false),
        // An id assigned in this turn cannot be referenced in it.
        recorded(2, "D1-O2", true),
    ];
    assert_eq!(second, CriticTurnRecord { objections: expected, withdrawn: vec!["O1".to_owned()] });
    assert_eq!(objection_log.cases[1].severity, ObjectionSeverity::Fatal);
    assert_eq!(objection_log.own().len(), 2);

    let answered =
        objection_log.apply_decision_maker(&decision_maker(&["d1-o2", "O7"], &["O2", "O1"]), 1);
    // O1 was withdrawn, so it cannot be conceded.
    assert_eq!(
        answered,
        DecisionMakerTurnRecord {
            answered: vec!["D1-O2".to_owned()],
            conceded: vec!["O2".to_owned()]
        }
    );
}

#[test]
fn the_objection_log_is_limited_in_size() {
    let many = || vec![raised("new", ObjectionSeverity::Minor); 12];
    let (mut objection_log, _) = ObjectionLog::opening(&critic(many(), &[]));
    for round in 2..20 {
        let raised = objection_log.apply_critic("D1", &critic(many(), &[]), round);
        assert!(raised.objections.len() <= 12);
    }
    assert_eq!(objection_log.cases.len(), 12 + MAX_RECORDED);
    assert_eq!(objection_log.cases[0].evidence, ["F0:Revenue:FY2025"]);
}
