//! Panel means of the moves, and how much of their differences is noise.
//!
//! One move has few cards, so its own cards say little about their noise. All moves together have
//! enough, and the variances are pooled over them (generalizability theory, Cronbach 1972).

use super::card_table::CardTable;

/// What the cards of a table show before any shrinkage. All values are in points.
pub(crate) struct PanelMeans {
    /// Mean of the panel over the first debates: the zero of `values`.
    pub(crate) centre: f64,
    /// By case; `None` without a card.
    pub(crate) values: Vec<Option<PanelMean>>,
    /// Number of models.
    pub(crate) models: usize,
    /// Number of members.
    pub(crate) judges: usize,
    /// Variance of the moves' means between models; `None` for one model.
    pub(crate) between_models: Option<PooledVariance>,
    /// Variance of the panel's mean between debates of a move; `None` without repeats.
    pub(crate) between_debates: Option<PooledVariance>,
    /// Variance of one card within member and debate; `None` without repeats.
    pub(crate) between_cards: Option<PooledVariance>,
}

/// The panel's mean for one case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PanelMean {
    /// Relative to the centre: the mean over models of each model's mean.
    pub(crate) value: f64,
    /// Models with at least one card.
    pub(crate) models: usize,
    /// Debates with at least one card.
    pub(crate) debates: usize,
}

/// A variance that was measured over several moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PooledVariance {
    pub(crate) variance: f64,
    pub(crate) freedom: usize,
}

/// Points by debate, then by member.
type CasePoints = Vec<Vec<Option<f64>>>;

impl PanelMeans {
    pub(crate) fn of(table: &CardTable) -> Self {
        let (model_of, models) = table.models();
        let judges = model_of.len();
        let mut cases: Vec<CasePoints> =
            (0..table.cases().len()).map(|case| table.points(case)).collect();
        let leniency = leniency(&cases, judges);
        for (judge, mean) in leniency.iter().enumerate() {
            let cards = cases.iter_mut().flatten().filter_map(|cards| cards.get_mut(judge));
            for card in cards.flatten() {
                *card -= mean.unwrap_or(0.0);
            }
        }
        let over_models = |members: &[Option<f64>]| mean_by_model(members, &model_of, models);
        let cells: Vec<Vec<Option<f64>>> =
            cases.iter().map(|case| model_means(case, &model_of, models)).collect();
        let debates: Vec<Vec<f64>> = cases
            .iter()
            .map(|case| case.iter().filter_map(|cards| over_models(cards)).collect())
            .collect();
        let value = |(cells, debates): (&Vec<Option<f64>>, &Vec<f64>)| {
            let models = cells.iter().flatten().count();
            mean(cells).map(|value| PanelMean { value, models, debates: debates.len() })
        };
        Self {
            centre: over_models(&leniency).unwrap_or(0.0),
            values: cells.iter().zip(&debates).map(value).collect(),
            models,
            judges,
            between_models: TwoWayResiduals::of(&cells).pooled(),
            between_debates: between_debates(&debates),
            between_cards: between_cards(&cases),
        }
    }

    /// Cases with at least one card.
    pub(crate) fn scored(&self) -> impl Iterator<Item = &PanelMean> {
        self.values.iter().flatten()
    }

    /// Measured noise of a case's mean. Card noise is part of both terms, which errs on the safe
    /// side.
    pub(crate) fn measured_noise(&self, of: &PanelMean) -> f64 {
        let variance = |pooled: Option<PooledVariance>| pooled.map_or(0.0, |one| one.variance);
        variance(self.between_models) / of.models as f64
            + variance(self.between_debates) / of.debates as f64
    }
}

/// Each member's mean over the first debates of all cases.
fn leniency(cases: &[CasePoints], judges: usize) -> Vec<Option<f64>> {
    let first = |judge: usize| {
        let cards = cases.iter().filter_map(|case| case.first());
        cards.map(|cards| cards.get(judge).copied().flatten()).collect::<Vec<_>>()
    };
    (0..judges).map(|judge| mean(&first(judge))).collect()
}

/// The mean over all debates and members of each model.
fn model_means(case: &CasePoints, model_of: &[usize], models: usize) -> Vec<Option<f64>> {
    let of_model = |model: usize| {
        let cards = case.iter().flat_map(|cards| cards.iter().zip(model_of));
        let cards = cards.filter(|(_, of)| **of == model).map(|(card, _)| *card);
        mean(&cards.collect::<Vec<_>>())
    };
    (0..models).map(of_model).collect()
}

/// The mean over models of each model's mean over its members.
fn mean_by_model(members: &[Option<f64>], model_of: &[usize], models: usize) -> Option<f64> {
    mean(&model_means(&vec![members.to_vec()], model_of, models))
}

fn between_debates(cases: &[Vec<f64>]) -> Option<PooledVariance> {
    let (mut squares, mut freedom) = (0.0, 0);
    for debates in cases {
        let centre = debates.iter().sum::<f64>() / debates.len() as f64;
        squares += debates.iter().map(|one| (one - centre) * (one - centre)).sum::<f64>();
        freedom += debates.len().saturating_sub(1);
    }
    pooled(squares, freedom)
}

fn between_cards(cases: &[CasePoints]) -> Option<PooledVariance> {
    let (mut squares, mut freedom) = (0.0, 0);
    for case in cases.iter().filter(|case| case.len() > 1) {
        let residuals = TwoWayResiduals::of(case);
        squares += residuals.squares;
        freedom += residuals.freedom;
    }
    pooled(squares, freedom)
}

fn pooled(squares: f64, freedom: usize) -> Option<PooledVariance> {
    (freedom > 0).then(|| PooledVariance { variance: squares / freedom as f64, freedom })
}

/// What remains of a table after its row and column means are removed.
struct TwoWayResiduals {
    squares: f64,
    freedom: usize,
}

impl TwoWayResiduals {
    fn of(rows: &[Vec<Option<f64>>]) -> Self {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let column = |index: usize| {
            rows.iter().map(|row| row.get(index).copied().flatten()).collect::<Vec<_>>()
        };
        let columns: Vec<Option<f64>> = (0..width).map(|index| mean(&column(index))).collect();
        let all = mean(&rows.iter().flatten().copied().collect::<Vec<_>>()).unwrap_or(0.0);
        let (mut squares, mut cells, mut used) = (0.0, 0, 0);
        for row in rows {
            let Some(row_mean) = mean(row) else { continue };
            used += 1;
            for (cell, column) in row.iter().zip(&columns) {
                let (Some(cell), Some(column)) = (cell, column) else { continue };
                let residual = cell - row_mean - column + all;
                squares += residual * residual;
                cells += 1;
            }
        }
        let means = used + columns.iter().flatten().count();
        Self { squares, freedom: (cells + 1_usize).saturating_sub(means) }
    }

    fn pooled(&self) -> Option<PooledVariance> {
        pooled(self.squares, self.freedom)
    }
}

/// The mean of the values that exist.
fn mean(values: &[Option<f64>]) -> Option<f64> {
    let count = values.iter().flatten().count();
    (count > 0).then(|| values.iter().flatten().sum::<f64>() / count as f64)
}

#[cfg(test)]
#[path = "components_tests.rs"]
mod tests;
