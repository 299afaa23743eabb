//! What a benchmark shows about a panel: how well it finds the true order, whether its intervals and
//! chances hold, and how large its errors are.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::judge_file::JudgeMeasurement;
use super::synthetic_set::{BenchmarkCompany, BenchmarkMove};
use crate::consult::{DO_NOTHING_ID, PanelRecord};
use crate::verdict::{
    BenchmarkCase, CardTable, InvalidCard, NoiseAllowances, NoiseComponent, PanelCheck, PanelMeans,
    TierList, VerdictTier, kendall_tau, measure_shared_error,
};

/// Upper ends of the bins of stated chances, in thousandths; the last bin has the rest.
const BIN_ENDS: [u32; 4] = [50, 250, 500, 750];

/// The result of one company.
#[derive(Debug, Clone, Copy)]
pub struct CompanyResult<'a> {
    /// The company.
    pub company: &'a BenchmarkCompany,
    /// Titles of the moves by id.
    pub titles: &'a BTreeMap<String, String>,
    /// The panel's cards.
    pub record: &'a PanelRecord,
    /// The verdict.
    pub tiers: &'a TierList,
}

/// Figures of a panel over all companies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchmarkReport {
    /// Number of companies.
    pub companies: u32,
    /// Largest number of moves of a company.
    pub moves: u32,
    /// Mean of Kendall's tau between estimates and true values.
    pub tau: f64,
    /// Companies whose best move is in the lead.
    pub best_in_lead: u32,
    /// Companies whose lead is exactly the best move.
    pub lead_is_best: u32,
    /// Mean number of moves in the lead.
    pub lead_size: f64,
    /// The share of intervals that hold the true value. `None` if no verdict has tiers.
    pub coverage: Option<f64>,
    /// Stated chances to be among the best three, and how often they came true.
    pub chances: Vec<ReportedChance>,
    /// Mean squared error of the stated chances.
    pub brier: Option<f64>,
    /// The same for a panel that always states the base rate.
    pub brier_of_base_rate: Option<f64>,
    /// Planted controls.
    pub controls: ControlTally,
    /// The share of pairs of moves that a second debate put into another order.
    pub flips: Option<f64>,
    /// Points that the panel sees of a difference of one unit.
    pub points_per_unit: f64,
    /// Points for each 100 words.
    pub verbosity: f64,
    /// Sources of error.
    pub components: MeasuredComponents,
    /// Figures of each model.
    pub judges: Vec<JudgeFigures>,
}

/// A bin of stated chances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReportedChance {
    /// Number of statements.
    pub entries: u32,
    /// Their mean.
    pub stated: f64,
    /// How often they came true.
    pub came_true: f64,
}

/// Planted controls over all companies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ControlTally {
    /// Controls that the panel scored.
    pub planted: u32,
    /// Controls with the expected order.
    pub caught: u32,
    /// Panels that missed one control.
    pub doubtful: u32,
    /// Panels that failed.
    pub failed: u32,
}

/// Sources of error: variances in points, and shares of the spread of true values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredComponents {
    /// Variance between models, for the same move.
    pub between_models: Option<f64>,
    /// Variance of the panel's mean between debates of the same move.
    pub between_debates: Option<f64>,
    /// Variance of one card.
    pub between_cards: Option<f64>,
    /// Deviation of the error that all models share, in units, without the effect of length.
    pub shared_error: Option<f64>,
    /// The same with the effect of length: what a verdict has to allow for.
    pub allowance_shared_error: Option<f64>,
    /// Deviation of one model's taste, in units.
    pub taste: Option<f64>,
    /// Deviation of the luck of one debate, in units.
    pub debate: Option<f64>,
    /// Mean of one divided by the number of debates of a move.
    pub per_debate: f64,
}

/// Figures of one model on the panel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgeFigures {
    /// The model.
    pub model: String,
    /// Cards that can be used, and cards that were requested.
    pub cards: (u32, u32),
    /// Mean of Kendall's tau between its own scores and true values.
    pub tau: f64,
    /// Controls that its members caught, and that they scored.
    pub controls: (u32, u32),
    /// Points that it sees of a difference of one unit.
    pub points_per_unit: f64,
    /// Points for each 100 words.
    pub verbosity: f64,
    /// Units that it adds to moves in its own style; only for judges with a known style.
    pub self_preference: Option<f64>,
    /// The share of pairs of moves that a second debate put into another order.
    pub flips: Option<f64>,
}

impl BenchmarkReport {
    /// Measures a panel. `styles` has the style of each model whose style is known.
    pub fn of(
        results: &[CompanyResult<'_>],
        styles: &BTreeMap<String, usize>,
    ) -> Result<Self, InvalidCard> {
        let panels = results.iter().map(ScoredPanel::of).collect::<Result<Vec<_>, _>>()?;
        let mut sums = PanelSums::default();
        let mut flips = PairFlips::default();
        for panel in &panels {
            flips.add(&panel.means_by_debate(None));
        }
        let lines = |points: fn(&ScoredPanel<'_>) -> Vec<MovePoint>| {
            panels.iter().fold(ValueLine::default(), |line, panel| line.with(&points(panel)))
        };
        // Lucky moves are debated again, which hides a part of every effect: only first debates show
        // all of it.
        let first = lines(|panel| panel.first_points(None));
        let fit = first.fit();
        for panel in &panels {
            sums.add(panel, fit.per_unit);
        }
        let companies = panels.len() as f64;
        Ok(Self {
            companies: count(panels.len()),
            moves: count(results.iter().map(|one| one.titles.len()).max().unwrap_or(0)),
            tau: sums.tau / companies,
            best_in_lead: sums.best_in_lead,
            lead_is_best: sums.lead_is_best,
            lead_size: sums.lead_size / companies,
            coverage: mean(sums.covered, sums.intervals),
            brier: mean(sums.squared_error, sums.stated),
            brier_of_base_rate: mean(sums.base_rate, sums.stated).map(|rate| rate * (1.0 - rate)),
            chances: sums.bins.iter().map(ReportedChance::mean).collect(),
            controls: sums.controls,
            flips: flips.share(),
            points_per_unit: fit.per_unit,
            verbosity: fit.per_100_words,
            components: components(&panels, &lines(|panel| panel.points()), &first),
            judges: models(&panels)
                .into_iter()
                .map(|model| JudgeFigures::of(&panels, &model, styles.get(&model).copied()))
                .collect(),
        })
    }

    /// The allowances that verdicts of the same models should use, in thousandths. What was not
    /// measured keeps its default.
    pub fn measurement(&self, set: &str, set_sha256: &str) -> JudgeMeasurement {
        let default = NoiseAllowances::default();
        let thousandths = |value: Option<f64>, default: u32| {
            value.map_or(default, |value| (value * 1_000.0).round().clamp(0.0, 9_999.0) as u32)
        };
        let found = &self.components;
        // A single model's taste is part of the error that all models share.
        let single = if self.judges.len() == 1 { Some(0.0) } else { found.taste };
        JudgeMeasurement {
            models: self.judges.iter().map(|judge| judge.model.clone()).collect(),
            shared_error: thousandths(found.allowance_shared_error, default.shared_error),
            single_model: thousandths(single, default.single_model),
            single_debate: thousandths(found.debate, default.single_debate),
            set: set.to_owned(),
            set_sha256: set_sha256.to_owned(),
            companies: self.companies,
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn mean(sum: f64, count: f64) -> Option<f64> {
    (count > 0.0).then(|| sum / count)
}

fn models(panels: &[ScoredPanel<'_>]) -> Vec<String> {
    let judges = panels.iter().flat_map(|panel| &panel.result.record.judges);
    let models: BTreeSet<&String> = judges.map(|judge| &judge.model).collect();
    models.into_iter().cloned().collect()
}

/// The cards of a company with the true values of its cases.
struct ScoredPanel<'a> {
    result: &'a CompanyResult<'a>,
    /// Without members that were left out.
    table: CardTable,
    /// By case: the true value in units, and the move. Doing nothing is not a move of the set.
    truth: Vec<Option<(f64, Option<&'a BenchmarkMove>)>>,
}

/// A panel's mean for a move, with what it depends on.
#[derive(Debug, Clone, Copy)]
struct MovePoint {
    score: f64,
    unit: f64,
    /// In hundreds.
    words: f64,
    style: usize,
    noise: f64,
}

impl<'a> ScoredPanel<'a> {
    fn of(result: &'a CompanyResult<'a>) -> Result<Self, InvalidCard> {
        let CompanyResult { company, titles, record, tiers } = result;
        let left_out = tiers.controls.left_out.union(&tiers.members_with_missing_cards);
        let all = record.table()?;
        let table = all.without(&left_out.cloned().collect());
        // A failed panel may have no members left.
        let table = if table.judges().is_empty() { all } else { table };
        let units = company.true_units();
        let truth = record.cases.iter().map(|case| {
            if case.move_id == DO_NOTHING_ID {
                return Some((company.do_nothing_units(), None));
            }
            let title = titles.get(&case.move_id)?;
            let place = company.moves.iter().position(|one| one.proposal.title == *title)?;
            Some((*units.get(place)?, company.moves.get(place)))
        });
        Ok(Self { result, table, truth: truth.collect() })
    }

    /// The panel's mean of each move of the set.
    fn points(&self) -> Vec<MovePoint> {
        let means = PanelMeans::of(&self.table);
        let cards = means.between_cards.map_or(0.0, |cards| cards.variance) / means.judges as f64;
        let cases = means.values.iter().zip(&self.truth);
        cases
            .filter_map(|(mean, truth)| {
                let (mean, (unit, found)) = ((*mean)?, (*truth)?);
                // Card noise is part of both measured variances.
                let noise = means.measured_noise(&mean) - cards / mean.debates as f64;
                Some(MovePoint::of(mean.value, unit, found?, noise))
            })
            .collect()
    }

    /// Means of the first debates, of one model or of all members.
    fn first_points(&self, model: Option<&str>) -> Vec<MovePoint> {
        self.points_of(model, 1)
    }

    /// Means of the first `debates` of each move, of one model or of all members.
    fn points_of(&self, model: Option<&str>, debates: usize) -> Vec<MovePoint> {
        let cases = self.means_by_debate(model).into_iter().zip(&self.truth);
        cases
            .filter_map(|(means, truth)| {
                let (unit, found) = (*truth)?;
                let given: Vec<f64> = means.into_iter().take(debates).flatten().collect();
                let mean = given.iter().sum::<f64>() / given.len() as f64;
                let point = MovePoint::of(mean, unit, found?, 0.0);
                (!given.is_empty()).then_some(point)
            })
            .collect()
    }

    /// Means by case and debate, of one model or of all members.
    fn means_by_debate(&self, model: Option<&str>) -> Vec<Vec<Option<f64>>> {
        let judges = self.table.judges();
        let is_counted = |judge: usize| {
            judges.get(judge).is_some_and(|one| model.is_none_or(|model| one.model == model))
        };
        // Leniency differs between members, and a missing card must not change the mean.
        let first: Vec<Vec<Option<f64>>> = (0..self.truth.len())
            .filter_map(|case| self.table.points(case).into_iter().next())
            .collect();
        let leniency: Vec<f64> = (0..judges.len())
            .map(|judge| {
                let cards = first.iter().filter_map(|cards| *cards.get(judge)?);
                let (sum, count) = cards.fold((0.0, 0.0), |(sum, n), card| (sum + card, n + 1.0));
                if count > 0.0 { sum / count } else { 0.0 }
            })
            .collect();
        let mean = |cards: Vec<Option<f64>>| {
            let own = cards.into_iter().zip(&leniency).enumerate();
            let own = own.filter(|(judge, _)| is_counted(*judge));
            let own = own.filter_map(|(_, (card, mean))| Some(card? - mean));
            let (sum, count) = own.fold((0.0, 0.0), |(sum, n), card| (sum + card, n + 1.0));
            (count > 0.0).then(|| sum / count)
        };
        let debates = |case: usize| self.table.points(case).into_iter().map(mean).collect();
        (0..self.truth.len()).map(debates).collect()
    }
}

impl MovePoint {
    fn of(score: f64, unit: f64, found: &BenchmarkMove, noise: f64) -> Self {
        Self { score, unit, words: found.words as f64 / 100.0, style: found.style, noise }
    }
}

/// Sums of squares of moves around the means of their companies.
#[derive(Debug, Clone, Copy, Default)]
struct ValueLine {
    unit_unit: f64,
    unit_words: f64,
    words_words: f64,
    unit_score: f64,
    words_score: f64,
    score_score: f64,
    noise: f64,
    freedom: f64,
}

/// The line through the moves.
#[derive(Debug, Clone, Copy)]
struct LineFit {
    per_unit: f64,
    per_100_words: f64,
}

impl ValueLine {
    fn with(mut self, points: &[MovePoint]) -> Self {
        let count = points.len() as f64;
        if points.is_empty() {
            return self;
        }
        let mean = |value: fn(&MovePoint) -> f64| points.iter().map(value).sum::<f64>() / count;
        let (unit, words, score) =
            (mean(|one| one.unit), mean(|one| one.words), mean(|one| one.score));
        for one in points {
            let (u, w, s) = (one.unit - unit, one.words - words, one.score - score);
            self.unit_unit += u * u;
            self.unit_words += u * w;
            self.words_words += w * w;
            self.unit_score += u * s;
            self.words_score += w * s;
            self.score_score += s * s;
        }
        self.noise += mean(|one| one.noise) * (count - 1.0);
        self.freedom += count - 1.0;
        self
    }

    fn fit(&self) -> LineFit {
        let determinant = self.unit_unit * self.words_words - self.unit_words * self.unit_words;
        LineFit {
            per_unit: (self.unit_score * self.words_words - self.words_score * self.unit_words)
                / determinant,
            per_100_words: (self.words_score * self.unit_unit - self.unit_score * self.unit_words)
                / determinant,
        }
    }

    /// The variance that true values add to scores, in points.
    fn spread(&self) -> f64 {
        let per_unit = self.fit().per_unit;
        per_unit * per_unit * self.unit_unit / self.freedom
    }

    /// The deviation of the error that all models share, in units, without the effect of length.
    fn shared_error(&self) -> Option<f64> {
        let LineFit { per_unit, per_100_words } = self.fit();
        let around =
            self.score_score - per_unit * self.unit_score - per_100_words * self.words_score;
        // Two more degrees of freedom are used by the line.
        let variance = around / (self.freedom - 2.0) - self.noise / self.freedom;
        (per_unit > 0.0 && self.freedom > 2.0).then(|| (variance.max(0.0) / self.spread()).sqrt())
    }
}

fn components(
    panels: &[ScoredPanel<'_>],
    line: &ValueLine,
    first: &ValueLine,
) -> MeasuredComponents {
    let pooled = |component: fn(&TierList) -> Option<NoiseComponent>| {
        let found = panels.iter().filter_map(|panel| component(panel.result.tiers));
        let (squares, freedom) = found.fold((0.0, 0.0), |(squares, freedom), one| {
            let (deviation, own) = (f64::from(one.deviation) / 10.0, f64::from(one.freedom));
            (squares + deviation * deviation * own, freedom + own)
        });
        (freedom > 0.0).then(|| squares / freedom)
    };
    let between_models = pooled(|tiers| tiers.components.between_models);
    let between_debates = pooled(|tiers| tiers.components.between_debates);
    let between_cards = pooled(|tiers| tiers.components.between_cards);
    let estimates = panels.iter().flat_map(|panel| &panel.result.tiers.estimates);
    let (shares, moves) = estimates.fold((0.0, 0.0), |(sum, count), one| {
        (sum + 1.0 / f64::from(one.debates.max(1)), count + 1.0)
    });
    let per_debate = shares / moves;
    let (members, models) = panels.first().map_or((1.0, 1.0), |panel| {
        (panel.table.judges().len() as f64, panel.table.models().1 as f64)
    });
    let in_units = |variance: f64| (variance.max(0.0) / first.spread()).sqrt();
    let cards = between_cards.unwrap_or(0.0);
    let truth: Vec<Vec<f64>> = panels
        .iter()
        .map(|panel| panel.truth.iter().map(|one| one.map_or(0.0, |(unit, _)| unit)).collect())
        .collect();
    let cases: Vec<BenchmarkCase<'_>> = panels
        .iter()
        .zip(&truth)
        .map(|(panel, true_values)| BenchmarkCase { table: &panel.table, true_values })
        .collect();
    MeasuredComponents {
        between_models,
        between_debates,
        between_cards,
        shared_error: line.shared_error(),
        allowance_shared_error: measure_shared_error(&cases)
            .map(|thousandths| f64::from(thousandths) / 1_000.0),
        taste: between_models
            .map(|variance| in_units(variance - cards * per_debate * models / members)),
        debate: between_debates.map(|variance| in_units(variance - cards / members)),
        per_debate,
    }
}

/// Sums over companies.
#[derive(Debug, Default)]
struct PanelSums {
    tau: f64,
    best_in_lead: u32,
    lead_is_best: u32,
    lead_size: f64,
    covered: f64,
    intervals: f64,
    squared_error: f64,
    stated: f64,
    base_rate: f64,
    bins: [ReportedChance; 5],
    controls: ControlTally,
}

impl PanelSums {
    fn add(&mut self, panel: &ScoredPanel<'_>, per_unit: f64) {
        let CompanyResult { company, titles, tiers, .. } = panel.result;
        let truth_of = |move_id: &str| {
            let cases = panel.result.record.cases.iter().zip(&panel.truth);
            let mut found = cases.filter(|(case, _)| case.move_id == move_id);
            found.next().and_then(|(_, truth)| *truth)
        };
        let moves: Vec<(i32, f64)> = tiers
            .moves_by_estimate()
            .into_iter()
            .filter_map(|one| Some((one.score, truth_of(&one.move_id)?.0)))
            .collect();
        self.tau += kendall_tau(&moves);
        let best = company.best_of(titles.values()).map(|one| &one.proposal.title);
        let lead = tiers.tier(VerdictTier::Lead);
        let is_best = |move_id: &String| titles.get(move_id) == best;
        let has_best = lead.iter().any(|one| is_best(&one.move_id));
        self.lead_size += lead.len() as f64;
        self.best_in_lead += u32::from(has_best);
        self.lead_is_best += u32::from(has_best && lead.len() == 1);
        let mut ranked: Vec<f64> = moves.iter().map(|(_, unit)| *unit).collect();
        ranked.sort_by(|one, other| other.total_cmp(one));
        let third = ranked.get(2).copied().unwrap_or(f64::MIN);
        let known: Vec<f64> =
            tiers.estimates.iter().filter_map(|one| Some(truth_of(&one.move_id)?.0)).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        for one in &tiers.estimates {
            let Some((unit, _)) = truth_of(&one.move_id) else { continue };
            if let Some(interval) = one.interval {
                let value = f64::from(tiers.mean_score) + (unit - mean) * per_unit * 10.0;
                let is_held = (f64::from(interval.low)..=f64::from(interval.high)).contains(&value);
                self.covered += f64::from(u8::from(is_held));
                self.intervals += 1.0;
            }
            if let Some(chance) = one.chance_top3 {
                let came_true = f64::from(u8::from(unit >= third));
                let stated = f64::from(chance) / 1_000.0;
                self.squared_error += (stated - came_true) * (stated - came_true);
                self.stated += 1.0;
                self.base_rate += came_true;
                let bin = BIN_ENDS.partition_point(|end| *end <= chance);
                if let Some(bin) = self.bins.get_mut(bin) {
                    bin.entries += 1;
                    bin.stated += stated;
                    bin.came_true += came_true;
                }
            }
        }
        let results = &tiers.controls.results;
        let caught = results.iter().filter(|one| one.is_caught).count();
        self.controls.planted += u32::try_from(results.len()).unwrap_or(0);
        self.controls.caught += u32::try_from(caught).unwrap_or(0);
        self.controls.doubtful += u32::from(tiers.controls.check == PanelCheck::Doubtful);
        self.controls.failed += u32::from(tiers.controls.check == PanelCheck::Failed);
    }
}

impl ReportedChance {
    /// Means instead of sums.
    fn mean(&self) -> Self {
        let count = f64::from(self.entries.max(1));
        Self { stated: self.stated / count, came_true: self.came_true / count, ..*self }
    }
}

/// Pairs of moves whose order differs between their first two debates.
#[derive(Debug, Default)]
struct PairFlips {
    pairs: f64,
    flipped: f64,
}

impl PairFlips {
    /// Ties count half.
    fn add(&mut self, means: &[Vec<Option<f64>>]) {
        let twice: Vec<(f64, f64)> = means
            .iter()
            .filter_map(|debates| Some(((*debates.first()?)?, (*debates.get(1)?)?)))
            .collect();
        for (index, one) in twice.iter().enumerate() {
            for other in twice.iter().skip(index + 1) {
                let (first, second) = (one.0 - other.0, one.1 - other.1);
                self.pairs += 1.0;
                self.flipped += match first * second {
                    product if product < 0.0 => 1.0,
                    product if product > 0.0 => 0.0,
                    _ => 0.5,
                };
            }
        }
    }

    fn share(&self) -> Option<f64> {
        (self.pairs > 0.0).then(|| self.flipped / self.pairs)
    }
}

impl JudgeFigures {
    fn of(panels: &[ScoredPanel<'_>], model: &str, style: Option<usize>) -> Self {
        let mut flips = PairFlips::default();
        let (mut line, mut tau) = (ValueLine::default(), 0.0);
        let mut cards = (0, 0);
        let mut controls = (0, 0);
        let mut points = Vec::new();
        for panel in panels {
            let record = panel.result.record;
            let members: BTreeSet<&str> = record
                .judges
                .iter()
                .filter(|judge| judge.model == model)
                .map(|judge| judge.id.as_str())
                .collect();
            let own = record.cards.iter().filter(|card| members.contains(card.member.as_str()));
            for card in own {
                cards.0 += u32::from(card.scorecard.is_given());
                cards.1 += 1;
            }
            for result in &panel.result.tiers.controls.results {
                let caught = members.iter().filter(|id| result.caught_by.contains(**id)).count();
                controls.0 += u32::try_from(caught).unwrap_or(0);
                controls.1 += u32::try_from(members.len()).unwrap_or(0);
            }
            flips.add(&panel.means_by_debate(Some(model)));
            let all = panel.points_of(Some(model), usize::MAX);
            tau += kendall_tau(&all.iter().map(|one| (one.score, one.unit)).collect::<Vec<_>>());
            let own = panel.first_points(Some(model));
            line = line.with(&own);
            points.push(own);
        }
        let fit = line.fit();
        Self {
            model: model.to_owned(),
            cards,
            tau: tau / panels.len() as f64,
            controls,
            points_per_unit: fit.per_unit,
            verbosity: fit.per_100_words,
            self_preference: style.and_then(|style| self_preference(&points, &fit, style)),
            flips: flips.share(),
        }
    }
}

/// How much higher a model scores moves in its own style than the line through all moves says.
fn self_preference(companies: &[Vec<MovePoint>], fit: &LineFit, style: usize) -> Option<f64> {
    let (mut own, mut others) = ((0.0, 0.0), (0.0, 0.0));
    for points in companies {
        let beside =
            |one: &MovePoint| one.score - fit.per_unit * one.unit - fit.per_100_words * one.words;
        let mean = points.iter().map(beside).sum::<f64>() / points.len() as f64;
        for one in points {
            let sums = if one.style == style { &mut own } else { &mut others };
            sums.0 += beside(one) - mean;
            sums.1 += 1.0;
        }
    }
    let is_known = own.1 > 0.0 && others.1 > 0.0 && fit.per_unit > 0.0;
    is_known.then(|| (own.0 / own.1 - others.0 / others.1) / fit.per_unit)
}
