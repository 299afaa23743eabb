//! Forecasts about what filings will show, and how good they were.
//!
//! A move that a company did not take has no outcome, so forecasts are about filed figures. Code
//! writes the questions and resolves them; members of a panel only state chances. The first filed
//! value of a period counts, because restated values were not known when the question resolved.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::announcement::TierOutcome;
use super::tiers::VerdictTier;
use crate::evidence::{
    CalendarDay, Fact, FactId, FactSheet, FactUnit, FilingSource, FiscalPeriod, display_amount,
    metrics,
};

/// Limit on questions.
pub const MAX_QUESTIONS: usize = 15;
/// With fewer resolved questions a score says nothing.
pub const MIN_RESOLVED: usize = 30;
/// Past years that a median growth needs.
const MIN_GROWTHS: usize = 2;
/// Upper ends of the bins of stated chances, in thousandths; the last bin has the rest.
const BIN_ENDS: [u32; 4] = [200, 400, 600, 800];

/// A question that a later filing answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForecastQuestion {
    /// Unique in a run: `q1`.
    pub id: String,
    /// The metric and the period of the value.
    pub fact: FactId,
    /// What the value is compared with.
    pub comparison: ForecastComparison,
    /// The value must be above this, in whole units, as a decimal number.
    pub threshold: String,
    /// The last value when the question was written.
    pub last: String,
    /// The end of the period.
    pub period_end: CalendarDay,
    /// The first day on which a filing can answer it.
    pub first_day: CalendarDay,
    /// How often the same was true in past years, in thousandths.
    pub past_frequency: u32,
}

/// What a value is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForecastComparison {
    /// The value of the year before.
    LastValue,
    /// That value, with the median of its past growth.
    UsualGrowth,
}

impl ForecastQuestion {
    /// The question in a few words, for people.
    pub fn summary(&self) -> String {
        let FactId { metric, period } = &self.fact;
        let label = metrics::metric(metric).map_or(metric.as_str(), |known| known.label);
        let than = match self.comparison {
            ForecastComparison::LastValue => "the last value",
            ForecastComparison::UsualGrowth => "the last value with its usual growth",
        };
        format!("{label} of {period} above {} ({than})", amount(&self.threshold))
    }

    /// The question in one sentence, for a model.
    pub fn text(&self) -> String {
        let FactId { metric, period } = &self.fact;
        let than = match self.comparison {
            ForecastComparison::LastValue => "its last value",
            ForecastComparison::UsualGrowth => "its last value with its usual growth",
        };
        format!("{metric} of {period} will be above {} ({than})", self.threshold)
    }
}

/// A chance that a member states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberForecast {
    /// The question.
    pub question: String,
    /// The member.
    pub member: String,
    /// In thousandths.
    pub chance: u32,
}

/// The answer that a filing gave to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForecastOutcome {
    /// The question.
    pub question: String,
    /// Whether the value was above the threshold.
    pub happened: bool,
    /// The first filed value, as a decimal number.
    pub value: String,
    /// The filing day of that value; of the newest filing with it if it was never corrected.
    pub filed: CalendarDay,
    /// The accession number of the newest filing with a value for the period.
    pub accession: String,
}

impl ForecastOutcome {
    /// The filed value with its filing, for people.
    pub fn summary(&self) -> String {
        format!("{}, filed on {} ({})", amount(&self.value), self.filed, self.accession)
    }
}

fn amount(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), display_amount)
}

/// Writes questions about the next fiscal year of these metrics, in their order. Only money that was
/// filed is asked about: derived values and per-share values change with later filings.
pub fn forecast_questions(sheet: &FactSheet, metrics: &[String]) -> Vec<ForecastQuestion> {
    let mut questions = Vec::new();
    let Some(year) = sheet.newest_year() else { return questions };
    let Some(end) = sheet.fiscal_year_ends.get(&year) else { return questions };
    // Fiscal years of 52 or 53 weeks end within a week of this day.
    let period_end = end.plus_days(365);
    let mut seen = std::collections::BTreeSet::new();
    for metric in metrics.iter().filter(|metric| seen.insert(*metric)) {
        let Some(history) = MetricHistory::of(sheet, metric, year) else { continue };
        let mut ask = |comparison, threshold: Decimal, past_frequency| {
            if questions.len() < MAX_QUESTIONS {
                questions.push(ForecastQuestion {
                    id: format!("q{}", questions.len() + 1),
                    fact: FactId::new(metric.as_str(), FiscalPeriod::Year(year + 1)),
                    comparison,
                    threshold: threshold.normalize().to_string(),
                    last: history.last.normalize().to_string(),
                    period_end,
                    first_day: period_end.plus_days(1),
                    past_frequency,
                });
            }
        };
        ask(ForecastComparison::LastValue, history.last, history.frequency_above(Decimal::ZERO));
        if let Some(usual) = history.median_growth() {
            let threshold =
                Decimal::ONE.checked_add(usual).and_then(|up| history.last.checked_mul(up));
            let Some(threshold) = threshold else { continue };
            let frequency = history.frequency_above(usual);
            ask(ForecastComparison::UsualGrowth, threshold.round(), frequency);
        }
    }
    questions
}

/// Yearly values of a metric.
struct MetricHistory {
    last: Decimal,
    /// Growth of each year with a positive value before it, oldest first.
    growths: Vec<Decimal>,
}

impl MetricHistory {
    fn of(sheet: &FactSheet, metric: &str, year: i32) -> Option<Self> {
        let value = |year: i32| {
            let fact = sheet.fact(&FactId::new(metric, FiscalPeriod::Year(year)))?;
            (fact.unit == FactUnit::Money && fact.filed().is_some()).then_some(fact.value)
        };
        let last = value(year).filter(|last| *last > Decimal::ZERO)?;
        let years = sheet.fiscal_year_ends.keys().copied();
        let growths = years.filter_map(|year| {
            let before = value(year - 1).filter(|before| *before > Decimal::ZERO)?;
            value(year)?.checked_sub(before)?.checked_div(before)
        });
        Some(Self { last, growths: growths.collect() })
    }

    fn median_growth(&self) -> Option<Decimal> {
        let mut sorted = self.growths.clone();
        sorted.sort();
        if sorted.len() < MIN_GROWTHS {
            return None;
        }
        let (lower, upper) = (sorted.get((sorted.len() - 1) / 2)?, sorted.get(sorted.len() / 2)?);
        lower.checked_add(*upper)?.checked_div(Decimal::TWO)
    }

    /// In thousandths; one half without any past year.
    fn frequency_above(&self, growth: Decimal) -> u32 {
        let above = self.growths.iter().filter(|one| **one > growth).count();
        match self.growths.len() {
            0 => 500,
            all => u32::try_from((above * 2_000 + all) / (all * 2)).unwrap_or(1_000),
        }
    }
}

/// The answer to a question, if a filing until the day of the sheet gives it. `asked` is the day up to
/// which the members knew filings: what was filed until then is not a forecast.
pub fn resolve_question(
    question: &ForecastQuestion,
    sheet: &FactSheet,
    asked: CalendarDay,
) -> Option<ForecastOutcome> {
    let fact: &Fact = sheet.fact(&question.fact)?;
    let filing: &FilingSource = fact.filed()?;
    let (value, filed) = match &filing.restated_from {
        Some(first) => (first.value, first.filed),
        None => (fact.value, filing.filed),
    };
    let threshold: Decimal = question.threshold.parse().ok()?;
    (filed > asked && filed <= sheet.as_of).then(|| ForecastOutcome {
        question: question.id.clone(),
        happened: value > threshold,
        value: value.normalize().to_string(),
        filed,
        accession: filing.accession.clone(),
    })
}

/// A stated chance whose question was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedForecast {
    /// Unique over all runs.
    pub question: String,
    /// The member.
    pub member: String,
    /// Its model.
    pub model: String,
    /// In thousandths.
    pub chance: u32,
    /// How often the same was true in past years, in thousandths; `None` if that is not known.
    pub past_frequency: Option<u32>,
    /// Whether it happened.
    pub happened: bool,
    /// Whether the model may have known the answer.
    pub is_possibly_known: bool,
}

/// Whether a model may know the answer to a question about a period, because it learned about the
/// time after its end. If it is unknown what it learned, that may be all up to the day of the run.
pub fn is_possibly_known(
    period_end: CalendarDay,
    knowledge_until: Option<CalendarDay>,
    run_on: CalendarDay,
) -> bool {
    period_end < knowledge_until.map_or(run_on, |until| until.min(run_on))
}

/// How good forecasts were.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastScore {
    /// Stated chances whose question was answered.
    pub forecasts: u32,
    /// Questions that were answered.
    pub questions: u32,
    /// Mean squared error of the chances, from 0 to 1.
    pub brier: f64,
    /// Compared with stating the past frequency: 1 is perfect, 0 no better, negative worse. `None`
    /// if the past frequency makes no error or is not known.
    pub skill_over_past: Option<f64>,
    /// Compared with always stating one half.
    pub skill_over_even: Option<f64>,
    /// Stated chances in five bins.
    pub calibration: CalibrationTable,
}

/// Stated chances in five bins of equal width.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CalibrationTable {
    /// From the lowest to the highest chances.
    pub bins: [CalibrationBin; 5],
}

/// A bin of stated chances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// Number of statements.
    pub entries: u32,
    /// Their mean.
    pub stated: f64,
    /// How often they came true.
    pub happened: f64,
}

impl ForecastScore {
    /// Scores forecasts; `None` without any.
    pub fn of<'a>(forecasts: impl IntoIterator<Item = &'a ResolvedForecast>) -> Option<Self> {
        let mut count = 0_u32;
        let mut questions = std::collections::BTreeSet::new();
        let (mut stated, mut past, mut even) = (0.0, Some(0.0), 0.0);
        let mut calibration = CalibrationTable::default();
        for one in forecasts {
            let happened = f64::from(u8::from(one.happened));
            let error = |chance: u32| {
                let error = f64::from(chance) / 1_000.0 - happened;
                error * error
            };
            count += 1;
            questions.insert(&one.question);
            stated += error(one.chance);
            past = past.zip(one.past_frequency).map(|(past, chance)| past + error(chance));
            even += error(500);
            let bin = BIN_ENDS.partition_point(|end| *end <= one.chance);
            if let Some(bin) = calibration.bins.get_mut(bin) {
                bin.entries += 1;
                bin.stated += f64::from(one.chance) / 1_000.0;
                bin.happened += happened;
            }
        }
        for bin in &mut calibration.bins {
            let entries = f64::from(bin.entries.max(1));
            (bin.stated, bin.happened) = (bin.stated / entries, bin.happened / entries);
        }
        let skill = |reference: f64| (reference > 0.0).then(|| 1.0 - stated / reference);
        (count > 0).then(|| Self {
            forecasts: count,
            questions: u32::try_from(questions.len()).unwrap_or(u32::MAX),
            brier: stated / f64::from(count),
            skill_over_past: past.and_then(skill),
            skill_over_even: skill(even),
            calibration,
        })
    }

    /// Whether there are too few answered questions to judge by them.
    pub fn is_too_small(&self) -> bool {
        usize::try_from(self.questions).is_ok_and(|questions| questions < MIN_RESOLVED)
    }
}

/// Scores of everything, of what no model can have known, and of each member and model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ForecastReport {
    /// Forecasts that no model can have known: the headline.
    pub headline: Option<ForecastScore>,
    /// Forecasts that a model may have known.
    pub possibly_known: Option<ForecastScore>,
    /// Headline forecasts by member.
    pub by_member: BTreeMap<String, ForecastScore>,
    /// Headline forecasts by model.
    pub by_model: BTreeMap<String, ForecastScore>,
    /// Forecasts of announcements that no model can have known. They are rare, so stating low chances
    /// is easy: they are not part of the headline.
    pub announcements: Option<ForecastScore>,
    /// Forecasts of announcements that a model may have known.
    pub announcements_possibly_known: Option<ForecastScore>,
    /// What became of the moves of each tier.
    pub by_tier: BTreeMap<VerdictTier, TierOutcome>,
}

impl ForecastReport {
    /// Scores forecasts in groups.
    pub fn of(forecasts: &[ResolvedForecast]) -> Self {
        let counted = || forecasts.iter().filter(|one| !one.is_possibly_known);
        let by = |key: fn(&ResolvedForecast) -> &String| {
            let mut groups = BTreeMap::<&String, Vec<&ResolvedForecast>>::new();
            for one in counted() {
                groups.entry(key(one)).or_default().push(one);
            }
            let groups = groups.into_iter();
            groups
                .filter_map(|(name, group)| Some((name.clone(), ForecastScore::of(group)?)))
                .collect()
        };
        Self {
            headline: ForecastScore::of(counted()),
            possibly_known: ForecastScore::of(forecasts.iter().filter(|one| one.is_possibly_known)),
            by_member: by(|one| &one.member),
            by_model: by(|one| &one.model),
            announcements: None,
            announcements_possibly_known: None,
            by_tier: BTreeMap::new(),
        }
    }

    /// Adds what is known about the moves themselves.
    #[must_use]
    pub fn with_moves(
        self,
        announcements: &[ResolvedForecast],
        by_tier: BTreeMap<VerdictTier, TierOutcome>,
    ) -> Self {
        let score = |is_known: bool| {
            ForecastScore::of(announcements.iter().filter(|one| one.is_possibly_known == is_known))
        };
        Self {
            announcements: score(false),
            announcements_possibly_known: score(true),
            by_tier,
            ..self
        }
    }
}

#[cfg(test)]
#[path = "forecast_tests.rs"]
mod tests;
