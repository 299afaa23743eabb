//! The moves of the five analysts of the board.

use serde_json::json;

use super::facts::{Facts, USUAL};
use super::{MARK, chance, last_question, system};
use crate::consult::moves::Proposal;
use crate::model::ModelRequest;

mod catalogue;

use self::catalogue::{ANALYSTS, Idea, Slip};

/// An analyst's answer: so many moves as asked for, or one of them again.
pub(super) fn answer(request: &ModelRequest) -> Option<String> {
    let facts = Facts::read(system(request, 0));
    let persona = system(request, 1);
    let name = persona.strip_prefix("You are ")?.split_once(", an analyst")?.0;
    let (_, asked) = persona.split_once("a list of exactly ")?;
    let share: usize = asked.split(' ').next()?.parse().ok()?;
    let again = last_question(request).strip_prefix("Code checked move ");
    let again = again.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    let proposals: Vec<Proposal> = match again {
        Some(number) => vec![proposal(idea(name, number.saturating_sub(1)), &facts, Draft::Second)],
        None => (0..share).map(|at| proposal(idea(name, at), &facts, Draft::First)).collect(),
    };
    Some(json!({ "moves": proposals }).to_string())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Draft {
    First,
    Second,
}

/// The idea at a place of an analyst's list. Whoever is not on the board takes over the list of one
/// who is, and whoever needs more than a list has begins it again.
fn idea(analyst: &str, at: usize) -> &'static Idea {
    let known = ANALYSTS.iter().find(|(name, _)| *name == analyst);
    let place = chance(&[analyst], ANALYSTS.len());
    let ideas: &[Idea; 3] = known.map_or_else(|| &ANALYSTS[place].1, |(_, ideas)| ideas);
    &ideas[at % ideas.len()]
}

fn proposal(idea: &Idea, facts: &Facts, draft: Draft) -> Proposal {
    let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let wrong = match (idea.slip, draft) {
        (Slip::WrongNumber, Draft::First) => facts.wrong_sentence(idea.rests_on),
        _ => None,
    };
    let first =
        wrong.or_else(|| facts.sentence(idea.rests_on, 0)).or_else(|| facts.sentence(USUAL, 0));
    let second = facts.sentence(idea.rests_on, 1).or_else(|| facts.sentence(USUAL, 1));
    let hope = match idea.slip {
        Slip::Projection => Some("It could add 4% to revenue.".to_owned()),
        Slip::None | Slip::WrongNumber => None,
    };
    let sentences = [Some(idea.why.to_owned()), first, second, hope, Some(MARK.to_owned())];
    let thesis: Vec<String> = sentences.into_iter().flatten().collect();
    let mut must = owned(idea.must_be_true);
    must.extend(facts.change(idea.watched));
    let mut evidence = facts.ids(idea.rests_on);
    if evidence.is_empty() {
        evidence = facts.ids(USUAL);
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
