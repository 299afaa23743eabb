//! The board memo: what is recommended, what speaks against it, what it rests on, and what is
//! missing.
//!
//! Agents' words are untrusted: they are flattened to what can be seen, and every number in them is
//! checked again here. What is not supported carries a mark, and the marks are explained below.
//! Numbers that the program itself says (scores, counts) come from values, never from words.

mod about;
mod chosen;
mod others;
mod scores;
mod sources;
mod told;
mod writer;

pub use self::sources::{CitedFact, cited};
use self::told::state_word;
use self::writer::Writer;
use super::document::{Block, Column, Document, Span, Table, Words};
use super::view::ConsultView;
use crate::MicroUsd;
use crate::consult::RankedMove;
use crate::debate::{Debated, Objection};
use crate::model::Usage;

/// What a memo says about the run and cannot be derived from the answers' words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// The run.
    pub run_id: String,
    /// The build that ran it.
    pub build: String,
    /// The day it began, as `2026-11-15`.
    pub started_on: String,
    /// Model calls that were answered.
    pub calls: u64,
    /// Of these, rewrites and questions asked again.
    pub extra_calls: u64,
    /// Tokens of all answers.
    pub usage: Usage,
    /// What they cost; unknown where one price is.
    pub cost: Option<MicroUsd>,
    /// Whether the demonstration model spoke.
    pub demonstration: bool,
}

/// The memo of a consultation, complete or not.
pub fn memo(view: &ConsultView, run: &RunFacts) -> Document {
    let mut writer = Writer::new(view);
    let mut blocks = about::labels(view, run);
    blocks.extend(about::warnings(view));
    blocks.extend(recommendation(view, &mut writer));
    blocks.extend(super::say::blocks(view));
    blocks.extend(chosen::chosen(view, &mut writer));
    blocks.extend(others::others(view, &mut writer));
    blocks.extend(writer.sources());
    blocks.extend(about::missing(view));
    blocks.extend(writer.marks());
    blocks.extend(about::record(view, run));
    about::framed(view, run, blocks)
}

fn recommendation(view: &ConsultView, writer: &mut Writer<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::heading(1, "Recommendation")];
    let recommended = view.ranked.as_ref().map(|ranked| ranked.recommended.as_slice());
    let recommended = recommended.unwrap_or_default();
    if recommended.is_empty() {
        blocks.push(Block::paragraph("No move is recommended. What is missing is said below."));
        return blocks;
    }
    let item = |one: &RankedMove| {
        vec![Span::strong(&one.title), Span::text(&format!(" ({})", one.move_id))]
    };
    let items = recommended.iter().map(item).collect();
    blocks.push(Block::List { numbered: true, items });
    blocks.push(glance(recommended, writer));
    blocks.extend(too_close(recommended).map(|words| Block::paragraph(&words)));
    blocks
}

/// The recommended moves side by side.
fn glance(recommended: &[RankedMove], writer: &mut Writer<'_>) -> Block {
    let columns = vec![
        Column::words("move"),
        Column::words("result"),
        Column::numbers("apart"),
        Column::wide("strongest case against it"),
        Column::words("and it was"),
    ];
    let row = |one: &RankedMove| -> Option<Vec<Words>> {
        let debated = one.debated.as_ref()?;
        let objection = strongest(debated);
        let state = objection.map(|objection| state_word(objection.state)).unwrap_or_default();
        Some(vec![
            vec![Span::text(&one.move_id)],
            result(debated),
            vec![Span::text(&debated.spread.to_string())],
            objection.map(|objection| writer.checked(&objection.text)).unwrap_or_default(),
            vec![Span::text(state)],
        ])
    };
    let rows = recommended.iter().filter_map(row).collect();
    Block::Table(Table { columns, rows, has_total: false })
}

/// The score with its bar.
fn result(debated: &Debated) -> Words {
    let (value, top) = (debated.total_score, debated.top_score);
    vec![Span::text(&format!("score {value}/{top} ")), Span::Bar { value, top }]
}

/// The hardest objection that stands, else the first of the gravest.
fn strongest(debated: &Debated) -> Option<&Objection> {
    let gravest = || debated.objections.iter().rev().max_by_key(|objection| objection.severity);
    debated.hardest_open().or_else(gravest)
}

/// Neighbours whose totals lie closer together than the decision makers themselves.
fn too_close(recommended: &[RankedMove]) -> Option<String> {
    let close = |pair: &[RankedMove]| -> Option<String> {
        let [one, other] = pair else { return None };
        let (a, b) = (one.debated.as_ref()?, other.debated.as_ref()?);
        let apart = a.total_score.abs_diff(b.total_score);
        (apart < a.spread.max(b.spread)).then(|| format!("{} and {}", one.move_id, other.move_id))
    };
    let pairs: Vec<String> = recommended.windows(2).filter_map(close).collect();
    (!pairs.is_empty()).then(|| {
        format!(
            "Too close to call: {}. Their totals are closer together than the decision makers are.",
            pairs.join("; ")
        )
    })
}

/// Every objection of a debate by what became of it, as a line.
fn fates(debated: &Debated) -> Option<String> {
    use crate::debate::ObjectionState as S;
    let all = debated.objections.len();
    let told: Vec<String> = [S::Answered, S::Partly, S::Open, S::Conceded]
        .into_iter()
        .filter_map(|state| {
            let many = debated.objections.iter().filter(|one| one.state == state).count();
            (many > 0).then(|| format!("{many} {}", state_word(state)))
        })
        .collect();
    let noun = if all == 1 { "objection" } else { "objections" };
    (all > 0).then(|| format!("The critic raised {all} {noun}: {}.", told.join(", ")))
}
