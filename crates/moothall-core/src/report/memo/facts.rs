//! The facts that chosen moves cite, with the filing behind each.

use std::collections::BTreeSet;

use super::cell;
use crate::consult::Move;
use crate::debate::cites;
use crate::evidence::{Evidence, Fact, FactId, Sheet, Source};

/// One line of a table for each fact that the moves cite.
pub(super) fn cited_facts(evidence: &Evidence, moves: &[&Move]) -> Vec<String> {
    let Some(sheet) = &evidence.sheet else { return Vec::new() };
    let ids: BTreeSet<FactId> = moves
        .iter()
        .flat_map(|one| cites(&one.markdown(), &one.proposal.evidence))
        .filter_map(|id| known(sheet, &id))
        .collect();
    ids.iter().filter_map(|id| Some(line(sheet, id, sheet.fact(id)?))).collect()
}

fn known(sheet: &Sheet, cited: &str) -> Option<FactId> {
    let id = FactId::parse(cited.strip_prefix("F0:")?)?;
    sheet.fact(&id).is_some().then_some(id)
}

fn line(sheet: &Sheet, id: &FactId, fact: &Fact) -> String {
    let value = sheet.words(id).unwrap_or_default();
    match &fact.source {
        Source::Filed(filed) => {
            let link = sheet.link(&filed.accession);
            format!(
                "| [F0:{id}] | {} | {} | {} | [{} {}]({link}) |",
                cell(&value),
                filed.end,
                filed.filed,
                filed.form,
                filed.accession
            )
        }
        Source::Derived { formula, .. } => {
            format!("| [F0:{id}] | {} | | | computed: {} |", cell(&value), cell(formula))
        }
    }
}
