use super::super::world::{card_of_sum, scale};
use super::super::{PanelCard, PanelJudge};
use super::*;

const MEMBERS: [&str; 4] = ["P1", "P2", "P3", "P4"];

/// A table with one debate; the sum of scores of each case by all members, and one point of noise.
fn table(cases: &[(&str, CaseKind, u32)]) -> CardTable {
    let judge = |id: &str| PanelJudge { id: id.into(), model: id.to_lowercase() };
    let case = |(id, kind, _): &(&str, CaseKind, u32)| PanelCase {
        move_id: (*id).to_owned(),
        kind: *kind,
    };
    let judges = MEMBERS.map(judge).into();
    let mut table = CardTable::new(scale(), judges, cases.iter().map(case).collect()).unwrap();
    for (index, (id, _, sum)) in (0..).zip(cases) {
        for (number, member) in (0..).zip(MEMBERS) {
            let (move_id, member) = ((*id).to_owned(), member.to_owned());
            let scorecard = card_of_sum(sum + (number + index) % 2);
            table.add(&PanelCard { move_id, debate: 1, member, scorecard }).unwrap();
        }
    }
    table
}

/// One clear winner, a group and doing nothing.
fn moves() -> Vec<(&'static str, CaseKind, u32)> {
    use CaseKind::{DoNothing, Move};
    vec![
        ("m1", Move, 20),
        ("m2", Move, 38),
        ("m3", Move, 21),
        ("m4", Move, 19),
        ("m5", Move, 8),
        ("m6", Move, 20),
        ("m7", Move, 22),
        ("m0", DoNothing, 18),
    ]
}

fn controls(check: PanelCheck) -> ControlReport {
    ControlReport { check, results: Vec::new(), left_out: BTreeSet::new() }
}

fn verdict(cases: &[(&str, CaseKind, u32)]) -> TierList {
    let controls = controls(PanelCheck::Passed);
    TierList::of(&table(cases), &VerdictRules::default(), PanelLabel::Independent, controls)
}

fn ids(of: &[&MoveEstimate]) -> Vec<String> {
    of.iter().map(|one| one.move_id.clone()).collect()
}

#[test]
fn a_clear_winner_leads_alone() {
    let verdict = verdict(&moves());
    assert_eq!(verdict.headline.text(), "1 move leads");
    assert_eq!(ids(&verdict.tier(VerdictTier::Lead)), ["m2"]);
    assert_eq!(ids(&verdict.recommended()), ["m2"]);
    assert!(verdict.tier(VerdictTier::Behind).iter().any(|one| one.move_id == "m5"));
    let pair = MovePair { better: "m2".into(), worse: "m5".into() };
    assert!(verdict.told_apart.contains(&pair));
    let shown = |id: &str| {
        let one = verdict.estimates.iter().find(|one| one.move_id == id).unwrap();
        !one.is_not_shown_to_beat_doing_nothing()
    };
    assert!(shown("m2") && !shown("m5") && !shown("m1"));
}

#[test]
fn close_moves_lead_together_and_at_most_three_are_recommended() {
    let mut cases = moves();
    for (_, kind, sum) in &mut cases {
        *sum = if *kind == CaseKind::DoNothing { 4 } else { 20 };
    }
    cases[4].2 = 6;
    let verdict = verdict(&cases);
    assert_eq!(verdict.headline, VerdictHeadline::Lead { moves: 6 });
    assert_eq!(verdict.headline.text(), "6 moves lead; the panel cannot tell them apart");
    assert_eq!(ids(&verdict.recommended()), ["m1", "m2", "m3"]);
}

#[test]
fn doing_nothing_can_lead_but_is_never_recommended() {
    let mut cases = moves();
    cases[7].2 = 38;
    let verdict = verdict(&cases);
    let text = "doing nothing cannot be told apart from the best moves";
    assert_eq!(verdict.headline.text(), text);
    assert!(ids(&verdict.tier(VerdictTier::Lead)).contains(&"m0".to_owned()));
    assert!(!ids(&verdict.recommended()).contains(&"m0".to_owned()));
    let do_nothing = verdict.estimates.last().unwrap();
    assert_eq!((do_nothing.chance_top3, do_nothing.chance_above_do_nothing), (None, None));
}

#[test]
fn a_move_that_is_held_back_has_a_score_but_no_tier() {
    let mut cases = moves();
    cases[1].1 = CaseKind::HeldMove;
    let verdict = verdict(&cases);
    let held = &verdict.estimates[1];
    assert_eq!((held.tier, held.chance_best, held.chance_top3), (None, None, None));
    assert!(held.score > 800 && held.interval.is_some());
    assert!(!ids(&verdict.tier(VerdictTier::Lead)).contains(&"m2".to_owned()));
    assert!(verdict.told_apart.iter().all(|pair| pair.better != "m2"));
    assert_eq!(ids(&verdict.moves_by_estimate())[0], "m2");
}

#[test]
fn a_failed_panel_recommends_nothing() {
    let (table, rules) = (table(&moves()), VerdictRules::default());
    let of = |controls| TierList::of(&table, &rules, PanelLabel::Independent, controls);
    let failed = of(controls(PanelCheck::Failed));
    assert_eq!(failed.headline.text(), "no verdict: the panel failed its controls");
    assert!(failed.recommended().is_empty());
    assert_eq!(failed.estimates.len(), 8);
}

#[test]
fn members_are_left_out_until_too_few_are_left() {
    let (table, rules) = (table(&moves()), VerdictRules::default());
    let without = |members: &[&str]| {
        let left_out = members.iter().map(|one| (*one).to_owned()).collect();
        let controls = ControlReport { left_out, ..controls(PanelCheck::Passed) };
        TierList::of(&table, &rules, PanelLabel::Independent, controls)
    };
    let three = without(&["P4"]);
    assert_eq!((three.components.models, three.headline.text().as_str()), (3, "1 move leads"));
    let two = without(&["P3", "P4"]);
    assert_eq!((two.components.models, two.headline), (4, VerdictHeadline::PanelFailed));
}

#[test]
fn few_moves_have_scores_but_no_tiers() {
    let verdict = verdict(&moves()[..5]);
    assert_eq!(verdict.headline.text(), "no tiers: fewer than 6 moves were scored");
    let is_plain = |one: &MoveEstimate| one.tier.is_none() && one.interval.is_none();
    assert!(verdict.estimates.iter().all(is_plain));
    assert!(verdict.recommended().is_empty() && verdict.told_apart.is_empty());
}

#[test]
fn intervals_stay_within_the_scale_and_cases_without_cards_are_named() {
    let mut cases = moves();
    cases[1].2 = 39;
    cases[4].2 = 4;
    let mut table = table(&cases);
    let rules = VerdictRules { interval: 999, ..VerdictRules::default() };
    let verdict = TierList::of(&table, &rules, PanelLabel::Mixed, controls(PanelCheck::Passed));
    let ends = verdict.estimates.iter().filter_map(|one| one.interval);
    assert!(ends.clone().all(|one| one.low >= 120 && one.high <= 1_200 && one.low < one.high));
    assert!(ends.clone().any(|one| one.high == 1_200) && ends.clone().any(|one| one.low == 120));
    let cases = [table.cases(), &[PanelCase { move_id: "m8".into(), kind: CaseKind::Move }]];
    table = CardTable::new(scale(), table.judges().to_vec(), cases.concat()).unwrap();
    let empty = TierList::of(&table, &rules, PanelLabel::Mixed, controls(PanelCheck::Passed));
    assert_eq!((empty.not_scored.len(), empty.headline), (9, VerdictHeadline::TooFewMoves));
}

/// The JSON of a verdict is part of receipts and of the API.
#[test]
fn a_verdict_matches_its_snapshot() {
    insta::assert_json_snapshot!(verdict(&moves()));
}
