use super::super::world::SplitMix64;
use super::*;

fn contestants(values: &[(f64, f64)]) -> Vec<NormalEstimate> {
    values
        .iter()
        .map(|(mean, deviation)| NormalEstimate::new(*mean, deviation * deviation, true))
        .collect()
}

#[test]
fn chances_agree_with_random_draws() {
    let mut rng = SplitMix64::new(7);
    for _ in 0..3 {
        let values: Vec<(f64, f64)> =
            (0..12).map(|_| (rng.normal(8.0), 3.0 + rng.normal(1.0).abs())).collect();
        let found = chances(&contestants(&values));
        const DRAWS: usize = 20_000;
        let mut counts = vec![(0, 0); values.len()];
        for _ in 0..DRAWS {
            let drawn: Vec<f64> =
                values.iter().map(|(mean, deviation)| mean + rng.normal(*deviation)).collect();
            for (index, value) in drawn.iter().enumerate() {
                let above = drawn.iter().filter(|other| *other > value).count();
                counts[index].0 += usize::from(above == 0);
                counts[index].1 += usize::from(above < 3);
            }
        }
        for (MoveChances { best, top }, (bests, tops)) in found.iter().zip(counts) {
            assert!((best - bests as f64 / DRAWS as f64).abs() < 0.012, "{best}");
            assert!((top - tops as f64 / DRAWS as f64).abs() < 0.012, "{top}");
        }
        let sum = |value: fn(&MoveChances) -> f64| found.iter().map(value).sum::<f64>();
        assert!((sum(|one| one.best) - 1.0).abs() < 0.002);
        assert!((sum(|one| one.top) - 3.0).abs() < 0.002);
    }
}

#[test]
fn doing_nothing_can_be_best_but_takes_no_place_in_the_top_three() {
    let mut all = contestants(&[(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)]);
    all.push(NormalEstimate::new(30.0, 1.0, false));
    let found = chances(&all);
    assert!(found[3].best > 0.999);
    assert!(found.iter().all(|one| one.top > 0.999));
}

#[test]
fn estimates_without_noise_are_a_certain_order() {
    let found = chances(&contestants(&[(0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (30.0, 0.0)]));
    let rounded: Vec<(f64, f64)> =
        found.iter().map(|one| (one.best.round(), one.top.round())).collect();
    assert_eq!(rounded, [(0.0, 0.0), (0.0, 1.0), (0.0, 1.0), (1.0, 1.0)]);
}

#[test]
fn equal_estimates_have_equal_chances() {
    for found in chances(&contestants(&[(5.0, 0.0); 4])) {
        assert!((found.best - 0.25).abs() < 0.001 && (found.top - 0.75).abs() < 0.001);
    }
    assert!(chances(&[]).is_empty());
}
