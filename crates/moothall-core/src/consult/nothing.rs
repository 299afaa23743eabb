//! m0: what it means to do nothing. Code writes it from the evidence, so that the moves are compared
//! with something that no agent had a say in.

use super::moves::{Move, Proposal};
use super::proceedings::Proceedings;
use crate::evidence::{FactId, Period, Sheet};

/// The id of doing nothing.
pub const NOTHING: &str = "m0";

/// Its author.
const CODE: &str = "code";

/// The figures that say where the company stands, as the sheet names them and as people do.
const FIGURES: [(&str, &str); 5] = [
    ("Revenue", "revenue"),
    ("OperatingMargin", "the operating margin"),
    ("NetIncome", "net income"),
    ("FreeCashFlow", "free cash flow"),
    ("TotalDebt", "debt"),
];

/// Doing nothing, as a move.
pub(super) fn nothing(known: &Proceedings) -> Move {
    let sheet = known.evidence.as_deref().and_then(|evidence| evidence.sheet.as_ref());
    let stands = sheet.map(figures).unwrap_or_default();
    let mut thesis = vec![format!(
        "{} takes none of the proposed moves. It continues as it is: the same products, markets, \
         prices, spending and plans.",
        capital(&known.company())
    )];
    thesis.extend(stands.iter().map(|(words, _)| words.clone()));
    thesis.push("What the other moves cost is not spent, and what they promise is not won.".into());
    let proposal = Proposal {
        title: "Do nothing: continue as the company is".to_owned(),
        thesis: thesis.join(" "),
        actions: vec!["Management carries out its present plans and starts nothing new.".into()],
        what_must_be_true: vec![
            "What has carried the company so far goes on to carry it.".into(),
            "No competitor, customer or rule forces a change before the next decision.".into(),
        ],
        evidence: stands.into_iter().map(|(_, id)| id).collect(),
        risks: vec!["Others move, and the company falls behind without a decision.".into()],
        cost: "None beyond the present spending.".to_owned(),
        horizon: "Until the next decision.".to_owned(),
        kill_criteria: vec!["The filed figures turn for the worse and stay there.".into()],
    };
    Move { move_id: NOTHING.to_owned(), analyst: CODE.to_owned(), proposal }
}

/// A sentence and an id for each figure of the newest year that was filed.
fn figures(sheet: &Sheet) -> Vec<(String, String)> {
    let Some(year) = sheet.newest_year() else { return Vec::new() };
    let sentence = |(metric, words): &(&str, &str)| {
        let id = FactId::new(*metric, Period::Year(year));
        let value = sheet.words(&id)?;
        Some((format!("In FY{year} {words} was {value} [F0:{id}]."), format!("F0:{id}")))
    };
    FIGURES.iter().filter_map(sentence).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

#[cfg(test)]
#[path = "nothing_tests.rs"]
mod tests;
