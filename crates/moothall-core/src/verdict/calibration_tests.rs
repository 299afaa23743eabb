use super::super::world::{SimulatedCompany, SimulatedPanel, SimulatedRun, SplitMix64, WORLD};
use super::*;

#[test]
fn cards_without_a_relation_to_the_true_values_measure_nothing() {
    let panel = SimulatedPanel::new(5, 1);
    let mut rng = SplitMix64::new(1);
    let company = SimulatedCompany::new(WORLD, &panel, &mut rng);
    let run = SimulatedRun::new(&company, &panel, &mut rng);
    let measure = |true_values: &[f64]| {
        measure_shared_error(&[BenchmarkCase { table: &run.table, true_values }])
    };
    let opposite: Vec<f64> = company.truth.iter().map(|value| -value).collect();
    assert_eq!((measure(&opposite), measure(&[1.0; 15]), measure(&[])), (None, None, None));
    assert!(measure(&company.truth).is_some());
    assert_eq!(measure_shared_error(&[]), None);
}
