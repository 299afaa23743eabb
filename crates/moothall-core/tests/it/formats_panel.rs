//! Stored forms of panels and verdicts.

use std::collections::BTreeMap;

use insta::assert_json_snapshot;
use moothall_core::consult::{
    Committee, PanelRecord, PanelVerdict, VerdictMode, VerdictPlan, VerdictRequest, board, panel,
};
use moothall_core::debate::{DebateScoring, ObjectionReply, ScoreBasis, Scorecard};
use moothall_core::verdict::{
    CaseKind, ControlCase, ControlKind, PanelCard, PanelCase, PanelJudge, PanelLabel, VerdictRules,
};
use moothall_core::{RunEvent, RunEventBody};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[track_caller]
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
}

fn card(score: u8) -> Scorecard {
    Scorecard {
        scores: BTreeMap::from([("risk".to_owned(), score)]),
        reasoning: String::new(),
        basis: ScoreBasis::Structured,
    }
}

/// Six moves, one of them held back, and doing nothing.
fn verdict() -> PanelVerdict {
    let judges: Vec<PanelJudge> = ["P1", "P2", "P3"]
        .map(|id| PanelJudge { id: id.to_owned(), model: format!("demo/{id}") })
        .into();
    let kind = |number| match number {
        0 => CaseKind::DoNothing,
        6 => CaseKind::HeldMove,
        _ => CaseKind::Move,
    };
    let cases: Vec<PanelCase> = (0..=6)
        .map(|number| PanelCase { move_id: format!("m{number}"), kind: kind(number) })
        .collect();
    let mut cards = Vec::new();
    for (number, case) in (0_u8..).zip(&cases) {
        for (place, judge) in (0_u8..).zip(&judges) {
            cards.push(PanelCard {
                move_id: case.move_id.clone(),
                debate: 1,
                member: judge.id.clone(),
                scorecard: card(2 + number + (number + place) % 2),
            });
        }
    }
    let by_member =
        |score: u8| judges.iter().map(|judge| (judge.id.clone(), card(score))).collect();
    let controls = vec![
        ControlCase {
            id: "control-1".to_owned(),
            kind: ControlKind::KnownBad,
            cards: by_member(1),
            original_cards: BTreeMap::new(),
        },
        ControlCase {
            id: "m2-weakened".to_owned(),
            kind: ControlKind::WeakenedCopy("m2".to_owned()),
            cards: by_member(3),
            original_cards: by_member(5),
        },
    ];
    let record = PanelRecord {
        metrics: vec!["risk".to_owned()],
        top_score: 120,
        judges,
        label: PanelLabel::Independent,
        rules: VerdictRules::default(),
        cases,
        cards,
        controls,
    };
    PanelVerdict::of(record, 1).unwrap()
}

#[test]
fn verdicts_keep_their_serialized_form() {
    let verdict = verdict();
    round_trip(&verdict);
    assert_json_snapshot!(verdict);
}

#[test]
fn the_event_of_a_verdict_keeps_its_serialized_form() {
    let again = vec!["m5".to_owned()];
    let tiers = Box::new(verdict().tiers);
    let (headline, warning) = (tiers.headline.text(), tiers.controls.warning());
    let control_scores = verdict().record.control_scores();
    let body = RunEventBody::VerdictUpdated {
        stage: 2,
        again,
        headline,
        warning,
        stability: None,
        control_scores,
        tiers,
    };
    let event = RunEvent::of_run(body);
    round_trip(&event);
    assert_eq!(event.key, "verdict-2:verdict_updated");
    assert_json_snapshot!(event);
}

#[test]
fn committees_with_a_panel_keep_their_serialized_form() {
    let mut committee = board();
    let request = VerdictRequest { mode: Some(VerdictMode::Full), ..VerdictRequest::default() };
    committee.request_verdict(&request).unwrap();
    round_trip(&committee);
    let Committee { verdict, .. } = &committee;
    assert_json_snapshot!((verdict, DebateScoring::DefendersAndPanel, DebateScoring::Panel));
    // A stored plan without the key was made without forecasts.
    let plan: VerdictPlan = serde_json::from_str("{}").unwrap();
    assert!(!plan.asks_forecasts());
    let resolved = VerdictPlan { forecasts: Some(true), announcements: true, ..plan };
    assert_eq!(Some(resolved), committee.verdict);
    assert_eq!(committee.panel, panel());
    let stored = serde_json::to_value(board()).unwrap();
    assert!(stored.get("panel").is_none() && stored.get("verdict").is_none());
    round_trip(&ObjectionReply { round: 2, text: "Yes.".into(), evidence: Vec::new() });
}
