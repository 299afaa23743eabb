//! The moves that are recommended, each with its whole case.

use std::collections::BTreeSet;

use super::told::{degraded_words, severity_word, stance_word, state_word};
use super::writer::Writer;
use super::{fates, scores, sources, strongest};
use crate::consult::{Committee, Move, RankedMove};
use crate::debate::{Debated, ObjectionState, cites};
use crate::evidence::Evidence;
use crate::report::document::{Block, Column, Field, Span, Table, Words};
use crate::report::view::ConsultView;

pub(super) fn chosen(view: &ConsultView, writer: &mut Writer<'_>) -> Vec<Block> {
    let Some(ranked) = &view.ranked else { return Vec::new() };
    let mut blocks = Vec::new();
    for one in &ranked.recommended {
        let rank = one.rank.unwrap_or_default();
        blocks.push(Block::heading(1, &format!("{rank}. {} ({})", one.title, one.move_id)));
        let proposed = view.find_move(&one.move_id);
        if let Some(found) = proposed {
            blocks.push(Block::Paragraph { words: writer.checked(&found.proposal.thesis) });
            list(&mut blocks, "What must be true", &found.proposal.what_must_be_true, writer);
            blocks.extend(evidence(view, found, writer));
        }
        blocks.extend(against(one, writer));
        if let Some(debated) = &one.debated {
            blocks.extend(judged(debated, &view.input.committee));
        }
        if let Some(found) = proposed {
            blocks.extend(ahead(found, writer));
        }
    }
    blocks
}

fn list(blocks: &mut Vec<Block>, title: &str, items: &[String], writer: &mut Writer<'_>) {
    if items.is_empty() {
        return;
    }
    blocks.push(Block::heading(2, title));
    let items = items.iter().map(|item| writer.checked(item)).collect();
    blocks.push(Block::List { numbered: false, items });
}

/// What the move cites: the value as it was filed or computed, and where to read it.
fn evidence(view: &ConsultView, one: &Move, writer: &mut Writer<'_>) -> Vec<Block> {
    let Some(known) = view.evidence().filter(|_| !view.proceedings.is_synthetic()) else {
        return Vec::new();
    };
    let ids = cites(&one.markdown(), &one.proposal.evidence);
    let rows: Vec<Vec<Words>> =
        ids.iter().filter_map(|id| evidence_row(known, id, writer)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![Column::words("source"), Column::wide("value"), Column::words("filing")];
    vec![Block::heading(2, "Evidence"), Block::Table(Table { columns, rows, has_total: false })]
}

fn evidence_row(known: &Evidence, id: &str, writer: &mut Writer<'_>) -> Option<Vec<Words>> {
    let value = sources::value(known, id)?;
    let filed = sources::filed(known, id);
    let filing = match filed {
        Some((words, accession)) => match writer.filing(&accession) {
            Some(url) => Span::Link { text: words, url },
            None => Span::text(&words),
        },
        None => Span::text("computed, see below"),
    };
    Some(vec![vec![writer.citation(id)], vec![Span::text(&value)], vec![filing]])
}

/// The strongest case against a move, and whether it was answered.
fn against(one: &RankedMove, writer: &mut Writer<'_>) -> Vec<Block> {
    let Some(debated) = &one.debated else { return Vec::new() };
    let mut blocks = vec![Block::heading(2, "The strongest case against it")];
    let open = debated.hardest_open();
    match strongest(debated) {
        Some(objection) => {
            let state = state_word(objection.state);
            let mut words = vec![Span::strong(&format!("{}, {state}:", severity_word(objection)))];
            words.push(Span::text(" "));
            words.extend(writer.checked(&objection.text));
            blocks.push(Block::Paragraph { words });
        }
        None => blocks.push(Block::paragraph("The critic raised no objection.")),
    }
    let mut told: Vec<String> = fates(debated).into_iter().collect();
    if open.is_none() && !debated.objections.is_empty() {
        told.push("None of them stands open after the debate.".to_owned());
    }
    let stances = debated.stances.iter();
    let stances: Vec<String> =
        stances.map(|(id, stance)| format!("{id} {}", stance_word(*stance))).collect();
    if !stances.is_empty() {
        told.push(format!("At the end {}.", stances.join(", ")));
    }
    blocks.push(Block::paragraph(&told.join(" ")));
    // The same objection may be granted in several threads.
    let told = open.map(|open| open.text.as_str());
    let conceded: BTreeSet<&str> = debated
        .objections
        .iter()
        .filter(|objection| objection.state == ObjectionState::Conceded)
        .map(|objection| objection.text.as_str())
        .filter(|text| Some(*text) != told)
        .collect();
    let conceded: Vec<Words> = conceded.into_iter().map(|text| writer.checked(text)).collect();
    if !conceded.is_empty() {
        blocks.push(Block::heading(2, "Also granted by the decision makers"));
        blocks.push(Block::List { numbered: false, items: conceded });
    }
    for mark in degraded_words(debated) {
        blocks.push(Block::notice(&format!("Degraded: {mark}")));
    }
    blocks
}

fn judged(debated: &Debated, committee: &Committee) -> Vec<Block> {
    let names =
        committee.decision_makers.iter().filter(|seat| debated.scorecards.contains_key(&seat.id));
    let names: Vec<String> = names.map(|seat| format!("{} {}", seat.id, seat.name)).collect();
    let mut blocks = vec![Block::heading(2, "Scores"), scores::table(debated, committee)];
    if !names.is_empty() {
        blocks.push(Block::paragraph(&format!("{}.", names.join(", "))));
    }
    blocks
}

/// What is done, what it costs, and what would end it.
fn ahead(one: &Move, writer: &mut Writer<'_>) -> Vec<Block> {
    let proposal = &one.proposal;
    let mut blocks = Vec::new();
    list(&mut blocks, "Risks", &proposal.risks, writer);
    list(&mut blocks, "Stop if", &proposal.kill_criteria, writer);
    if !proposal.actions.is_empty() {
        blocks.push(Block::heading(2, "Next steps"));
        let items = proposal.actions.iter().map(|action| writer.checked(action)).collect();
        blocks.push(Block::List { numbered: true, items });
    }
    blocks.push(Block::heading(2, "Cost and horizon"));
    let rows = vec![
        Field { name: "Cost".to_owned(), value: writer.checked(&proposal.cost) },
        Field { name: "Horizon".to_owned(), value: writer.checked(&proposal.horizon) },
    ];
    blocks.push(Block::Fields { rows });
    blocks
}
