//! The scores of one move: by decision maker and metric, with their spread.

use crate::consult::Committee;
use crate::consult::committee::TOP_LEVEL;
use crate::debate::{Debated, Scorecard};
use crate::report::document::{Block, Column, Span, Table, Words};

/// A row for each metric, a column for each decision maker, sums below.
pub(super) fn table(debated: &Debated, committee: &Committee) -> Block {
    let cards: Vec<&Scorecard> = debated.scorecards.values().collect();
    let mut columns = vec![Column::wide("metric")];
    columns.extend(debated.scorecards.keys().map(|id| Column::numbers(id)));
    columns.push(Column::numbers("apart"));
    columns.push(Column::words("from 1 to 10"));
    let mut rows: Vec<Vec<Words>> = metrics(debated, committee)
        .into_iter()
        .map(|(id, name)| {
            let scores = cards.iter().filter_map(|card| card.scores.get(&id));
            let scores: Vec<u32> = scores.map(|score| u32::from(*score)).collect();
            let dots = Span::Dots { values: scores.clone(), top: u32::from(TOP_LEVEL) };
            row(&name, &scores, spread(&scores), dots)
        })
        .collect();
    let sums: Vec<u32> = cards.iter().map(|card| card.sum()).collect();
    let bar = Span::Bar { value: debated.total_score, top: debated.top_score };
    let name = format!("score {}/{}", debated.total_score, debated.top_score);
    rows.push(row(&name, &sums, debated.spread, bar));
    Block::Table(Table { columns, rows, has_total: true })
}

fn row(name: &str, numbers: &[u32], spread: u32, chart: Span) -> Vec<Words> {
    let mut row = vec![vec![Span::text(name)]];
    row.extend(numbers.iter().map(|number| vec![Span::text(&number.to_string())]));
    row.push(vec![Span::text(&spread.to_string())]);
    row.push(vec![chart]);
    row
}

fn spread(scores: &[u32]) -> u32 {
    let (least, most) = (scores.iter().min(), scores.iter().max());
    most.copied().unwrap_or_default() - least.copied().unwrap_or_default()
}

/// Those of the committee in its order, and names of its own for others.
fn metrics(debated: &Debated, committee: &Committee) -> Vec<(String, String)> {
    let scored = |id: &str| debated.scorecards.values().any(|card| card.scores.contains_key(id));
    let known = committee.metrics.iter().filter(|metric| scored(&metric.id));
    known.map(|metric| (metric.id.clone(), metric.name.clone())).collect()
}
