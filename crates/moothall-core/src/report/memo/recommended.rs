//! The recommended moves in full.

use std::collections::BTreeMap;

use super::writer::MemoWriter;
use super::{labelled, objection_counts, scores, severity_and_state, sources, strongest};
use crate::consult::{Committee, Move, RankedMove};
use crate::debate::{DebateResult, Objection, ObjectionSeverity, ObjectionState, cites};
use crate::evidence::{AmountScale, Evidence};
use crate::report::consult_report::ConsultReport;
use crate::report::document::{
    DocumentBlock, DocumentField, DocumentTable, TableColumn, TextSpan, Words,
};
use crate::report::own_sections::OwnSections;

/// Marks numbers of calculations, which have no filing as a source.
const CALCULATED: &str = "A0: result of a calculation in the debate";

pub(crate) fn recommended_blocks(
    view: &ConsultReport,
    own: &OwnSections<'_>,
    writer: &mut MemoWriter<'_>,
) -> Vec<DocumentBlock> {
    let Some(ranked) = &view.ranked else { return Vec::new() };
    let mut all = Vec::new();
    for one in &ranked.recommended {
        let rank = ranked.meaningful_rank(&one.move_id).map(|rank| rank.to_string());
        let number = rank.as_ref().map(|rank| format!("{rank}. ")).unwrap_or_default();
        let heading = format!("{number}{} ({})", one.title, one.move_id);
        let mut blocks = vec![DocumentBlock::heading(1, &heading)];
        let proposed = view.find_move(&one.move_id);
        if let Some(found) = proposed {
            blocks.push(DocumentBlock::Paragraph { words: writer.checked(&found.proposal.thesis) });
            list(&mut blocks, "What must be true", &found.proposal.what_must_be_true, writer);
            blocks.extend(evidence(view, found, writer));
        }
        blocks.extend(objection_blocks(one, writer));
        blocks.extend(calculation_blocks(one));
        if let Some(debated) = &one.debated {
            blocks.extend(score_blocks(debated, &view.input.committee));
        }
        if let Some(found) = proposed {
            blocks.extend(outlook_blocks(found, writer));
        }
        let values = [
            ("rank", rank.as_deref().unwrap_or_default()),
            ("title", &*one.title),
            ("move", &*one.move_id),
        ];
        all.extend(own.apply("recommended_move", &values, blocks));
    }
    all
}

fn list(
    blocks: &mut Vec<DocumentBlock>,
    title: &str,
    items: &[String],
    writer: &mut MemoWriter<'_>,
) {
    if items.is_empty() {
        return;
    }
    blocks.push(DocumentBlock::heading(2, title));
    let items = items.iter().map(|item| writer.checked(item)).collect();
    blocks.push(DocumentBlock::List { numbered: false, items });
}

/// The evidence a move cites: the filed or computed value, and its filing.
fn evidence(view: &ConsultReport, one: &Move, writer: &mut MemoWriter<'_>) -> Vec<DocumentBlock> {
    let Some(known) = view.evidence().filter(|_| !view.proceedings.is_synthetic()) else {
        return Vec::new();
    };
    let ids = cites(&one.markdown(), &one.proposal.evidence);
    let scale = sources::amount_scale(known, &ids);
    let rows: Vec<Vec<Words>> =
        ids.iter().filter_map(|id| evidence_row(known, id, scale, writer)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        TableColumn::words("source"),
        TableColumn::wide("value"),
        TableColumn::words("filing"),
    ];
    vec![
        DocumentBlock::heading(2, "Evidence"),
        DocumentBlock::Table(DocumentTable { columns, rows, has_total: false }),
    ]
}

fn evidence_row(
    known: &Evidence,
    id: &str,
    scale: Option<AmountScale>,
    writer: &mut MemoWriter<'_>,
) -> Option<Vec<Words>> {
    let value = sources::value(known, id, scale)?;
    let filed = sources::filed(known, id);
    let filing = match filed {
        Some((words, accession)) => match writer.filing(&accession) {
            Some(url) => TextSpan::Link { text: words, url },
            None => TextSpan::text(&words),
        },
        None => TextSpan::text("computed, see below"),
    };
    Some(vec![vec![writer.citation(id)], vec![TextSpan::text(&value)], vec![filing]])
}

/// The strongest objection to a move, and whether it was answered.
fn objection_blocks(one: &RankedMove, writer: &mut MemoWriter<'_>) -> Vec<DocumentBlock> {
    let Some(debated) = &one.debated else { return Vec::new() };
    let mut blocks = vec![DocumentBlock::heading(2, "Strongest objection")];
    let open = debated.hardest_open();
    match strongest(debated) {
        Some(objection) => {
            let words = labelled(&severity_and_state(objection), &objection.text, writer);
            blocks.push(DocumentBlock::Paragraph { words });
        }
        None => blocks.push(DocumentBlock::paragraph("The critic raised no objection.")),
    }
    let mut sentences: Vec<String> = objection_counts(debated).into_iter().collect();
    if open.is_none() && !debated.objections.is_empty() {
        sentences.push("All were answered in the debate.".to_owned());
    }
    let stances = debated.stances.iter();
    let stances: Vec<String> =
        stances.map(|(id, stance)| format!("{id} {}", stance.word())).collect();
    if !stances.is_empty() {
        sentences.push(format!("Final stances: {}.", stances.join(", ")));
    }
    blocks.push(DocumentBlock::paragraph(&sentences.join(" ")));
    // The same objection may be conceded in several threads; its highest severity counts.
    let mut conceded: BTreeMap<&str, ObjectionSeverity> = BTreeMap::new();
    let is_listed = |one: &&Objection| {
        one.state == ObjectionState::Conceded && open.is_none_or(|open| open.text != one.text)
    };
    for one in debated.objections.iter().filter(is_listed) {
        let severity = conceded.entry(&one.text).or_insert(one.severity);
        *severity = one.severity.max(*severity);
    }
    let conceded: Vec<Words> = conceded
        .into_iter()
        .map(|(text, severity)| labelled(severity.word(), text, writer))
        .collect();
    if !conceded.is_empty() {
        blocks.push(DocumentBlock::heading(2, "Also conceded by the decision makers"));
        blocks.push(DocumentBlock::List { numbered: false, items: conceded });
    }
    for one in &debated.degraded {
        blocks.push(DocumentBlock::notice(&format!("Degraded: {}", one.describe())));
    }
    blocks
}

/// The calculations of the debate. Their programs are in the debate, not in the memo.
fn calculation_blocks(one: &RankedMove) -> Vec<DocumentBlock> {
    let calculations = one.debated.iter().flat_map(|debated| &debated.calculations);
    let rows: Vec<Vec<Words>> = calculations
        .map(|one| {
            let purpose = format!("{} ({}): {}", one.id, one.speaker, one.purpose);
            let result = format!("{} [{CALCULATED}]", one.outcome_text());
            let basis = format!("{} [{CALCULATED}]", one.basis_text());
            [purpose, result, basis].map(|text| vec![TextSpan::text(&text)]).into()
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        TableColumn::wide("calculation"),
        TableColumn::wide("result"),
        TableColumn::words("basis"),
    ];
    vec![
        DocumentBlock::heading(2, "Calculations"),
        DocumentBlock::Table(DocumentTable { columns, rows, has_total: false }),
    ]
}

fn score_blocks(debated: &DebateResult, committee: &Committee) -> Vec<DocumentBlock> {
    let names =
        committee.decision_makers.iter().filter(|seat| debated.scorecards.contains_key(&seat.id));
    let names: Vec<String> = names.map(|seat| format!("{} {}", seat.id, seat.name)).collect();
    let mut blocks = vec![DocumentBlock::heading(2, "Scores"), scores::table(debated, committee)];
    if !names.is_empty() {
        blocks.push(DocumentBlock::paragraph(&format!("{}.", names.join(", "))));
    }
    blocks
}

/// Risks, stop criteria, next steps, cost and horizon.
fn outlook_blocks(one: &Move, writer: &mut MemoWriter<'_>) -> Vec<DocumentBlock> {
    let proposal = &one.proposal;
    let mut blocks = Vec::new();
    list(&mut blocks, "Risks", &proposal.risks, writer);
    list(&mut blocks, "Stop if", &proposal.kill_criteria, writer);
    if !proposal.actions.is_empty() {
        blocks.push(DocumentBlock::heading(2, "Next steps"));
        let items = proposal.actions.iter().map(|action| writer.checked(action)).collect();
        blocks.push(DocumentBlock::List { numbered: true, items });
    }
    blocks.push(DocumentBlock::heading(2, "Cost and horizon"));
    let rows = vec![
        DocumentField { name: "Cost".to_owned(), value: writer.checked(&proposal.cost) },
        DocumentField { name: "Horizon".to_owned(), value: writer.checked(&proposal.horizon) },
    ];
    blocks.push(DocumentBlock::Fields { rows });
    blocks
}
