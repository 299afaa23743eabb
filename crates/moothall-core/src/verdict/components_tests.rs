use super::super::world::card_of_sum;
use super::super::{CaseKind, PanelCard, PanelCase, PanelJudge};
use super::*;

/// A table from sums of scores, by case, debate and member; 0 is a missing card.
fn table(models: &[&str], cases: &[&[&[u32]]]) -> CardTable {
    let judge = |(index, model): (usize, &&str)| PanelJudge {
        id: format!("P{index}"),
        model: (*model).to_owned(),
    };
    let case = |index| PanelCase { move_id: format!("m{index}"), kind: CaseKind::Move };
    let judges = models.iter().enumerate().map(judge).collect();
    let scale = super::super::world::scale();
    let mut table = CardTable::new(scale, judges, (0..cases.len()).map(case).collect()).unwrap();
    for (index, debates) in cases.iter().enumerate() {
        for (debate, cards) in (1..).zip(*debates) {
            for (member, sum) in cards.iter().enumerate().filter(|(_, sum)| **sum > 0) {
                let (move_id, member) = (format!("m{index}"), format!("P{member}"));
                let scorecard = card_of_sum(*sum);
                table.add(&PanelCard { move_id, debate, member, scorecard }).unwrap();
            }
        }
    }
    table
}

fn values(means: &PanelMeans) -> Vec<f64> {
    means.scored().map(|mean| mean.value).collect()
}

#[test]
fn leniency_of_a_member_cancels() {
    let strict = table(&["x", "y"], &[&[&[20, 20]], &[&[24, 22]], &[&[28, 30]]]);
    let lenient = table(&["x", "y"], &[&[&[20, 25]], &[&[24, 27]], &[&[28, 35]]]);
    let (strict, lenient) = (PanelMeans::of(&strict), PanelMeans::of(&lenient));
    assert_eq!(values(&strict), [-12.0, -3.0, 15.0]);
    assert_eq!(values(&lenient), values(&strict));
    assert_eq!((strict.centre, lenient.centre), (72.0, 79.5));
}

#[test]
fn each_model_counts_once_however_many_members_it_has() {
    let means = PanelMeans::of(&table(&["x", "x", "y"], &[&[&[10, 10, 30]], &[&[30, 30, 10]]]));
    assert_eq!((values(&means), means.centre), (vec![0.0, 0.0], 60.0));
}

#[test]
fn variances_are_pooled_over_moves() {
    let cards = table(&["x", "y"], &[&[&[20, 18]], &[&[22, 22]], &[&[24, 26]]]);
    let means = PanelMeans::of(&cards);
    let models = means.between_models.unwrap();
    // Members' means are 22: residuals are 3, 0 and -3 points for x, and the opposite for y.
    assert_eq!((models.variance, models.freedom), (18.0, 2));
    assert!(means.between_debates.is_none() && means.between_cards.is_none());

    let repeated = table(&["x", "y"], &[&[&[20, 20], &[24, 22]], &[&[24, 24]], &[&[22, 22]]]);
    let means = PanelMeans::of(&repeated);
    let (debates, cards) = (means.between_debates.unwrap(), means.between_cards.unwrap());
    // Panel means of the first move differ by 9 points; its cards have residuals of 1.5 points.
    assert_eq!((debates.variance, debates.freedom), (40.5, 1));
    assert_eq!((cards.variance, cards.freedom), (9.0, 1));
    assert_eq!(means.scored().map(|mean| mean.debates).collect::<Vec<_>>(), [2, 1, 1]);
}

#[test]
fn missing_cards_are_skipped_and_cost_degrees_of_freedom() {
    let cards = table(&["x", "y"], &[&[&[20, 0]], &[&[22, 22]], &[&[0, 0]], &[&[24, 24]]]);
    let means = PanelMeans::of(&cards);
    assert!(means.values[2].is_none());
    assert_eq!(means.values[0].map(|mean| mean.models), Some(1));
    assert_eq!(means.between_models.map(|models| models.freedom), Some(1));
    assert_eq!(means.values[0].map(|mean| mean.value), Some(-6.0));
}
