use super::*;

/// Quantiles from published tables.
#[test]
fn the_table_agrees_with_published_values() {
    let known =
        [(0.0, 0.5), (1.0, 0.841_345), (1.645, 0.950_015), (1.96, 0.975_002), (3.0, 0.998_650)];
    for (z, probability) in known {
        assert!((normal_probability(z) - probability).abs() < 0.000_02, "{z}");
        assert!((normal_probability(-z) - (1.0 - probability)).abs() < 0.000_02, "-{z}");
        assert!((normal_quantile(probability) - z).abs() < 0.001, "{probability}");
    }
}

#[test]
fn probabilities_rise_and_stay_within_zero_and_one() {
    let mut last = 0.0;
    for step in -7_000..=7_000 {
        let probability = normal_probability(f64::from(step) / 1_000.0);
        assert!((last..=1.0).contains(&probability), "{step}");
        last = probability;
    }
    assert_eq!((normal_probability(f64::INFINITY), normal_probability(-1e300)), (1.0, 0.0));
    assert_eq!((normal_quantile(0.5), normal_quantile(0.1)), (0.0, 0.0));
    assert!(normal_quantile(1.0) > 5.0);
}
