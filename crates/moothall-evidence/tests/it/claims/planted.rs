//! Moves as written by agents: clean ones, and the same with one planted error.

use std::collections::BTreeMap;

use moothall_evidence::claims::{Claim, advice_language, injected_instructions};
use serde::Deserialize;

use super::company::{Company, companies};

const CLEAN: &str = include_str!("planted/clean.jsonl");
const PLANTED: &str = include_str!("planted/planted.jsonl");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    company: String,
    text: String,
    #[serde(default)]
    flaw: Option<Flaw>,
    /// The number that must be flagged.
    #[serde(default)]
    printed: Option<String>,
    /// A passage of a filing with a prompt injection.
    #[serde(default)]
    source: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Flaw {
    WrongNumber,
    WrongPeriod,
    InventedCitation,
    Projection,
    InjectedInstruction,
}

fn moves(lines: &str) -> Vec<Move> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn flagged(company: &Company, text: &str) -> Vec<Claim> {
    let claims = company.checker().check(text);
    claims.into_iter().filter(|claim| claim.verdict.is_flagged()).collect()
}

#[test]
fn every_planted_error_is_flagged() {
    let companies = companies();
    let mut kinds: BTreeMap<Flaw, usize> = BTreeMap::new();
    let mut passed = Vec::new();
    for planted in moves(PLANTED) {
        *kinds.entry(planted.flaw.unwrap()).or_default() += 1;
        let is_found = match (&planted.source, &planted.printed) {
            (Some(source), _) => !injected_instructions(source).is_empty(),
            (None, Some(printed)) => flagged(&companies[planted.company.as_str()], &planted.text)
                .iter()
                .any(|claim| claim.printed == *printed),
            (None, None) => false,
        };
        if !is_found {
            passed.push(planted);
        }
    }
    println!("planted: {kinds:?}");
    assert!(passed.is_empty(), "{passed:#?}");
    assert!(kinds.values().sum::<usize>() >= 40 && kinds.len() == 5);
}

#[test]
fn clean_moves_are_not_flagged() {
    let companies = companies();
    let moves = moves(CLEAN);
    let mut complaints = Vec::new();
    for clean in &moves {
        let claims = flagged(&companies[clean.company.as_str()], &clean.text);
        let advice = advice_language(&clean.text);
        let instructions = injected_instructions(&clean.text);
        if !claims.is_empty() || !advice.is_empty() || !instructions.is_empty() {
            complaints.push((&clean.text, claims, advice, instructions));
        }
    }
    println!("clean: {} of {} flagged {complaints:#?}", complaints.len(), moves.len());
    assert!(moves.len() >= 40 && complaints.len() <= 2);
}
