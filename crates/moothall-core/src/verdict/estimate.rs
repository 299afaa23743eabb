//! Estimates with intervals: what a move is worth, after the noise of the panel is accounted for.
//!
//! Each panel mean is pulled towards the mean of all moves by the share of its variance that is
//! noise (Morris 1983). This also removes the advantage of moves that were chosen for more debates
//! because their first result was lucky.

use serde::{Deserialize, Serialize};

use super::card_table::{CardTable, CaseKind};
use super::components::{PanelMean, PanelMeans, PooledVariance};
use crate::Sha256Hex;

/// With fewer moves the spread of their values cannot be estimated: there are scores but no tiers.
pub const MIN_MOVES: usize = 6;

/// Noise that a run cannot measure from inside, relative to the spread of the moves' true values,
/// in thousandths of its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NoiseAllowances {
    /// The error that all models share.
    pub shared_error: u32,
    /// The taste of a model that judges alone.
    pub single_model: u32,
    /// The luck of a debate when no debate was repeated.
    pub single_debate: u32,
    /// Where the values come from.
    pub source: AllowanceSource,
}

/// Where allowances come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AllowanceSource {
    /// Built-in values from published agreement between models.
    Default,
    /// Measured for this set of models with known answers; the hash of the file.
    Measured(Sha256Hex),
}

impl Default for NoiseAllowances {
    fn default() -> Self {
        let source = AllowanceSource::Default;
        Self { shared_error: 400, single_model: 650, single_debate: 550, source }
    }
}

/// Where the differences between scores come from, as standard deviations in tenths of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct VarianceComponents {
    /// Number of models on the panel.
    pub models: u32,
    /// Between models, for the same move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_models: Option<NoiseComponent>,
    /// Of the panel's mean, between debates of the same move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_debates: Option<NoiseComponent>,
    /// Of one card, within a member and a debate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_cards: Option<NoiseComponent>,
    /// Between the true values of the moves.
    pub between_moves: u32,
}

/// A measured source of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct NoiseComponent {
    /// Standard deviation in tenths of a point.
    pub deviation: u32,
    /// Degrees of freedom of the measurement.
    pub freedom: u32,
}

impl NoiseComponent {
    fn of(pooled: PooledVariance) -> Self {
        let freedom = u32::try_from(pooled.freedom).unwrap_or(u32::MAX);
        Self { deviation: deviation_in_tenths(pooled.variance), freedom }
    }
}

/// Estimates of all cases of a table. Values are in points, relative to the centre.
pub(crate) struct PanelEstimate {
    pub(crate) centre: f64,
    /// By case; `None` without a card.
    pub(crate) cases: Vec<Option<CaseEstimate>>,
    pub(crate) components: VarianceComponents,
    /// The share of the differences between panel means that is not noise.
    pub(crate) reliability: f64,
}

/// What a case is worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseEstimate {
    pub(crate) mean: f64,
    /// `None` with fewer than [`MIN_MOVES`] moves.
    pub(crate) variance: Option<f64>,
    pub(crate) debates: usize,
}

impl PanelEstimate {
    pub(crate) fn of(table: &CardTable, allowances: &NoiseAllowances) -> Self {
        let means = PanelMeans::of(table);
        let noise = NoiseModel::of(&means, allowances);
        let scored = table.cases().iter().zip(&means.values);
        let scored =
            scored.filter(|(case, mean)| case.kind != CaseKind::DoNothing && mean.is_some());
        let is_enough = scored.count() >= MIN_MOVES;
        let estimate = |mean: &PanelMean| match is_enough {
            true => noise.shrink(&means, mean),
            false => CaseEstimate { mean: mean.value, variance: None, debates: mean.debates },
        };
        let component = |pooled: Option<PooledVariance>| pooled.map(NoiseComponent::of);
        let components = VarianceComponents {
            models: u32::try_from(means.models).unwrap_or(u32::MAX),
            between_models: component(means.between_models),
            between_debates: component(means.between_debates),
            between_cards: component(means.between_cards),
            between_moves: deviation_in_tenths(noise.spread),
        };
        Self {
            centre: means.centre,
            cases: means.values.iter().map(|mean| mean.as_ref().map(estimate)).collect(),
            components,
            reliability: noise.reliability(&means),
        }
    }
}

/// How noisy the panel means are, and how far apart the true values.
struct NoiseModel {
    /// Number of scored cases.
    cases: f64,
    /// Variance of the true values.
    spread: f64,
    /// Allowances as variances in points.
    constant: f64,
    per_debate: f64,
}

impl NoiseModel {
    fn of(means: &PanelMeans, allowances: &NoiseAllowances) -> Self {
        let cases = means.scored().count() as f64;
        let centre = means.scored().map(|mean| mean.value).sum::<f64>() / cases;
        let squares = means.scored().map(|mean| (mean.value - centre) * (mean.value - centre));
        let total = if cases > 1.0 { squares.sum::<f64>() / (cases - 1.0) } else { 0.0 };
        let measured = means.scored().map(|mean| means.measured_noise(mean)).sum::<f64>() / cases;
        let without_noise = (total - measured).max(0.1 * total);
        let square = |thousandths: u32| {
            let share = f64::from(thousandths) / 1_000.0;
            share * share
        };
        let single_model = if means.models == 1 { square(allowances.single_model) } else { 0.0 };
        let constant = square(allowances.shared_error) + single_model;
        let is_repeated = means.between_debates.is_some();
        let per_debate = if is_repeated { 0.0 } else { square(allowances.single_debate) };
        let unit = without_noise / (1.0 + constant + per_debate);
        Self {
            cases,
            spread: (without_noise - unit * constant).max(0.05 * total),
            constant: unit * constant,
            per_debate: unit * per_debate,
        }
    }

    fn noise(&self, means: &PanelMeans, of: &PanelMean) -> f64 {
        means.measured_noise(of) + self.constant + self.per_debate / of.debates as f64
    }

    /// Only for more than three cases.
    fn shrink(&self, means: &PanelMeans, of: &PanelMean) -> CaseEstimate {
        let (noise, count) = (self.noise(means, of), self.cases);
        let all = noise + self.spread;
        // Without any differences every move has the same value.
        let share = if all > 0.0 { noise / all } else { 1.0 };
        let shrinkage = (count - 3.0) / (count - 1.0) * share;
        let uncertain = 2.0 * shrinkage * shrinkage / (count - 3.0) * of.value * of.value;
        let variance = noise * (1.0 - shrinkage * (count - 1.0) / count) + uncertain;
        let mean = (1.0 - shrinkage) * of.value;
        CaseEstimate { mean, variance: Some(variance), debates: of.debates }
    }

    fn reliability(&self, means: &PanelMeans) -> f64 {
        let noise = means.scored().map(|mean| self.noise(means, mean)).sum::<f64>() / self.cases;
        let all = self.spread + noise;
        if all > 0.0 { self.spread / all } else { 0.0 }
    }
}

/// Saturates; a negative or undefined variance is zero.
fn deviation_in_tenths(variance: f64) -> u32 {
    (variance.max(0.0).sqrt() * 10.0).round() as u32
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
