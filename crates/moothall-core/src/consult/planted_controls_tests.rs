use super::super::support::{evidence, made_up};
use super::*;
use crate::consult::TextCheck;

fn known(evidence: crate::evidence::Evidence) -> ConsultState {
    ConsultState { evidence: Some(Box::new(evidence)), ..ConsultState::default() }
}

#[test]
fn known_bad_moves_cite_the_companys_own_numbers_correctly() {
    let planted = known_bad_moves(&known(evidence()), 3);
    // The sheet has no cash, so one of the three templates cannot be used.
    assert_eq!(planted.len(), 2);
    for one in &planted {
        let check = TextCheck::of_move(&evidence(), one);
        assert!(!check.is_flagged(), "{}: {:?}", one.proposal.title, check.findings);
        assert!(one.proposal.horizon.contains("no payback"));
        assert!(one.proposal.actions.len() >= 3 && !one.proposal.kill_criteria.is_empty());
    }
    assert_eq!(planted[0].move_id, "control-1");
    assert_eq!(known_bad_moves(&known(evidence()), 1).len(), 1);
    assert_eq!(known_bad_moves(&known(made_up()), 2), []);
}

#[test]
fn a_weakened_copy_costs_three_times_as_much_and_takes_twice_as_long() {
    let check = |cost: &str, horizon: &str, weaker: (&str, &str)| {
        let proposal = Proposal {
            title: "Sell more".into(),
            thesis: "It pays.".into(),
            actions: vec!["Sell".into()],
            what_must_be_true: vec!["People buy".into()],
            evidence: vec!["F0:Revenue:FY2025".into()],
            risks: vec!["They do not".into()],
            cost: cost.into(),
            horizon: horizon.into(),
            kill_criteria: vec!["Nobody buys".into()],
        };
        let weak = weakened_copy(&proposal);
        assert_eq!((weak.cost.as_str(), weak.horizon.as_str()), weaker);
        assert!(weak.evidence.is_empty() && weak.kill_criteria.is_empty());
        let same = Proposal {
            cost: proposal.cost.clone(),
            horizon: proposal.horizon.clone(),
            evidence: proposal.evidence.clone(),
            kill_criteria: proposal.kill_criteria.clone(),
            ..weak
        };
        assert_eq!(same, proposal);
    };
    check(
        "About $25 million [A1: plan] and $1.5 billion later.",
        "Pays back within 3 years.",
        ("About $75 million [A1: plan] and $4.5 billion later.", "Pays back within 6 years."),
    );
    check(
        "Little.",
        "Soon.",
        ("Three times what a plan like this usually costs. Little.", "Twice the usual time. Soon."),
    );
}
