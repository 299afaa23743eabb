use super::super::world::{card_of_sum, scale};
use super::*;

fn judges(models: [&str; 3]) -> Vec<PanelJudge> {
    let judge = |(id, model): (&str, &str)| PanelJudge { id: id.into(), model: model.into() };
    ["P1", "P2", "P3"].into_iter().zip(models).map(judge).collect()
}

fn cases(count: u32) -> Vec<PanelCase> {
    let case = |number| PanelCase { move_id: format!("m{number}"), kind: CaseKind::Move };
    (1..=count).map(case).collect()
}

fn table(moves: u32) -> CardTable {
    CardTable::new(scale(), judges(["x", "y", "x"]), cases(moves)).unwrap()
}

fn card(move_id: &str, debate: u32, member: &str, sum: u32) -> PanelCard {
    let scorecard = card_of_sum(sum);
    PanelCard { move_id: move_id.into(), debate, member: member.into(), scorecard }
}

#[test]
fn scores_are_counted_out_of_120_for_any_number_of_metrics() {
    let mut table = table(1);
    table.add(&card("m1", 1, "P1", 40)).unwrap();
    table.add(&card("m1", 1, "P2", 4)).unwrap();
    table.add(&card("m1", 2, "P2", 25)).unwrap();
    let expected = vec![vec![Some(120.0), Some(12.0), None], vec![None, Some(75.0), None]];
    assert_eq!(table.points(0), expected);
    let eight = CardScale::new((0..8).map(|number| number.to_string()), 240);
    assert_eq!((eight.points(80), eight.points(8), eight.range()), (240.0, 24.0, (24.0, 240.0)));
}

#[test]
fn members_with_the_same_model_are_grouped() {
    assert_eq!(table(1).models(), (vec![0, 1, 0], 2));
}

#[test]
fn invalid_cards_are_refused() {
    let mut table = table(2);
    let mut refuse = |card: &PanelCard| table.add(card).unwrap_err();
    assert_eq!(refuse(&card("m3", 1, "P1", 20)), InvalidCard::UnknownCase("m3".into()));
    assert_eq!(refuse(&card("m1", 1, "P4", 20)), InvalidCard::UnknownMember("P4".into()));
    let scores = InvalidCard::Scores { move_id: "m1".into(), member: "P1".into() };
    let changes: [fn(&mut Scorecard); 5] = [
        |card| card.basis = ScoreBasis::Neutral,
        |card| card.scores.extend([("a".to_owned(), 11)]),
        |card| card.scores.extend([("a".to_owned(), 0)]),
        |card| card.scores.extend([("e".to_owned(), 5)]),
        |card| card.scores.retain(|metric, _| metric != "a"),
    ];
    for change in changes {
        let mut changed = card("m1", 1, "P1", 20);
        change(&mut changed.scorecard);
        assert_eq!(refuse(&changed), scores);
    }
    table.add(&card("m1", 1, "P1", 20)).unwrap();
    let (move_id, member) = ("m1".to_owned(), "P1".to_owned());
    let repeated = InvalidCard::RepeatedCard { move_id, debate: 1, member };
    assert_eq!(table.add(&card("m1", 1, "P1", 20)), Err(repeated));
}

#[test]
fn ids_must_be_unique() {
    let twice = [cases(1), cases(1)].concat();
    let refused = CardTable::new(scale(), judges(["x", "y", "z"]), twice);
    assert_eq!(refused, Err(InvalidCard::RepeatedId("m1".into())));
    let twice = [judges(["x", "y", "z"]), judges(["x", "y", "z"])].concat();
    let refused = CardTable::new(scale(), twice, cases(1));
    assert_eq!(refused, Err(InvalidCard::RepeatedId("P1".into())));
}

#[test]
fn a_member_without_a_fifth_of_its_cards_is_short_of_cards() {
    let mut table = table(10);
    for number in 1..=10 {
        let id = format!("m{number}");
        table.add(&card(&id, 1, "P1", 20)).unwrap();
        let mut second = card(&id, 1, "P2", 20);
        let mut third = card(&id, 1, "P3", 20);
        let not_scored = |card: &mut PanelCard| {
            card.scorecard.basis = ScoreBasis::NotScored;
            card.scorecard.scores.clear();
        };
        if number <= 2 {
            not_scored(&mut second);
        }
        if number <= 3 {
            not_scored(&mut third);
        }
        table.add(&second).unwrap();
        table.add(&third).unwrap();
    }
    assert_eq!(table.members_with_missing_cards(), ["P3".to_owned()].into());
    let without = table.without(&table.members_with_missing_cards());
    assert_eq!(without.judges().len(), 2);
    assert_eq!(without.points(0), vec![vec![Some(60.0), None]]);
}
