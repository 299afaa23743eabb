//! The numbers of the moves that have no support, for every report that counts them.

use serde::Serialize;

use super::consult_report::ConsultReport;
use crate::claims::{Claim, ClaimChecker, ClaimKind, sentences};

/// The headings of a move's document. Other headings are the analyst's text.
const HEADINGS: [&str; 6] =
    ["Actions", "What must be true", "Evidence", "Risks", "Cost and horizon", "Kill criteria"];

/// A number of a move that is neither supported by its citation nor marked as an assumption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnsupportedNumber {
    /// The number as written.
    pub number: String,
    /// The move that contains it.
    pub move_id: String,
    /// The section of the move, such as `Risks`.
    pub section: &'static str,
    /// The author of the move.
    pub analyst: String,
    /// The reason, such as `wrong value; Revenue:FY2025 = 1214900000`.
    pub reason: String,
}

impl UnsupportedNumber {
    /// The place, the number and the reason in one line.
    pub(crate) fn describe(&self) -> String {
        let Self { number, move_id, section, analyst, reason } = self;
        format!("{move_id}, {section} ({analyst}): “{number}”, {reason}")
    }
}

/// The unsupported numbers of all moves, in the order of the ranking. Their count is the difference
/// that [`crate::consult::SupportCount`] leaves. Synthetic data has no evidence to check against.
pub fn unsupported_numbers(view: &ConsultReport) -> Vec<UnsupportedNumber> {
    let Some(evidence) = view.evidence().filter(|_| !view.proceedings.is_synthetic()) else {
        return Vec::new();
    };
    let checker = ClaimChecker::new(evidence.into());
    let ranked = view.ranked.iter().flat_map(|ranked| ranked.moves());
    let moves = ranked.filter_map(|one| view.find_move(&one.move_id));
    let mut found = Vec::new();
    for one in moves {
        let text = one.markdown();
        let starts: Vec<usize> = sentences(&text).into_iter().map(|range| range.start).collect();
        let claims = checker.check(&text).into_iter();
        let flagged =
            claims.filter(|claim| claim.kind == ClaimKind::Number && claim.verdict.is_flagged());
        found.extend(flagged.map(|claim| {
            let sentence = usize::try_from(claim.sentence).ok();
            let start = sentence.and_then(|at| starts.get(at).copied()).unwrap_or_default();
            UnsupportedNumber {
                move_id: one.move_id.clone(),
                section: section(&text, start),
                analyst: one.analyst.clone(),
                reason: flag_reason(&claim),
                number: claim.printed,
            }
        }));
    }
    found
}

/// Why a claim is flagged.
pub(crate) fn flag_reason(claim: &Claim) -> String {
    let verdict = claim.verdict.to_string().replace('_', " ").to_lowercase();
    match claim.detail.as_str() {
        "" => verdict,
        detail => format!("{verdict}; {detail}"),
    }
}

/// The section of a move's document that contains this position.
fn section(text: &str, at: usize) -> &'static str {
    let before = text.get(..at).unwrap_or_default();
    let heading = |line: &str| {
        let words = line.strip_prefix("## ")?;
        HEADINGS.into_iter().find(|heading| *heading == words)
    };
    match before.lines().rev().find_map(heading) {
        Some(heading) => heading,
        None if before.contains('\n') => "Thesis",
        None => "Title",
    }
}
