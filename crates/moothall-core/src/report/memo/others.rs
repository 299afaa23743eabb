//! The moves that are not recommended.

use super::result;
use super::writer::Writer;
use crate::consult::RankedMove;
use crate::debate::Debated;
use crate::report::document::{Block, Column, Span, Table, Words};
use crate::report::view::ConsultView;
use crate::{Finding, Severity};

pub(super) fn others(view: &ConsultView, writer: &mut Writer<'_>) -> Vec<Block> {
    let Some(ranked) = view.ranked.as_ref().filter(|ranked| !ranked.other.is_empty()) else {
        return Vec::new();
    };
    let columns = vec![
        Column::numbers("rank"),
        Column::wide("move"),
        Column::words("result"),
        Column::numbers("apart"),
        Column::wide("strongest open objection"),
        Column::words("remarks"),
    ];
    let rows = ranked.other.iter().map(|one| row(one, writer)).collect();
    let mut blocks = vec![
        Block::chapter(1, "Other moves"),
        Block::Table(Table { columns, rows, has_total: false }),
    ];
    let held = ranked.other.iter().filter(|one| one.rank.is_none());
    let held: Vec<Words> = held.flat_map(held_words).collect();
    if !held.is_empty() {
        blocks.push(Block::heading(2, "Held back until a person looks"));
        blocks.push(Block::List { numbered: false, items: held });
    }
    blocks
}

fn row(one: &RankedMove, writer: &mut Writer<'_>) -> Vec<Words> {
    let dash = || "–".to_owned();
    let debated = one.debated.as_ref();
    let number =
        |number: Option<u32>| vec![Span::text(&number.map_or_else(dash, |n| n.to_string()))];
    let objection = debated.and_then(Debated::hardest_open);
    vec![
        number(one.rank),
        vec![Span::text(&format!("{}: {}", one.move_id, one.title))],
        debated.map(result).unwrap_or_default(),
        number(debated.map(|debated| debated.spread)),
        objection.map(|objection| writer.checked(&objection.text)).unwrap_or_default(),
        vec![Span::text(&remarks(one).join("; "))],
    ]
}

fn holding(one: &RankedMove) -> impl Iterator<Item = &Finding> {
    one.findings.iter().filter(|finding| finding.severity >= Severity::Escalate)
}

/// What code found, as it stands in the finding; the sign says that none of it is vouched for.
fn held_words(one: &RankedMove) -> Vec<Words> {
    let line = |finding: &Finding| {
        let (message, rule) = (&finding.message, &finding.rule);
        vec![Span::text(&format!("⚠ {}: {message} ({rule})", one.move_id))]
    };
    holding(one).map(line).collect()
}

fn remarks(one: &RankedMove) -> Vec<String> {
    let mut remarks = Vec::new();
    if one.debated.is_none() {
        remarks.push("not debated".to_owned());
    }
    if one.debated.as_ref().is_some_and(|debated| !debated.degraded.is_empty()) {
        remarks.push("degraded".to_owned());
    }
    if one.rank.is_none() && holding(one).next().is_some() {
        remarks.push("held back".to_owned());
    }
    if !one.similar_to.is_empty() {
        let similar: Vec<&str> = one.similar_to.iter().map(String::as_str).collect();
        remarks.push(format!("like {}", similar.join(", ")));
    }
    remarks
}
