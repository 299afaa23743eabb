use super::super::world::{
    SimulatedCompany, SimulatedPanel, SimulatedWorld, SplitMix64, WORLD, card_of_sum, move_id,
    scale,
};
use super::super::{PanelCard, PanelCase, PanelJudge};
use super::*;

/// One debate of each move, scored by one member of each of three models.
fn table(sums: &[[u32; 3]]) -> CardTable {
    let judge = |index: usize| PanelJudge { id: format!("P{index}"), model: format!("x{index}") };
    let case = |index: usize| PanelCase { move_id: move_id(index), kind: CaseKind::Move };
    let cases = (0..sums.len()).map(case).collect();
    let mut table = CardTable::new(scale(), (0..3).map(judge).collect(), cases).unwrap();
    for (index, cards) in sums.iter().enumerate() {
        for (member, sum) in cards.iter().enumerate() {
            let (move_id, member) = (move_id(index), format!("P{member}"));
            let scorecard = card_of_sum(*sum);
            table.add(&PanelCard { move_id, debate: 1, member, scorecard }).unwrap();
        }
    }
    table
}

/// Six moves with means of -30, -18, … 30 points and no noise between models.
fn even_table() -> CardTable {
    table(&[[12; 3], [16; 3], [20; 3], [24; 3], [28; 3], [32; 3]])
}

/// By hand: S² = 504, K = S², e = 0.16, U = 504 / 1.4625, noise = U (0.16 + 0.3025),
/// B = K - 0.16 U, b = 3/5 · noise / (noise + B).
#[test]
fn estimates_follow_the_formulas() {
    let found = PanelEstimate::of(&even_table(), &NoiseAllowances::default());
    let unit = 504.0 / 1.4625;
    let (noise, spread) = (unit * 0.4625, 504.0 - unit * 0.16);
    let shrinkage = 0.6 * noise / (noise + spread);
    let variance =
        noise * (1.0 - shrinkage * 5.0 / 6.0) + 2.0 * shrinkage * shrinkage / 3.0 * 900.0;
    let best = found.cases[5].unwrap();
    assert!((best.mean - (1.0 - shrinkage) * 30.0).abs() < 1e-9, "{best:?}");
    assert!((best.variance.unwrap() - variance).abs() < 1e-9, "{best:?}");
    assert_eq!((found.centre, best.debates), (66.0, 1));
    assert!((found.reliability - spread / (spread + noise)).abs() < 1e-9);
    assert_eq!(found.components.between_models, Some(NoiseComponent { deviation: 0, freedom: 10 }));
    assert_eq!(found.components.between_debates, None);
}

#[test]
fn without_noise_and_allowances_nothing_is_shrunk() {
    let none = NoiseAllowances { shared_error: 0, single_debate: 0, ..NoiseAllowances::default() };
    let found = PanelEstimate::of(&even_table(), &none);
    let best = found.cases[5].unwrap();
    assert_eq!((best.mean, best.variance), (30.0, Some(0.0)));
    assert_eq!((found.reliability, found.components.between_moves), (1.0, 224));
}

#[test]
fn equal_cards_give_equal_estimates_without_noise() {
    let found = PanelEstimate::of(&table(&[[20; 3]; 7]), &NoiseAllowances::default());
    let values = found.cases.iter().flatten().map(|one| (one.mean, one.variance));
    assert!(values.clone().all(|value| value == (0.0, Some(0.0))));
    assert_eq!((values.count(), found.reliability), (7, 0.0));
}

#[test]
fn fewer_than_six_moves_have_scores_but_no_intervals() {
    let found =
        PanelEstimate::of(&table(&[[12; 3], [20; 3], [28; 3]]), &NoiseAllowances::default());
    let best = found.cases[2].unwrap();
    assert_eq!((best.mean, best.variance), (24.0, None));
}

#[test]
fn a_table_without_cards_has_no_estimates() {
    let found = PanelEstimate::of(&table(&[]), &NoiseAllowances::default());
    assert_eq!((found.cases.len(), found.centre, found.reliability), (0, 0.0, 0.0));
    let panel = SimulatedPanel::new(5, 1);
    let company = SimulatedCompany::new(WORLD, &panel, &mut SplitMix64::new(1));
    let found = PanelEstimate::of(&company.table(&panel), &NoiseAllowances::default());
    assert!(found.cases.iter().all(Option::is_none));
}

#[test]
fn more_debates_narrow_the_interval_of_a_move() {
    let panel = SimulatedPanel::new(5, 1);
    let world = SimulatedWorld { debate: 1.0, ..WORLD };
    let mut rng = SplitMix64::new(1);
    let company = SimulatedCompany::new(world, &panel, &mut rng);
    let mut table = company.table(&panel);
    for index in 0..world.moves {
        for debate in 1..=if index < 8 { 4 } else { 1 } {
            company.debate(&panel, index, debate, &mut rng, &mut table);
        }
    }
    let found = PanelEstimate::of(&table, &NoiseAllowances::default());
    let variance = |index: usize| found.cases[index].and_then(|one| one.variance).unwrap();
    let widest = (0..8).map(variance).fold(0.0, f64::max);
    let narrowest = (8..15).map(variance).fold(f64::INFINITY, f64::min);
    assert!(widest < narrowest, "{widest} {narrowest}");
}
