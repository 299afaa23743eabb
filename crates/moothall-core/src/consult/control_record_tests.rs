use std::collections::BTreeMap;

use super::*;
use crate::consult::PanelRecord;
use crate::debate::{ScoreBasis, Scorecard};
use crate::verdict::{
    CaseKind, ControlCase, ControlKind, PanelCard, PanelCase, PanelJudge, PanelLabel, VerdictRules,
};

fn card(score: Option<u8>) -> Scorecard {
    Scorecard {
        scores: score.map(|score| ("impact".to_owned(), score)).into_iter().collect(),
        reasoning: String::new(),
        basis: if score.is_some() { ScoreBasis::Structured } else { ScoreBasis::NotScored },
    }
}

/// Three members score six moves with 5, and known-bad controls with these scores.
fn verdict(models: [&str; 3], controls: &[[Option<u8>; 3]]) -> PanelVerdict {
    let ids = ["P1", "P2", "P3"];
    let judges = ids.iter().zip(models);
    let judges: Vec<PanelJudge> = judges
        .map(|(id, model)| PanelJudge { id: (*id).to_owned(), model: model.to_owned() })
        .collect();
    let cases: Vec<PanelCase> = (1..=6)
        .map(|number| PanelCase { move_id: format!("m{number}"), kind: CaseKind::Move })
        .collect();
    let cards = cases.iter().flat_map(|case| {
        ids.map(|member| PanelCard {
            move_id: case.move_id.clone(),
            debate: 1,
            member: member.to_owned(),
            scorecard: card(Some(5)),
        })
    });
    let controls = (1..).zip(controls).map(|(number, scores)| {
        let cards = ids.iter().zip(scores);
        let cards: BTreeMap<String, Scorecard> =
            cards.map(|(id, score)| ((*id).to_owned(), card(*score))).collect();
        let original_cards = BTreeMap::new();
        ControlCase {
            id: format!("control-{number}"),
            kind: ControlKind::KnownBad,
            cards,
            original_cards,
        }
    });
    let record = PanelRecord {
        metrics: vec!["impact".to_owned()],
        top_score: 120,
        judges,
        label: PanelLabel::Independent,
        rules: VerdictRules::default(),
        cards: cards.collect(),
        controls: controls.collect(),
        cases,
    };
    PanelVerdict::of(record, 1).unwrap()
}

#[test]
fn controls_are_counted_by_model_over_all_runs() {
    let (low, high) = (Some(1), Some(9));
    let verdicts = [
        verdict(["a/one", "b/two", "b/two"], &[[low, low, high], [low, high, high]]),
        // A missing card shows nothing about the member.
        verdict(["a/one", "c/three", "c/three"], &[[None, low, low], [low, low, low]]),
    ];
    let found = control_records(&verdicts);
    let counted: Vec<(&str, u32, u32, u32)> =
        found.iter().map(|one| (one.model.as_str(), one.runs, one.planted, one.caught)).collect();
    assert_eq!(counted, [("a/one", 2, 3, 3), ("b/two", 1, 4, 1), ("c/three", 1, 4, 4)]);
    let weak: Vec<bool> = found.iter().map(ControlRecord::is_weak).collect();
    assert_eq!(weak, [false, true, false]);
    assert_eq!(control_records(&[]), []);
}

#[test]
fn the_interval_equals_a_calculation_by_hand() {
    let found = record("a/one", &ControlTally { runs: 12, planted: 60, caught: 58 });
    // Wilson with z = 1.96: (0.9667 + 0.0320) / 1.0640 ± 1.96 · 0.0283 / 1.0640.
    assert_eq!((found.share, found.low, found.high), (967, 886, 991));
    assert_eq!(found.text(), "58 of 60 controls caught (97 %, 95 % interval 89 to 99 %)");
    let all = record("a/one", &ControlTally { runs: 1, planted: 5, caught: 5 });
    assert_eq!((all.share, all.low, all.high), (1_000, 565, 1_000));
}
