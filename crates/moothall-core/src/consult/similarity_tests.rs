use super::*;
use crate::consult::Proposal;

fn a_move(id: &str, title: &str, thesis: &str, action: &str) -> Move {
    Move {
        move_id: id.to_owned(),
        analyst: "analyst_1".to_owned(),
        proposal: Proposal {
            title: title.to_owned(),
            thesis: thesis.to_owned(),
            actions: vec![action.to_owned()],
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
fn similar_moves_are_marked_on_both_sides() {
    let moves = [
        a_move(
            "m1",
            "Open own stores in India",
            "Demand in India grows and partners keep the margin [F0:Revenue:FY2025].",
            "Lease ten stores in three cities",
        ),
        a_move(
            "m2",
            "Cut stock that lies too long",
            "Inventory days rose for three years [F0:DIO:FY2025].",
            "Sell old parts at a discount",
        ),
        a_move(
            "m3",
            "Opening own stores in India",
            "Indian demand grows while partners keep the margin [F0:GrossMargin:FY2025].",
            "Lease twelve stores in three Indian cities",
        ),
    ];
    let expected: BTreeMap<String, BTreeSet<String>> = [("m1", "m3"), ("m3", "m1")]
        .map(|(one, other)| (one.to_owned(), BTreeSet::from([other.to_owned()])))
        .into();
    assert_eq!(similar(&moves), expected);
}

#[test]
fn opposite_moves_on_the_same_facts_are_not_alike() {
    let facts = "[F0:Cash:FY2025; F0:TotalDebt:FY2025; F0:FreeCashFlow:FY2025]";
    let moves = [
        a_move("m1", "Repay debt early", &format!("Interest eats profit {facts}."), "Call bonds"),
        a_move("m2", "Borrow to expand", &format!("Money is cheap {facts}."), "Issue notes"),
    ];
    assert_eq!(similar(&moves), BTreeMap::new());
}

#[test]
fn moves_are_similar_if_they_share_at_least_half_of_their_words() {
    let one = a_move("m1", "alpha bravo charlie delta", "", "");
    let half = a_move("m2", "alpha bravo", "", "");
    let less = a_move("m3", "alpha bravo echo", "", "");
    assert_eq!(similar([&one, &half]).len(), 2);
    assert_eq!(similar([&one, &less]).len(), 0);
}

#[test]
fn empty_moves_are_not_similar() {
    let empty = [a_move("m1", "", "", ""), a_move("m2", "", "", "")];
    assert_eq!(similar(&empty), BTreeMap::new());
}
