//! Outcomes and scores of forecasts as text.

use std::fmt::Write as _;

use moothall_core::consult::ForecastRecord;
use moothall_core::verdict::{ForecastOutcome, ForecastReport, ForecastScore, MIN_RESOLVED};

use crate::display;
use crate::terminal::BOLD;

/// Each question with its answer and the mean of the stated chances.
pub(crate) fn questions(forecasts: &ForecastRecord, outcomes: &[ForecastOutcome]) -> String {
    let mut text = String::new();
    for question in &forecasts.questions {
        let stated = forecasts.forecasts.iter().filter(|one| one.question == question.id);
        let (sum, count) = stated.fold((0, 0), |(sum, count), one| (sum + one.chance, count + 1));
        let mean = match count {
            0 => "–".to_owned(),
            count => format!("{} %", (f64::from(sum) / f64::from(count) / 10.0).round()),
        };
        let answer = match outcomes.iter().find(|one| one.question == question.id) {
            Some(one) => {
                let answer = if one.happened { "yes" } else { "no" };
                format!("{answer}: {} filed {} ({})", one.value, one.filed, one.accession)
            }
            None => format!("open, not before {}", question.first_day),
        };
        let _ = writeln!(text, "{:<4} {mean:>5}  {}  {answer}", question.id, question.text());
    }
    text
}

/// The score of all forecasts.
pub(crate) fn score(report: &ForecastReport, runs: usize) -> String {
    let mut text = String::new();
    match &report.headline {
        Some(score) => {
            let _ = writeln!(
                text,
                "{BOLD}Forecasts of {}{BOLD:#}  {}",
                display::counted(runs, "run"),
                line(score)
            );
            if score.is_too_small() {
                let questions = score.questions;
                let _ = writeln!(
                    text,
                    "too few to judge: {questions} answered questions, {MIN_RESOLVED} are needed"
                );
            }
            for bin in score.calibration.bins.iter().filter(|bin| bin.entries > 0) {
                let _ = writeln!(
                    text,
                    "  stated {:.2}  happened {:.2}  {} forecasts",
                    bin.stated, bin.happened, bin.entries
                );
            }
        }
        None => {
            let _ = writeln!(text, "too few to judge: no forecast that a model cannot have known");
        }
    }
    for (name, score) in report.by_model.iter().chain(&report.by_member) {
        let _ = writeln!(text, "  {name:<34} {}", line(score));
    }
    if let Some(known) = &report.possibly_known {
        let _ = writeln!(text, "possibly known to the model, not counted: {}", line(known));
    }
    text
}

fn line(score: &ForecastScore) -> String {
    let skill = |skill: Option<f64>| match skill {
        Some(skill) => format!("{skill:+.2}"),
        None => "–".to_owned(),
    };
    format!(
        "{} forecasts, {} questions · Brier {:.3} · skill over past frequency {}, over one half {}",
        score.forecasts,
        score.questions,
        score.brier,
        skill(score.skill_over_past),
        skill(score.skill_over_even),
    )
}
