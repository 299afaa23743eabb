//! Measures the error that all models share, with moves whose true values are known.
//!
//! No panel sees this error from inside a run: models that agree on a wrong answer look like models
//! that are right. A benchmark with known answers shows it.

use super::card_table::CardTable;
use super::components::PanelMeans;

/// A company of a benchmark: the panel's cards, and the true value of each case in the order of
/// the table, in any unit that is the same for all companies.
#[derive(Debug)]
pub struct BenchmarkCase<'a> {
    /// The panel's cards.
    pub table: &'a CardTable,
    /// True values.
    pub true_values: &'a [f64],
}

/// The standard deviation of the error that all models share, in thousandths of the standard
/// deviation of the true values: [`super::NoiseAllowances::shared_error`]. `None` if the cards
/// show no relation to the true values.
///
/// The variance of panel means around their regression on the true values is the shared error,
/// plus the noise between models and between debates, which the cards show. Both contain the noise
/// of single cards, which is therefore taken off once.
pub fn measure_shared_error(cases: &[BenchmarkCase<'_>]) -> Option<u32> {
    let companies: Vec<CompanyMoments> =
        cases.iter().map(CompanyMoments::of).filter(|one| one.freedom > 0.0).collect();
    let sum = |value: fn(&CompanyMoments) -> f64| companies.iter().map(value).sum::<f64>();
    let slope = sum(|one| one.products) / sum(|one| one.true_squares);
    let freedom = sum(|one| one.freedom);
    let around_line = sum(|one| one.panel_squares) - slope * sum(|one| one.products);
    // One more degree of freedom is used by the slope.
    let variance = around_line / (freedom - 1.0) - sum(|one| one.noise * one.freedom) / freedom;
    let spread = slope * slope * sum(|one| one.true_squares) / freedom;
    let is_related = slope > 0.0 && freedom > 1.0 && spread > 0.0;
    is_related.then(|| ((variance.max(0.0) / spread).sqrt() * 1_000.0).round() as u32)
}

/// Sums of squares of one company around its own means.
struct CompanyMoments {
    true_squares: f64,
    panel_squares: f64,
    products: f64,
    freedom: f64,
    /// Mean noise of a panel mean that the cards show, without card noise counted twice.
    noise: f64,
}

impl CompanyMoments {
    fn of(case: &BenchmarkCase<'_>) -> Self {
        let means = PanelMeans::of(case.table);
        let twice = |debates: usize| {
            let cards = means.between_cards.map_or(0.0, |cards| cards.variance);
            cards / means.judges as f64 / debates as f64
        };
        // Panel mean, true value, noise.
        let scored: Vec<(f64, f64, f64)> = means
            .values
            .iter()
            .zip(case.true_values)
            .filter_map(|(mean, value)| Some(((*mean)?, *value)))
            .map(|(mean, value)| {
                (mean.value, value, means.measured_noise(&mean) - twice(mean.debates))
            })
            .collect();
        let count = scored.len() as f64;
        let average =
            |value: fn(&(f64, f64, f64)) -> f64| scored.iter().map(value).sum::<f64>() / count;
        let (panel, value, noise) =
            (average(|one| one.0), average(|one| one.1), average(|one| one.2));
        let freedom = (count - 1.0).max(0.0);
        let mut found =
            Self { true_squares: 0.0, panel_squares: 0.0, products: 0.0, freedom, noise };
        for (mean, true_value, _) in &scored {
            let (x, y) = (true_value - value, mean - panel);
            found.true_squares += x * x;
            found.panel_squares += y * y;
            found.products += x * y;
        }
        found
    }
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
