//! Demo cards of panel members, derived from the case and the member's lens.
//!
//! The scores follow what a case says, so that the panel passes its controls: a move without evidence
//! or stop conditions scores lower than the same move with them, and one that never pays back scores
//! lowest. Two demo models show what else can happen: `demo/contrary` prefers what others reject and
//! fails its controls, and `demo/cautious` prefers to do nothing.

use super::{MARK, pseudo_random, system};
use crate::debate::RawScores;
use crate::model::ModelRequest;

/// What the demo judge deducts, in points per metric.
const NO_EVIDENCE: i64 = 1;
const NO_KILL_CRITERIA: i64 = 1;
const NO_PAYBACK: i64 = 4;
const OPEN_FATAL: i64 = 1;

/// Names of demo models with another taste.
const CONTRARY: &str = "contrary";
const CAUTIOUS: &str = "cautious";

/// The scores of one member for one case.
pub(crate) fn score(request: &ModelRequest) -> Option<String> {
    let (rules, lens) = (system(request, 1), system(request, 2));
    let case = request.turns.first().map_or("", |turn| &turn.block.text);
    let title = field(case, "Title: ")?;
    let pick = |what: &str, end| {
        i64::try_from(pseudo_random(&[title, lens, what], end)).unwrap_or_default()
    };
    // The merit of a move is the same for all members; each member and each metric adds an offset.
    let model = request.model.name();
    let merit = match title.starts_with("Do nothing") {
        true if model == CAUTIOUS => 4,
        true => 0,
        false => i64::try_from(pseudo_random(&[title, "merit"], 8)).ok()? / 2,
    };
    let deductions = [
        (case.contains("\nEvidence: none given"), NO_EVIDENCE, "No evidence is given."),
        (case.contains("\nKill criteria: none given"), NO_KILL_CRITERIA, "Nothing would stop it."),
        (has_no_payback(case), NO_PAYBACK, "It never pays back."),
        (has_open_fatal(case), OPEN_FATAL, "A fatal objection stays open."),
    ];
    let deductions: Vec<(i64, &str)> = deductions
        .into_iter()
        .filter(|(is, ..)| *is)
        .map(|(_, points, why)| (points, why))
        .collect();
    let against: i64 = deductions.iter().map(|(points, _)| points).sum();
    let temper = pick("temper", 2) - 1;
    let metrics = rules.lines().filter_map(|line| {
        let (id, _) = line.strip_prefix('`')?.split_once("` (")?;
        let score = 5 + merit + temper + pick(id, 3) - 1 - against;
        let score = score.clamp(1, 10);
        Some((id.to_owned(), if model == CONTRARY { 11 - score } else { score }))
    });
    let why: Vec<&str> = match deductions.as_slice() {
        [] => vec!["The claims that matter are cited, and the loss is limited."],
        found => found.iter().map(|(_, why)| *why).collect(),
    };
    let reasoning = format!("{} {MARK}", why.join(" "));
    serde_json::to_string(&RawScores { metrics: metrics.collect(), reasoning }).ok()
}

fn field<'a>(case: &'a str, name: &str) -> Option<&'a str> {
    case.lines().find_map(|line| line.strip_prefix(name))
}

fn has_no_payback(case: &str) -> bool {
    field(case, "Horizon: ").is_some_and(|horizon| horizon.contains("no payback"))
}

fn has_open_fatal(case: &str) -> bool {
    let is_open = |line: &str| {
        line.contains("Against (fatal, ") && !line.contains("Against (fatal, answered)")
    };
    case.lines().any(is_open)
}

/// Chances of one member for all questions.
pub(crate) fn forecasts(request: &ModelRequest) -> Option<String> {
    let questions = &request.turns.first()?.block.text;
    let chances = questions.lines().filter_map(|line| {
        let (id, statement) = line.split_once(": ")?;
        // Few moves are announced within a year.
        let (least, range) = if statement.contains(" 8-K ") { (3, 20) } else { (35, 50) };
        let chance = least + pseudo_random(&[statement, "chance"], range);
        Some((id.to_owned(), serde_json::Value::from(chance)))
    });
    serde_json::to_string(&chances.collect::<serde_json::Map<_, _>>()).ok()
}
