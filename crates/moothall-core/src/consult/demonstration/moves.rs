//! Demo moves of the board's five analysts.

use serde_json::json;

use super::facts::{COMMON_METRICS, DemoFacts};
use super::{MARK, last_question, pseudo_random, system};
use crate::consult::moves::Proposal;
use crate::model::ModelRequest;

mod catalogue;

use self::catalogue::{ANALYSTS, DemoFlaw, DemoIdea};

/// An analyst's reply: as many moves as requested, or a rewrite of one.
pub(crate) fn answer(request: &ModelRequest) -> Option<String> {
    let facts = DemoFacts::read(system(request, 0));
    let persona = system(request, 1);
    let name = analyst_name(persona);
    let share = share(persona)?;
    let again = last_question(request).strip_prefix("Code checked move ");
    let again = again.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    let proposals: Vec<Proposal> = match again {
        Some(number) => {
            vec![proposal(idea(name, number.saturating_sub(1)), &facts, ProposalVersion::Second)]
        }
        None => {
            (0..share).map(|at| proposal(idea(name, at), &facts, ProposalVersion::First)).collect()
        }
    };
    Some(json!({ "moves": proposals }).to_string())
}

/// The analyst's name. The user's own prompt may mention it anywhere.
fn analyst_name(persona: &str) -> &str {
    let written = persona.strip_prefix("You are ").and_then(|rest| rest.split_once(", an analyst"));
    let known = || ANALYSTS.iter().map(|(name, _)| *name).find(|name| persona.contains(name));
    written.map(|(name, _)| name).or_else(known).unwrap_or(persona)
}

/// The number of moves: `3 moves` or `1 move`.
fn share(persona: &str) -> Option<usize> {
    let words: Vec<&str> = persona.split_whitespace().collect();
    words.windows(2).find_map(|pair| pair[1].starts_with("move").then(|| pair[0].parse().ok())?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProposalVersion {
    First,
    Second,
}

/// The idea at an index of an analyst's list. Analysts outside the board use the list of a board
/// analyst, and an index past the end wraps around.
fn idea(analyst: &str, at: usize) -> &'static DemoIdea {
    let known = ANALYSTS.iter().find(|(name, _)| *name == analyst);
    let place = pseudo_random(&[analyst], ANALYSTS.len());
    let ideas: &[DemoIdea; 3] = known.map_or_else(|| &ANALYSTS[place].1, |(_, ideas)| ideas);
    &ideas[at % ideas.len()]
}

fn proposal(idea: &DemoIdea, facts: &DemoFacts<'_>, draft: ProposalVersion) -> Proposal {
    let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let wrong = match (idea.slip, draft) {
        (DemoFlaw::WrongNumber, ProposalVersion::First) => facts.wrong_sentence(idea.rests_on),
        _ => None,
    };
    let first = wrong
        .or_else(|| facts.sentence(idea.rests_on, 0))
        .or_else(|| facts.sentence(COMMON_METRICS, 0));
    let second = facts.sentence(idea.rests_on, 1).or_else(|| facts.sentence(COMMON_METRICS, 1));
    let hope = match idea.slip {
        DemoFlaw::Projection => Some("It could add 4% to revenue.".to_owned()),
        DemoFlaw::None | DemoFlaw::WrongNumber => None,
    };
    let sentences = [Some(idea.why.to_owned()), first, second, hope, Some(MARK.to_owned())];
    let thesis: Vec<String> = sentences.into_iter().flatten().collect();
    let mut must = owned(idea.must_be_true);
    must.extend(facts.change(idea.watched));
    let mut evidence = facts.ids(idea.rests_on);
    if evidence.is_empty() {
        evidence = facts.ids(COMMON_METRICS);
    }
    evidence.truncate(4);
    Proposal {
        title: idea.title.to_owned(),
        thesis: thesis.join(" "),
        actions: owned(idea.actions),
        what_must_be_true: must,
        evidence,
        risks: owned(idea.risks),
        cost: idea.cost.to_owned(),
        horizon: idea.horizon.to_owned(),
        kill_criteria: owned(idea.kill_criteria),
    }
}
