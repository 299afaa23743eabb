//! The move m0: doing nothing. Code writes it from the evidence, so that moves are compared with a
//! text that no agent influenced.

use super::moves::{Move, Proposal};
use super::state::ConsultState;
use crate::evidence::{FactId, FactSheet, FiscalPeriod};
use crate::prompt_revision::{PromptTemplate, template};

/// Id of the do-nothing move.
pub const DO_NOTHING_ID: &str = "m0";

const CODE: &str = "code";

const CONTINUES: PromptTemplate = template!("do_nothing_continues");

/// Figures that describe the company's position: metric and display name.
const FIGURES: [(&str, &str); 5] = [
    ("Revenue", "revenue"),
    ("OperatingMargin", "the operating margin"),
    ("NetIncome", "net income"),
    ("FreeCashFlow", "free cash flow"),
    ("TotalDebt", "debt"),
];

/// Builds the do-nothing move.
pub(crate) fn do_nothing_move(known: &ConsultState) -> Move {
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
            CONTINUES.text(known.prompts).trim_end().into(),
            "No competitor, customer or rule forces a change before the next decision.".into(),
        ],
        evidence: stands.into_iter().map(|(_, id)| id).collect(),
        risks: vec!["Others move, and the company falls behind without a decision.".into()],
        cost: "None beyond the present spending.".to_owned(),
        horizon: "Until the next decision.".to_owned(),
        kill_criteria: vec!["The filed figures turn for the worse and stay there.".into()],
    };
    Move { move_id: DO_NOTHING_ID.to_owned(), analyst: CODE.to_owned(), proposal }
}

/// A sentence and an evidence id for each filed figure of the newest year.
fn figures(sheet: &FactSheet) -> Vec<(String, String)> {
    let Some(year) = sheet.newest_year() else { return Vec::new() };
    let sentence = |(metric, words): &(&str, &str)| {
        let id = FactId::new(*metric, FiscalPeriod::Year(year));
        let value = sheet.display_value(&id)?;
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
#[path = "do_nothing_tests.rs"]
mod tests;
