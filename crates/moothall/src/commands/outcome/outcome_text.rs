//! Outcomes and scores of forecasts as text.

use std::fmt::Write as _;

use moothall_core::consult::ForecastRecord;
use moothall_core::evidence::CalendarDay;
use moothall_core::verdict::{
    AnnouncementBasis, AnnouncementOutcome, AnnouncementQuestion, ForecastOutcome, ForecastReport,
    ForecastScore, MIN_RESOLVED, TierOutcome, VerdictTier,
};

use crate::display;
use crate::terminal::BOLD;

/// Each question with its answer and the mean of the stated chances.
pub(crate) fn questions(forecasts: &ForecastRecord, outcomes: &[ForecastOutcome]) -> String {
    let mut text = String::new();
    for question in &forecasts.questions {
        let mean = mean_chance(forecasts, &question.id);
        let answer = match outcomes.iter().find(|one| one.question == question.id) {
            Some(one) => {
                let answer = if one.happened { "yes" } else { "no" };
                format!("{answer}: {}", one.summary())
            }
            None => format!("open, not before {}", question.first_day),
        };
        let _ = writeln!(text, "{:<4} {mean:>5}  {}  {answer}", question.id, question.summary());
    }
    text
}

/// Each question about an announcement with its answer, and how to answer it.
pub(crate) fn announcements(
    forecasts: &ForecastRecord,
    outcomes: &[AnnouncementOutcome],
    as_of: CalendarDay,
) -> String {
    let mut text = String::new();
    for question in &forecasts.announcements {
        let mean = mean_chance(forecasts, &question.id);
        let AnnouncementQuestion { id, move_id, last_day, .. } = question;
        let answer = match outcomes.iter().find(|one| one.question == *id) {
            Some(AnnouncementOutcome { happened: true, .. }) => "yes".to_owned(),
            Some(AnnouncementOutcome { basis: AnnouncementBasis::NoFiling, .. }) => {
                "no: no 8-K or 6-K was filed".to_owned()
            }
            Some(_) => "no".to_owned(),
            None if as_of <= *last_day => format!("open until {last_day}"),
            None => format!(
                "open: note it with `--move {move_id} --taken DAY` or `--move {move_id} --not-taken`"
            ),
        };
        let statement = display::line(&question.summary());
        let _ = writeln!(text, "{id:<4} {mean:>5}  {statement}  {answer}");
    }
    text
}

/// The mean of the stated chances.
fn mean_chance(forecasts: &ForecastRecord, question: &str) -> String {
    match forecasts.mean_chance(question) {
        None => "–".to_owned(),
        Some(chance) => format!("{} %", (f64::from(chance) / 10.0).round()),
    }
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
    if let Some(score) = &report.announcements {
        let _ = writeln!(text, "announced moves: {}", line(score));
    }
    if let Some(known) = &report.announcements_possibly_known {
        let known = line(known);
        let _ = writeln!(text, "announced moves, possibly known to the model: {known}");
    }
    let tier = |(tier, found): (&VerdictTier, &TierOutcome)| {
        let TierOutcome { moves, taken, not_taken } = found;
        format!("{} {taken} of {moves} ({not_taken} not taken)", tier.text())
    };
    let tiers: Vec<String> = report.by_tier.iter().map(tier).collect();
    if !tiers.is_empty() {
        let _ = writeln!(text, "moves taken, as noted: {}", tiers.join(" · "));
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
