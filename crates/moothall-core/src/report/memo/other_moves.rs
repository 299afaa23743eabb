//! The moves that are not recommended.

use super::writer::MemoWriter;
use super::{labelled, result, severity_and_state, strongest};
use crate::consult::{PanelVerdict, RankedMove};
use crate::report::consult_report::ConsultReport;
use crate::report::document::{DocumentBlock, DocumentTable, TableColumn, TextSpan, Words};
use crate::verdict::VerdictTier;
use crate::{FindingSeverity, RunFinding};

pub(crate) fn other_move_blocks(
    view: &ConsultReport,
    writer: &mut MemoWriter<'_>,
) -> Vec<DocumentBlock> {
    let Some(ranked) = view.ranked.as_ref().filter(|ranked| !ranked.other.is_empty()) else {
        return Vec::new();
    };
    let verdict = ranked.verdict.as_deref();
    let (place, result) = match verdict {
        Some(_) => (TableColumn::words("tier"), TableColumn::words("defence score")),
        None => (TableColumn::numbers("rank"), TableColumn::words("result")),
    };
    let columns = vec![
        place,
        TableColumn::wide("move"),
        result,
        TableColumn::numbers("score range"),
        TableColumn::wide("strongest objection"),
        TableColumn::words("remarks"),
    ];
    let rows = ranked.other.iter().map(|one| row(one, verdict, writer)).collect();
    let mut blocks = vec![
        DocumentBlock::chapter(1, "Other moves"),
        DocumentBlock::Table(DocumentTable { columns, rows, has_total: false }),
    ];
    let held = ranked.other.iter().filter(|one| one.rank.is_none());
    let held: Vec<Words> = held.flat_map(held_back_lines).collect();
    if !held.is_empty() {
        blocks.push(DocumentBlock::heading(2, "Held back for review"));
        blocks.push(DocumentBlock::List { numbered: false, items: held });
    }
    blocks
}

fn row(
    one: &RankedMove,
    verdict: Option<&PanelVerdict>,
    writer: &mut MemoWriter<'_>,
) -> Vec<Words> {
    let dash = || "–".to_owned();
    let tier = |verdict: &PanelVerdict| verdict.estimate(&one.move_id)?.tier.map(VerdictTier::text);
    let debated = one.debated.as_ref();
    let number =
        |number: Option<u32>| vec![TextSpan::text(&number.map_or_else(dash, |n| n.to_string()))];
    let objection = debated.and_then(strongest);
    vec![
        match verdict {
            Some(verdict) => vec![TextSpan::text(tier(verdict).unwrap_or("–"))],
            None => number(one.rank),
        },
        vec![TextSpan::text(&format!("{}: {}", one.move_id, one.title))],
        debated.map(result).unwrap_or_default(),
        number(debated.map(|debated| debated.spread)),
        objection
            .map(|one| labelled(&severity_and_state(one), &one.text, writer))
            .unwrap_or_default(),
        vec![TextSpan::text(&remarks(one).join("; "))],
    ]
}

fn held_back_findings(one: &RankedMove) -> impl Iterator<Item = &RunFinding> {
    one.findings.iter().filter(|finding| finding.severity >= FindingSeverity::Escalate)
}

/// Findings that hold a move back, quoted unchanged; the warning sign marks them as unverified.
fn held_back_lines(one: &RankedMove) -> Vec<Words> {
    let line = |finding: &RunFinding| {
        let (message, rule) = (&finding.message, &finding.rule);
        vec![TextSpan::text(&format!("⚠ {}: {message} ({rule})", one.move_id))]
    };
    held_back_findings(one).map(line).collect()
}

fn remarks(one: &RankedMove) -> Vec<String> {
    let mut remarks = Vec::new();
    if one.debated.is_none() {
        remarks.push("not debated".to_owned());
    }
    if one.debated.as_ref().is_some_and(|debated| !debated.degraded.is_empty()) {
        remarks.push("degraded".to_owned());
    }
    if one.rank.is_none() && held_back_findings(one).next().is_some() {
        remarks.push("held back".to_owned());
    }
    if !one.similar_to.is_empty() {
        let similar: Vec<&str> = one.similar_to.iter().map(String::as_str).collect();
        remarks.push(format!("similar to {}", similar.join(", ")));
    }
    remarks
}
