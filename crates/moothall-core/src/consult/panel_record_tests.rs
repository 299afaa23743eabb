use std::collections::BTreeMap;

use super::*;
use crate::debate::{ScoreBasis, Scorecard};
use crate::verdict::VerdictRules;

/// Ten moves with clear differences, scored by three members.
fn record() -> PanelRecord {
    let judges: Vec<PanelJudge> = ["P1", "P2", "P3"]
        .iter()
        .zip(["a/one", "b/two", "c/three"])
        .map(|(id, model)| PanelJudge { id: (*id).into(), model: model.into() })
        .collect();
    let cases: Vec<PanelCase> = (1..=10)
        .map(|number| PanelCase { move_id: format!("m{number}"), kind: CaseKind::Move })
        .collect();
    let mut cards = Vec::new();
    for (number, case) in (0_u8..).zip(&cases) {
        for (place, judge) in (0_u8..).zip(&judges) {
            let score = 1 + (number + (number * place) % 3).min(9);
            let scores = [("impact".to_owned(), score), ("risk".to_owned(), score)].into();
            cards.push(PanelCard {
                move_id: case.move_id.clone(),
                debate: 1,
                member: judge.id.clone(),
                scorecard: Scorecard {
                    scores,
                    reasoning: String::new(),
                    basis: ScoreBasis::Structured,
                },
            });
        }
    }
    PanelRecord {
        metrics: vec!["impact".to_owned(), "risk".to_owned()],
        top_score: 120,
        judges,
        label: PanelLabel::Independent,
        rules: VerdictRules::default(),
        cases,
        cards,
        controls: Vec::new(),
    }
}

#[test]
fn a_change_of_one_point_on_any_card_changes_the_record_and_its_verdict_is_derived_again() {
    let verdict = PanelVerdict::of(record(), 1).unwrap();
    let stored = serde_json::to_string(&verdict).unwrap();
    let read: PanelVerdict = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, verdict);
    assert_eq!(read.record.tiers().unwrap(), verdict.tiers);
    for at in 0..verdict.record.cards.len() {
        let mut altered = verdict.record.clone();
        let scores: &mut BTreeMap<String, u8> = &mut altered.cards[at].scorecard.scores;
        let score = scores.get_mut("impact").unwrap();
        *score = if *score == 10 { 9 } else { *score + 1 };
        assert_ne!(PanelVerdict::of(altered, 1).unwrap(), verdict);
    }
}

#[test]
fn cards_that_do_not_belong_to_the_record_give_no_verdict() {
    let mut strange = record();
    strange.cards[0].member = "P9".to_owned();
    assert_eq!(PanelVerdict::of(strange, 1), None);
    let mut twice = record();
    twice.cards.push(twice.cards[0].clone());
    assert_eq!(PanelVerdict::of(twice, 1), None);
}
