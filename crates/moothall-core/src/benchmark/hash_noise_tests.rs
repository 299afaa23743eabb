use super::*;

#[test]
fn noise_depends_on_seed_and_words_only() {
    let one = HashNoise::new(1);
    assert_eq!(one.normal(&["a", "b"]).to_bits(), one.normal(&["a", "b"]).to_bits());
    assert_ne!(one.normal(&["a", "b"]).to_bits(), HashNoise::new(2).normal(&["a", "b"]).to_bits());
    assert_ne!(one.normal(&["a", "b"]).to_bits(), one.normal(&["ab"]).to_bits());
}

#[test]
fn noise_has_mean_zero_and_deviation_one() {
    let noise = HashNoise::new(7);
    let values: Vec<f64> =
        (0..20_000).map(|number: u32| noise.normal(&[&number.to_string()])).collect();
    let mean = values.iter().sum::<f64>() / 20_000.0;
    let variance = values.iter().map(|value| value * value).sum::<f64>() / 20_000.0;
    assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    let beyond = values.iter().filter(|value| value.abs() > 1.96).count();
    assert!((850..=1_150).contains(&beyond), "{beyond}");
}

#[test]
fn a_shuffle_is_a_permutation() {
    let order = HashNoise::new(1).shuffled(&["x"], 15);
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..15).collect::<Vec<_>>());
    assert_ne!(order, sorted);
    assert!((0..100).all(|n: u32| HashNoise::new(1).below(&[&n.to_string()], 5) < 5));
}
