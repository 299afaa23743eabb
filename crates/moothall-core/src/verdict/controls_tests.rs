use super::super::world::{card_of_sum, move_id, scale};
use super::super::{PanelCard, PanelCase, PanelJudge};
use super::*;
use crate::debate::ScoreBasis;

const MEMBERS: [&str; 3] = ["P1", "P2", "P3"];

/// Seven moves; each member's median is a sum of 23.
fn table() -> CardTable {
    let judge = |id: &str| PanelJudge { id: id.into(), model: id.to_lowercase() };
    let case = |index: usize| PanelCase { move_id: move_id(index), kind: CaseKind::Move };
    let mut cases: Vec<PanelCase> = (0..7).map(case).collect();
    cases.push(PanelCase { move_id: "m0".into(), kind: CaseKind::DoNothing });
    let mut table = CardTable::new(scale(), MEMBERS.map(judge).into(), cases.clone()).unwrap();
    for (sum, case) in (20..).zip(cases) {
        for member in MEMBERS {
            let (move_id, member) = (case.move_id.clone(), member.to_owned());
            let scorecard = card_of_sum(sum);
            table.add(&PanelCard { move_id, debate: 1, member, scorecard }).unwrap();
        }
    }
    table
}

fn cards(sums: [u32; 3]) -> BTreeMap<String, Scorecard> {
    MEMBERS.into_iter().zip(sums).map(|(id, sum)| (id.to_owned(), card_of_sum(sum))).collect()
}

fn bad(id: &str, sums: [u32; 3]) -> ControlCase {
    let (kind, cards) = (ControlKind::KnownBad, cards(sums));
    ControlCase { id: id.into(), kind, cards, original_cards: BTreeMap::new() }
}

fn copy(id: &str, sums: [u32; 3], original: [u32; 3]) -> ControlCase {
    let kind = ControlKind::WeakenedCopy("m2".into());
    ControlCase { id: id.into(), kind, cards: cards(sums), original_cards: cards(original) }
}

fn caught() -> Vec<ControlCase> {
    vec![
        bad("bad-1", [10; 3]),
        bad("bad-2", [22; 3]),
        copy("copy-1", [20; 3], [21; 3]),
        copy("copy-2", [30; 3], [40; 3]),
        copy("copy-3", [4; 3], [8; 3]),
    ]
}

fn report(controls: &[ControlCase]) -> ControlReport {
    ControlReport::of(&table(), controls).unwrap()
}

#[test]
fn a_panel_passes_only_with_every_control_caught() {
    let mut controls = caught();
    assert_eq!(report(&controls).check, PanelCheck::Passed);
    assert_eq!(report(&controls[..4]).check, PanelCheck::Passed);
    assert_eq!(report(&controls[..3]).check, PanelCheck::Doubtful);
    assert_eq!(report(&[]).check, PanelCheck::Doubtful);
    // Equal to the median, and equal to the original, is not below.
    controls[0] = bad("bad-1", [23; 3]);
    assert_eq!(report(&controls).check, PanelCheck::Doubtful);
    controls[2] = copy("copy-1", [21; 3], [21; 3]);
    let failed = report(&controls);
    assert_eq!((failed.check, failed.left_out.len()), (PanelCheck::Failed, 0));
    assert_eq!(failed.results.iter().filter(|result| !result.is_caught).count(), 2);
}

#[test]
fn a_member_that_misses_three_controls_is_left_out() {
    let mut controls = caught();
    controls[0] = bad("bad-1", [30, 10, 10]);
    controls[2] = copy("copy-1", [22, 20, 20], [21, 22, 22]);
    let two = report(&controls);
    assert!(two.left_out.is_empty());
    assert_eq!(two.results[0].caught_by, ["P2".to_owned(), "P3".to_owned()].into());
    controls[4] = copy("copy-3", [9, 4, 4], [8; 3]);
    let three = report(&controls);
    assert_eq!((three.check, three.left_out), (PanelCheck::Passed, ["P1".to_owned()].into()));
}

#[test]
fn a_missing_card_does_not_count_as_caught() {
    let mut controls = caught();
    for control in &mut controls[..3] {
        let card = control.cards.get_mut("P3").unwrap();
        card.basis = ScoreBasis::NotScored;
        card.scores.clear();
    }
    let missing = report(&controls);
    assert_eq!(missing.left_out, ["P3".to_owned()].into());
    assert_eq!(missing.check, PanelCheck::Passed);
    controls[3].cards.clear();
    assert_eq!(report(&controls).check, PanelCheck::Doubtful);
}

#[test]
fn invalid_cards_of_controls_are_refused() {
    let mut controls = caught();
    controls[0].cards.insert("P9".into(), card_of_sum(20));
    let refused = ControlReport::of(&table(), &controls);
    assert_eq!(refused, Err(InvalidCard::UnknownMember("P9".into())));
    let mut controls = caught();
    controls[0]
        .cards
        .insert("P1".into(), Scorecard { basis: ScoreBasis::Neutral, ..card_of_sum(20) });
    let (move_id, member) = ("bad-1".to_owned(), "P1".to_owned());
    let refused = ControlReport::of(&table(), &controls);
    assert_eq!(refused, Err(InvalidCard::Scores { move_id, member }));
}

#[test]
fn a_warning_says_what_was_missed_and_what_follows() {
    let mut controls = caught();
    assert_eq!(report(&controls).warning(), None);
    let few = "Only 3 controls were planted; 4 are needed. Treat the tiers with care.";
    assert_eq!(report(&controls[..3]).warning().as_deref(), Some(few));
    controls[2] = copy("copy-1", [21; 3], [21; 3]);
    let one = "The panel missed 1 of 5 planted controls (weakened copy of m2). Treat the tiers \
               with care.";
    assert_eq!(report(&controls).warning().as_deref(), Some(one));
    controls[0] = bad("bad-1", [23; 3]);
    let two = "The panel missed 2 of 5 planted controls. No move is recommended; the order below \
               is shown for inspection only.";
    assert_eq!(report(&controls).warning().as_deref(), Some(two));
    let small = ControlReport { check: PanelCheck::Failed, ..report(&caught()) };
    let few = "Fewer than 3 members of the panel gave usable scores. No move is recommended; the \
               order below is shown for inspection only.";
    assert_eq!(small.warning().as_deref(), Some(few));
}
