//! The score table of one move: by decision maker and metric, with the spread.

use crate::consult::Committee;
use crate::consult::committee::TOP_LEVEL;
use crate::debate::{DebateResult, Scorecard};
use crate::report::document::{DocumentBlock, DocumentTable, TableColumn, TextSpan, Words};

/// One row per metric, one column per decision maker, and totals in the last row.
pub(crate) fn table(debated: &DebateResult, committee: &Committee) -> DocumentBlock {
    let given = || debated.scorecards.iter().filter(|(_, card)| card.is_given());
    let cards: Vec<&Scorecard> = given().map(|(_, card)| card).collect();
    let mut columns = vec![TableColumn::wide("metric")];
    columns.extend(given().map(|(id, _)| TableColumn::numbers(id)));
    columns.push(TableColumn::numbers("range"));
    columns.push(TableColumn::words("from 1 to 10"));
    let mut rows: Vec<Vec<Words>> = metrics(debated, committee)
        .into_iter()
        .map(|(id, name)| {
            let scores = cards.iter().filter_map(|card| card.scores.get(&id));
            let scores: Vec<u32> = scores.map(|score| u32::from(*score)).collect();
            let dots = TextSpan::Dots { values: scores.clone(), top: u32::from(TOP_LEVEL) };
            row(&name, &scores, spread(&scores), dots)
        })
        .collect();
    let sums: Vec<u32> = cards.iter().map(|card| card.sum()).collect();
    let bar = match debated.score() {
        Some(value) => TextSpan::Bar { value, top: debated.top_score },
        None => TextSpan::text(""),
    };
    let name = match debated.score() {
        Some(value) => format!("score {value}/{}", debated.top_score),
        None => debated.score_text(),
    };
    rows.push(row(&name, &sums, debated.spread, bar));
    DocumentBlock::Table(DocumentTable { columns, rows, has_total: true })
}

fn row(name: &str, numbers: &[u32], spread: u32, chart: TextSpan) -> Vec<Words> {
    let mut row = vec![vec![TextSpan::text(name)]];
    row.extend(numbers.iter().map(|number| vec![TextSpan::text(&number.to_string())]));
    row.push(vec![TextSpan::text(&spread.to_string())]);
    row.push(vec![chart]);
    row
}

fn spread(scores: &[u32]) -> u32 {
    let (least, most) = (scores.iter().min(), scores.iter().max());
    most.copied().unwrap_or_default() - least.copied().unwrap_or_default()
}

/// The committee's metrics that have scores, in the committee's order: id and name.
fn metrics(debated: &DebateResult, committee: &Committee) -> Vec<(String, String)> {
    let scored = |id: &str| debated.scorecards.values().any(|card| card.scores.contains_key(id));
    let known = committee.metrics.iter().filter(|metric| scored(&metric.id));
    known.map(|metric| (metric.id.clone(), metric.name.clone())).collect()
}
