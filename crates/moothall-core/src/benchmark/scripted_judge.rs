//! Judges with known errors. They know the true value of every move of a set and answer with planted
//! noise: a benchmark of them shows whether the statistics find what was planted.
//!
//! The unit of errors is the standard deviation of the true values of a company's moves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hash_noise::HashNoise;
use super::synthetic_set::{BenchmarkCompany, BenchmarkMove, BenchmarkSet, STYLES, words_of_case};
use crate::Sha256Hex;
use crate::consult::committee::TOP_LEVEL;

/// Points of 120 that one unit is worth, and the score of an average move.
pub(crate) const UNIT_POINTS: f64 = 9.6;
const AVERAGE_POINTS: f64 = 72.0;
/// Points that one step of one metric is worth on average, if the highest total is 120.
const POINTS_PER_LEVEL: f64 = 12.0;
/// Length in words that a judge with a taste for length finds neither long nor short.
const USUAL_WORDS: f64 = 210.0;

/// How far planted controls are from where they would be: a known-bad move from the average, and a
/// weakened copy from its original.
const KNOWN_BAD_UNITS: f64 = -2.5;
const WEAKENED_UNITS: f64 = -1.5;

/// Limits of a profile.
const MAX_JUDGES: usize = 9;
const MAX_ERROR: f64 = 10.0;
const MAX_POINTS: f64 = 120.0;

/// A judge: how its scores follow the true values, and its errors as standard deviations in units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeProfile {
    /// How much of a difference in value it sees; 1 for all of it.
    pub slope: f64,
    /// Of its model's own opinion about a move.
    pub taste: f64,
    /// Of a member's own opinion about a move, in addition to its model's.
    pub lens: f64,
    /// Of a single card.
    pub card: f64,
    /// Points for each 100 words.
    pub verbosity: f64,
    /// Points that it gives to every move.
    pub leniency: f64,
    /// What it adds to moves in its own style.
    pub self_preference: f64,
    /// Its style: the number of one of the opening phrases of a set, starting at 0.
    pub style: usize,
    /// The share of its answers that cannot be used.
    pub failure: f64,
}

impl Default for JudgeProfile {
    /// The errors that published comparisons of judges show.
    fn default() -> Self {
        Self {
            slope: 1.0,
            taste: 0.65,
            lens: 0.3,
            card: 0.6,
            verbosity: 4.0,
            leniency: 0.0,
            self_preference: 0.4,
            style: 0,
            failure: 0.01,
        }
    }
}

/// All judges of a benchmark, with the errors that they share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeWorld {
    /// Changes all noise.
    pub seed: u64,
    /// The error that all judges share, in units.
    pub shared_error: f64,
    /// The luck of a debate, in units.
    pub debate: f64,
    /// Judges by the name of their model.
    #[serde(rename = "judge")]
    pub judges: BTreeMap<String, JudgeProfile>,
}

impl Default for JudgeWorld {
    /// Five judges with the usual errors, each with its own style and leniency.
    fn default() -> Self {
        let profile = |style: usize| JudgeProfile {
            style,
            leniency: (style as f64 - 2.0) * 1.7,
            ..JudgeProfile::default()
        };
        // A debate of four rounds.
        Self { seed: 1, shared_error: 0.4, debate: 0.56, judges: five_judges(profile) }
    }
}

fn five_judges(profile: impl Fn(usize) -> JudgeProfile) -> BTreeMap<String, JudgeProfile> {
    (0..STYLES).map(|style| (format!("judge-{}", style + 1), profile(style))).collect()
}

impl JudgeWorld {
    /// Why a profile cannot be used, if so.
    pub fn problem(&self) -> Option<String> {
        if !(1..=MAX_JUDGES).contains(&self.judges.len()) {
            return Some(format!("a profile has 1 to {MAX_JUDGES} judges"));
        }
        let is_error = |value: f64| (0.0..=MAX_ERROR).contains(&value);
        if !is_error(self.shared_error) || !is_error(self.debate) {
            return Some(format!("`shared_error` and `debate` are 0 to {MAX_ERROR}"));
        }
        self.judges.iter().find_map(|(name, judge)| {
            let JudgeProfile { taste, lens, card, slope, verbosity, leniency, .. } = *judge;
            let is_fine = [taste, lens, card].into_iter().all(is_error)
                && [slope, verbosity, leniency, judge.self_preference]
                    .into_iter()
                    .all(|value| value.abs() <= MAX_POINTS)
                && (0.0..=1.0).contains(&judge.failure)
                && judge.style < STYLES;
            (!is_fine).then(|| {
                format!(
                    "judge `{name}`: errors are 0 to {MAX_ERROR}, points at most {MAX_POINTS}, \
                     `failure` 0 to 1 and `style` 0 to {}",
                    STYLES - 1
                )
            })
        })
    }

    /// Five judges without any error. They differ in leniency, which does not affect a verdict.
    pub fn without_noise() -> Self {
        let profile = |style: usize| JudgeProfile {
            slope: 1.0,
            taste: 0.0,
            lens: 0.0,
            card: 0.0,
            verbosity: 0.0,
            leniency: (style as f64 - 2.0) * 0.6,
            self_preference: 0.0,
            style,
            failure: 0.0,
        };
        Self { seed: 1, shared_error: 0.0, debate: 0.0, judges: five_judges(profile) }
    }
}

/// A question to a judge.
#[derive(Debug, Clone, Copy)]
pub struct JudgeQuestion<'a> {
    /// The name of its model in the world.
    pub model: &'a str,
    /// The lens of the member.
    pub lens: &'a str,
    /// The dossier, which names the company.
    pub dossier: &'a str,
    /// The case.
    pub case: &'a str,
}

/// Judges that know a set.
#[derive(Debug)]
pub struct ScriptedJudges {
    set: BenchmarkSet,
    world: JudgeWorld,
    /// Company and move by title.
    titles: BTreeMap<String, (usize, usize)>,
    /// True values by company.
    units: Vec<Vec<f64>>,
}

impl ScriptedJudges {
    /// Judges of a world that know the true values of a set.
    pub fn new(set: BenchmarkSet, world: JudgeWorld) -> Self {
        let mut titles = BTreeMap::new();
        for (company, of) in set.companies.iter().enumerate() {
            for (place, one) in of.moves.iter().enumerate() {
                titles.insert(one.proposal.title.clone(), (company, place));
            }
        }
        let units = set.companies.iter().map(BenchmarkCompany::true_units).collect();
        Self { set, world, titles, units }
    }

    /// The set that the judges know.
    pub fn set(&self) -> &BenchmarkSet {
        &self.set
    }

    /// The planted errors.
    pub fn world(&self) -> &JudgeWorld {
        &self.world
    }

    /// A score for each metric; `None` if the judge is unknown or its answer is unusable.
    pub fn score(&self, question: &JudgeQuestion<'_>, metrics: &[&str]) -> Option<Vec<i64>> {
        let JudgeQuestion { model, lens, case, .. } = *question;
        let profile = self.world.judges.get(model)?;
        let noise = HashNoise::new(self.world.seed);
        let case_hash = Sha256Hex::of(case.as_bytes()).to_string();
        if noise.uniform(&["failure", model, lens, &case_hash]) < profile.failure {
            return None;
        }
        let points = self.opinion(question, profile, noise, &case_hash)?;
        // Noise of metrics averages out over them, so each one has more of it.
        let spread = profile.card * (metrics.len() as f64).sqrt() * UNIT_POINTS;
        let exact = metrics.iter().map(|metric| {
            (points + spread * noise.normal(&["card", model, lens, &case_hash, metric]))
                / POINTS_PER_LEVEL
        });
        // Rounds the running sum: the total is then as exact as whole scores allow.
        let (mut sum, mut given) = (0.0, 0);
        let scores = exact.map(|score| {
            sum += score;
            let level = (sum.round() as i64).saturating_sub(given);
            given = given.saturating_add(level);
            level.clamp(1, i64::from(TOP_LEVEL))
        });
        Some(scores.collect())
    }

    /// What a member thinks of a case before the noise of its card, in points.
    fn opinion(
        &self,
        question: &JudgeQuestion<'_>,
        profile: &JudgeProfile,
        noise: HashNoise,
        case_hash: &str,
    ) -> Option<f64> {
        let JudgeQuestion { model, lens, case, dossier } = *question;
        let title = case.lines().find_map(|line| line.strip_prefix("Title: "))?;
        let known = self.titles.get(title).copied();
        let found =
            known.and_then(|(company, place)| self.set.companies.get(company)?.moves.get(place));
        let truth = match known {
            Some((company, place)) => {
                let is_weakened = case.contains("\nEvidence: none given")
                    && case.contains("\nKill criteria: none given");
                let original = *self.units.get(company)?.get(place)?;
                original + if is_weakened { WEAKENED_UNITS } else { 0.0 }
            }
            None if title.starts_with("Do nothing") => self.company(dossier)?.do_nothing_units(),
            None => KNOWN_BAD_UNITS,
        };
        // Titles of planted moves repeat between companies.
        let company = match known {
            Some(_) => "",
            None => self.company(dossier).map_or("", |company| &company.name),
        };
        let own = found.is_some_and(|one: &BenchmarkMove| one.style == profile.style);
        let luck = match case.contains("\nDEBATE RECORD") {
            true => self.world.debate * noise.normal(&["debate", case_hash]),
            false => 0.0,
        };
        let units = profile.slope * truth
            + self.world.shared_error * noise.normal(&["shared", company, title])
            + profile.taste * noise.normal(&["taste", model, company, title])
            + profile.lens * noise.normal(&["lens", model, lens, company, title])
            + if own { profile.self_preference } else { 0.0 }
            + luck;
        let length = (words_of_case(case) as f64 - USUAL_WORDS) / 100.0;
        Some(AVERAGE_POINTS + UNIT_POINTS * units + profile.leniency + profile.verbosity * length)
    }

    /// The company that a prompt is about.
    pub(crate) fn company(&self, prompt: &str) -> Option<&BenchmarkCompany> {
        self.set.companies.iter().find(|company| prompt.contains(&company.name))
    }
}

#[cfg(test)]
#[path = "scripted_judge_tests.rs"]
mod tests;
