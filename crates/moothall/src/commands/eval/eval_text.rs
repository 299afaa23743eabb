//! The figures of a benchmark as text.

use std::fmt::Write as _;

use moothall_core::benchmark::{BenchmarkReport, JudgeFigures, JudgeMeasurement};
use moothall_core::verdict::MIN_MOVES;

use crate::terminal::{BOLD, DIM};

/// All figures, in lines of at most 120 columns.
pub(crate) fn text(report: &BenchmarkReport, measured: &JudgeMeasurement) -> String {
    let mut text = String::new();
    let mut line = |name: &str, figures: String| {
        let _ = writeln!(text, "{BOLD}{name:<11}{BOLD:#} {figures}");
    };
    let companies = report.companies;
    let set = format!("{} ({:.12})", measured.set, measured.set_sha256);
    let what = if companies == 1 { "company" } else { "companies" };
    line("Benchmark", format!("{set}, {companies} {what} with {} moves each", report.moves));
    if let Some(coverage) = report.coverage {
        line(
            "Order",
            format!(
                "tau {:.2} · best move in the lead {} of {companies} · {:.1} moves lead, exactly the best one in {}",
                report.tau, report.best_in_lead, report.lead_size, report.lead_is_best
            ),
        );
        line("Intervals", format!("hold the true value in {}", percent(coverage)));
    } else {
        line("Order", format!("tau {:.2}", report.tau));
        line("Intervals", format!("none: a verdict needs at least {MIN_MOVES} moves"));
    }
    if let Some((brier, base_rate)) = report.brier.zip(report.brier_of_base_rate) {
        let bins = report.chances.iter().filter(|bin| bin.entries > 0);
        let bins: Vec<String> = bins
            .map(|bin| format!("{:.2}→{:.2} ({})", bin.stated, bin.came_true, bin.entries))
            .collect();
        line("Chances", format!("stated→true (count): {}", bins.join("  ")));
        line("", format!("Brier {brier:.3}, base rate alone {base_rate:.3}"));
    }
    let controls = &report.controls;
    line(
        "Controls",
        format!(
            "{} of {} caught · panels doubtful {}, failed {}",
            controls.caught, controls.planted, controls.doubtful, controls.failed
        ),
    );
    line(
        "Repeats",
        format!("a second debate reverses {} of the pairs", optional(report.flips, percent)),
    );
    let length = slope(report.verbosity, |points| format!("{points:+.1}"));
    line("Length", format!("{length} points for each 100 words"));
    let found = &report.components;
    let points = |variance: f64| format!("{:.1} points", variance.sqrt());
    let units = |value: f64| format!("{value:.2}");
    line(
        "Errors",
        format!(
            "between models {} · between debates {} · one card {} · shared by all models {} of the spread",
            optional(found.between_models, points),
            optional(found.between_debates, points),
            optional(found.between_cards, points),
            optional(found.shared_error, units),
        ),
    );
    line(
        "Allowances",
        format!(
            "shared error {:.2} · single model {:.2} · single debate {:.2}",
            thousandths(measured.shared_error),
            thousandths(measured.single_model),
            thousandths(measured.single_debate),
        ),
    );
    let _ = writeln!(
        text,
        "\n{DIM}{:<34} {:>5} {:>11} {:>10} {:>10} {:>10} {:>6} {:>6}{DIM:#}",
        "model", "tau", "cards", "controls", "pts/unit", "pts/100 w", "self", "flips"
    );
    for judge in &report.judges {
        text.push_str(&judge_line(judge));
    }
    text
}

fn judge_line(judge: &JudgeFigures) -> String {
    format!(
        "{:<34} {:>5.2} {:>11} {:>10} {:>10} {:>10} {:>6} {:>6}\n",
        judge.model,
        judge.tau,
        format!("{}/{}", judge.cards.0, judge.cards.1),
        format!("{}/{}", judge.controls.0, judge.controls.1),
        slope(judge.points_per_unit, |points| format!("{points:.1}")),
        slope(judge.verbosity, |points| format!("{points:+.1}")),
        optional(judge.self_preference, |value| format!("{value:+.2}")),
        optional(judge.flips, percent),
    )
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn thousandths(value: u32) -> f64 {
    f64::from(value) / 1_000.0
}

/// The slope of a line through too few moves is not a number.
fn slope(value: f64, show: impl Fn(f64) -> String) -> String {
    optional(value.is_finite().then_some(value), show)
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}
