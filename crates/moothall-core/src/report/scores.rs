//! The scores of a consultation as CSV.

use super::consult_report::ConsultReport;
use super::csv_line;
use crate::consult::RankedMove;
use crate::debate::ScoreBasis;
use crate::verdict::MoveEstimate;

const HEADINGS: [&str; 10] = [
    "rank",
    "move",
    "title",
    "decision_maker",
    "metric",
    "score",
    "top",
    "spread",
    "basis",
    "remarks",
];

/// Further columns if a panel sat, filled in the row of each move's total.
const VERDICT_HEADINGS: [&str; 6] =
    ["tier", "panel_score", "low", "high", "chance_top3", "debates"];

/// RFC 4180: one row per move, decision maker and metric, one per scorecard, and one per move with
/// `total` as its metric and decision maker. A move that was not debated has one row without a
/// score.
pub fn scores_csv(view: &ConsultReport) -> String {
    let verdict = view.ranked.as_ref().and_then(|ranked| ranked.verdict.as_deref());
    let headings = HEADINGS.into_iter().chain(verdict.into_iter().flat_map(|_| VERDICT_HEADINGS));
    let mut text = csv_line(&headings.collect::<Vec<_>>());
    for one in view.ranked.iter().flat_map(|ranked| ranked.moves()) {
        for row in rows(view, one) {
            let is_total = row.get(3).is_some_and(|who| who == "total");
            let mut cells = Vec::from(row);
            if let Some(verdict) = verdict {
                let estimate = verdict.estimate(&one.move_id).filter(|_| is_total);
                cells.extend(estimate.map(verdict_cells).unwrap_or_default());
            }
            text.push_str(&csv_line(&cells));
        }
    }
    text
}

/// Scores in points and chances as fractions, both with a decimal point.
fn verdict_cells(estimate: &MoveEstimate) -> [String; 6] {
    let points = |tenths: i32| {
        let sign = if tenths < 0 { "-" } else { "" };
        format!("{sign}{}.{}", tenths.abs() / 10, tenths.abs() % 10)
    };
    let interval = estimate.interval;
    let chance = |thousandths: u32| format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    [
        estimate.tier.map(|tier| tier.text().to_owned()).unwrap_or_default(),
        points(estimate.score),
        interval.map(|found| points(found.low)).unwrap_or_default(),
        interval.map(|found| points(found.high)).unwrap_or_default(),
        estimate.chance_top3.map(chance).unwrap_or_default(),
        estimate.debates.to_string(),
    ]
}

fn rows(view: &ConsultReport, one: &RankedMove) -> Vec<[String; 10]> {
    let rank = view.ranked.as_ref().and_then(|ranked| ranked.meaningful_rank(&one.move_id));
    let row = |who: &str, metric: &str, figures: [String; 4], remarks: &str| {
        let [score, top, spread, basis] = figures;
        [
            rank.map(|rank| rank.to_string()).unwrap_or_default(),
            one.move_id.clone(),
            one.title.clone(),
            who.to_owned(),
            metric.to_owned(),
            score,
            top,
            spread,
            basis,
            remarks.to_owned(),
        ]
    };
    let remarks = remarks(one);
    let Some(debated) = &one.debated else {
        return vec![row("total", "total", Default::default(), &remarks)];
    };
    let committee = &view.input.committee;
    let top = u32::from(crate::consult::committee::TOP_LEVEL);
    let mut rows = Vec::new();
    for (who, card) in debated.scorecards.iter().filter(|(_, card)| card.is_given()) {
        let basis = basis_word(card.basis);
        let mut figures = |metric: &str, score: u32, top: u32| {
            let figures = [score.to_string(), top.to_string(), String::new(), basis.to_owned()];
            rows.push(row(who, metric, figures, ""));
        };
        for metric in &committee.metrics {
            if let Some(score) = card.scores.get(&metric.id) {
                figures(&metric.id, u32::from(*score), top);
            }
        }
        let metrics = u32::try_from(card.scores.len()).unwrap_or(u32::MAX);
        figures("total", card.sum(), top.saturating_mul(metrics));
    }
    let (most, spread) = (debated.top_score, debated.spread);
    let total = debated.score().map(|total| total.to_string()).unwrap_or_default();
    let figures = [total, most.to_string(), spread.to_string(), String::new()];
    rows.push(row("total", "total", figures, &remarks));
    rows
}

fn remarks(one: &RankedMove) -> String {
    let mut remarks = Vec::new();
    if one.debated.is_none() {
        remarks.push("not debated");
    } else if !one.is_scored() {
        remarks.push("not scored");
    }
    if one.rank.is_none() && one.is_held() {
        remarks.push("held back");
    }
    if one.debated.as_ref().is_some_and(|debated| !debated.degraded.is_empty()) {
        remarks.push("degraded");
    }
    remarks.join("; ")
}

fn basis_word(basis: ScoreBasis) -> &'static str {
    match basis {
        ScoreBasis::Structured => "structured",
        ScoreBasis::FromText => "from-text",
        ScoreBasis::Neutral => "neutral",
        ScoreBasis::NotScored => "not-scored",
    }
}
