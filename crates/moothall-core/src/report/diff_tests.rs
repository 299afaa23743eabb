use rust_decimal::Decimal;

use super::*;
use crate::consult::Proposal;
use crate::evidence::{CompanyFacts, FactSource, OriginalValue};

fn hlxi() -> FactSheet {
    let file = "../moothall/recordings/hlxi/companyfacts/CIK0009990001.json";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let facts = CompanyFacts::parse(&fs_err::read(path).unwrap()).unwrap();
    FactSheet::build(&facts, CalendarDay::parse("2026-08-13").unwrap()).unwrap()
}

fn id(text: &str) -> FactId {
    text.parse().unwrap()
}

fn one_move(move_id: &str, title: &str) -> Move {
    Move {
        move_id: move_id.to_owned(),
        analyst: "analyst_1".to_owned(),
        proposal: Proposal {
            title: title.to_owned(),
            thesis: String::new(),
            actions: Vec::new(),
            what_must_be_true: Vec::new(),
            evidence: Vec::new(),
            risks: Vec::new(),
            cost: String::new(),
            horizon: String::new(),
            kill_criteria: Vec::new(),
        },
    }
}

#[test]
fn a_diff_classifies_facts_as_restated_changed_appeared_or_gone() {
    let before = hlxi();
    let mut after = before.clone();
    let ids = ["Revenue:FY2024", "NetIncome:FY2024", "Assets:FY2024"].map(id);
    let [restated, changed, gone] = &ids;
    let million = Decimal::from(1_000_000);
    let fact = after.facts.get_mut(restated).unwrap();
    let was = fact.value;
    fact.value = Decimal::from(5_000) * million;
    let FactSource::Filed(filed) = &mut fact.source else { panic!("it is filed") };
    filed.restated_from = Some(OriginalValue { value: was, filed: filed.filed });
    after.facts.get_mut(changed).unwrap().value = Decimal::from(300) * million;
    after.facts.remove(gone);
    let derived = after.facts.values_mut().find(|fact| fact.filed().is_none()).unwrap();
    derived.value += Decimal::ONE;

    let compared = facts(Some(&before), Some(&after));
    let listed = |id: &FactId, change, now: Option<&str>| FactDiff {
        id: id.clone(),
        change,
        before: before.display_value(id),
        after: now.map(str::to_owned),
    };
    let mut expected = vec![
        listed(restated, DiffKind::Restated, Some("$5,000 million")),
        listed(changed, DiffKind::Changed, Some("$300,000 thousand")),
        listed(gone, DiffKind::Went, None),
    ];
    expected.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(compared.listed, expected);
    assert_eq!((compared.derived, compared.unchanged), (1, before.facts.len() - 4));
    assert!(compared.appeared.is_empty() && compared.went.is_empty());
    let back = facts(Some(&after), Some(&before));
    let changes: Vec<DiffKind> = back.listed.iter().map(|fact| fact.change).collect();
    assert_eq!(changes.iter().filter(|change| **change == DiffKind::Appeared).count(), 1);
}

#[test]
fn a_diff_lists_changed_scores_by_decision_maker_and_metric() {
    let scores_of = |scores: &[(&str, &str, u8)]| -> Scores {
        let key = |who: &str, metric: &str| (who.to_owned(), metric.to_owned());
        scores.iter().map(|(who, metric, score)| (key(who, metric), *score)).collect()
    };
    let before = scores_of(&[("D1", "value", 7), ("D1", "risk", 4), ("D2", "value", 6)]);
    let after = scores_of(&[("D1", "value", 7), ("D1", "risk", 5), ("D3", "value", 8)]);
    let score = |who: &str, metric: &str, before, after| ScoreDiff {
        decision_maker: who.to_owned(),
        metric: metric.to_owned(),
        before,
        after,
    };
    assert_eq!(
        scores(&before, &after),
        [
            score("D1", "risk", Some(4), Some(5)),
            score("D2", "value", Some(6), None),
            score("D3", "value", None, Some(8)),
        ]
    );
}

#[test]
fn a_diff_matches_moves_by_text_and_equal_texts_by_number() {
    let old = [
        one_move("m1", "Close the plant in Ohio"),
        one_move("m2", "Buy the largest competitor"),
        one_move("m3", "Lease the fleet"),
    ];
    let new = [
        one_move("m1", "Buy the largest competitor"),
        one_move("m2", "Raise prices abroad"),
        one_move("m3", "Lease the fleet"),
        one_move("m4", "Lease the fleet"),
    ];
    let (old, new): (Vec<&Move>, Vec<&Move>) = (old.iter().collect(), new.iter().collect());
    assert_eq!(pairs(&old, &new), [(2, 2), (1, 0), (2, 3)]);
}

#[test]
fn compared_moves_are_ordered_by_tier_and_then_by_rank() {
    let place = |move_id: &str, tier: Option<VerdictTier>, rank: Option<u32>| {
        Some(MovePlace {
            move_id: move_id.to_owned(),
            title: String::new(),
            rank,
            recommended: false,
            total: None,
            tier: tier.map(|tier| tier.text().to_owned()),
        })
    };
    let mut places = [
        None,
        place("m1", None, None),
        place("m2", None, Some(2)),
        place("m3", Some(VerdictTier::Behind), None),
        place("m4", None, Some(1)),
        place("m5", Some(VerdictTier::Middle), None),
        place("m6", Some(VerdictTier::Lead), None),
    ];
    places.sort_by_key(order);
    let ids = places.each_ref().map(|place| place.as_ref().map(|place| place.move_id.as_str()));
    // A removed move and one without a rank keep their order.
    let expected = [Some("m6"), Some("m5"), Some("m3"), Some("m4"), Some("m2"), None, Some("m1")];
    assert_eq!(ids, expected);
}
