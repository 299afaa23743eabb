use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::support::*;
use super::super::{ConsultInput, ConsultOptions, MoveFile, MoveRecord, calls};
use super::*;
use crate::{EffectResult, RunVerdict};

fn own(value: Value) -> Proposal {
    serde_json::from_value::<MoveFile>(value).unwrap().proposal().unwrap()
}

fn paused() -> ConsultInput {
    let terms = ConsultOptions { pause_after_moves: true, ..ConsultOptions::default() };
    ConsultInput { terms, moves: Some(3), ..input() }
}

fn by_ada(what: ReviewAction) -> ReviewChange {
    ReviewChange { by: "Ada".to_owned(), at_ms: 7, what }
}

fn veto(move_id: &str) -> ReviewChange {
    by_ada(ReviewAction::Veto { move_id: move_id.to_owned(), why: "We tried it.".to_owned() })
}

fn edit(move_id: &str, proposal: Value) -> ReviewChange {
    by_ada(ReviewAction::Edit { move_id: move_id.to_owned(), proposal: own(proposal) })
}

fn add(proposal: Value) -> ReviewChange {
    by_ada(ReviewAction::Add { proposal: own(proposal) })
}

fn reviewed(changes: Vec<ReviewChange>) -> Ran {
    let said = EffectResult::PersonSaid(Box::new(MoveReview { changes }));
    run(paused(), &[("moves/review", said)])
}

fn debated(ran: &Ran) -> Vec<&str> {
    let is_debate = |effect: &&Effect| matches!(effect, Effect::StartChild(_));
    ran.asked.iter().filter(|(_, effect)| is_debate(effect)).map(|(id, _)| id.as_str()).collect()
}

#[test]
fn user_moves_are_numbered_last_checked_and_debated() {
    let wrong = "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].";
    let moves = vec![own(proposal("zeppelin")), own(claiming("yodeling", wrong))];
    let input = ConsultInput {
        terms: ConsultOptions { moves, ..ConsultOptions::default() },
        ..small_input()
    };
    let ran = run(input.clone(), &[]);
    assert_eq!(debated(&ran), ["m1", "m2", "m3", "m4"]);
    assert!(ran.debate("m3").move_markdown.contains("# m3: zeppelin"));
    let known = ran.consult.state();
    let authors: Vec<&str> = known.moves.values().map(|one| &*one.proposed.analyst).collect();
    assert_eq!(authors, ["analyst_1", "analyst_2", "you", "you"]);
    // A person's move is never sent for a rewrite.
    assert!(!ran.asked.contains_key("m4/rewrite"));
    assert_eq!(ran.rules(), ["Escalate claims.wrong-value m4"]);
    assert_eq!(ran.outcome.verdict, RunVerdict::NeedsPerson);
    assert!(ran.keys().contains(&"you:agent_complete"));
    assert_eq!(calls(&input) - calls(&small_input()), 2 * 61);
}

#[test]
fn near_duplicate_of_a_users_move_is_marked() {
    let moves = vec![own(proposal("alphabet"))];
    let input = ConsultInput {
        terms: ConsultOptions { moves, ..ConsultOptions::default() },
        ..small_input()
    };
    let ran = run(input, &[]);
    assert_eq!(ran.rules(), ["Note consult.similar m1", "Note consult.similar m3"]);
}

#[test]
fn every_analyst_prompt_contains_the_brief_after_the_dossier() {
    let brief = "Shall we grow abroad? Revenue must reach $9,999 million.".to_owned();
    let terms = ConsultOptions { brief: Some(brief.clone()), ..ConsultOptions::default() };
    let ran = run(ConsultInput { terms, ..input() }, &[]);
    let plain = run(input(), &[]);
    for number in 1..=5 {
        let id = format!("analyst_{number}");
        let (asked, before) = (ran.question(&id), plain.question(&id));
        assert_eq!(asked.system, before.system, "the shared prefix stays");
        assert!(asked.turns[0].block.text.contains(&brief), "{id}");
    }
    // The brief is not evidence: critic and decision makers do not see it.
    assert_eq!(ran.asked.get("m1"), plain.asked.get("m1"));
}

#[test]
fn moves_are_reviewed_before_they_are_debated() {
    let mut seen = None;
    let ran = drive(
        paused(),
        |id, effect| {
            if let Effect::AskPerson(question) = effect {
                seen = Some((id.to_string(), (**question).clone()));
            }
            well(id, effect)
        },
        |_| 0,
    );
    let (id, ReviewQuestion::ReviewMoves { moves }) = seen.unwrap();
    let asked: Vec<&str> = moves.iter().map(|one| one.move_id.as_str()).collect();
    assert_eq!((id.as_str(), asked), ("moves/review", vec!["m1", "m2", "m3"]));
    // A review without changes continues the run as it is.
    let without = ConsultInput { terms: ConsultOptions::default(), ..paused() };
    let plain = run(without, &[]);
    assert_eq!(ran.outcome, plain.outcome);
    assert_eq!(ran.asked.get("m2"), plain.asked.get("m2"));
}

#[test]
fn vetoes_edits_and_additions_are_applied_and_recorded_with_the_moves() {
    let wrong = "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].";
    let ran = reviewed(vec![
        veto("m1"),
        edit("m2", claiming("yodeling", wrong)),
        add(json!({"title": "zeppelin", "thesis": "It flies."})),
    ]);
    assert_eq!(debated(&ran), ["m2", "m3", "m4"]);
    assert!(ran.debate("m2").move_markdown.contains("# m2: yodeling"));
    assert!(!ran.asked.contains_key("m2/rewrite"));
    let said: Vec<(&str, Option<String>)> = ran
        .ranked()
        .moves()
        .map(|one| (one.move_id.as_str(), one.said.as_ref().map(MoveReviewDecision::describe)))
        .collect();
    assert_eq!(
        said,
        [
            ("m4", Some("added by Ada".to_owned())),
            ("m3", None),
            ("m1", Some("vetoed by Ada: We tried it.".to_owned())),
            ("m2", Some("edited by Ada".to_owned())),
        ]
    );
    let vetoed = &ran.ranked().other[0];
    assert!(vetoed.debated.is_none() && vetoed.rank.is_none());
    assert_eq!(
        ran.rules(),
        [
            "Note consult.vetoed m1",
            "Escalate claims.wrong-value m2",
            "Note consult.edited m2",
            "Note consult.added m4",
        ]
    );
    // A vetoed move does not count as missing.
    let shortfall = "2 of 3 moves are recommended (held back by what code found: m2)";
    assert_eq!(ran.ranked().missing, [shortfall]);
    let event = ran.events.iter().find(|event| event.key == "moves/review:moves_reviewed");
    let expected = RunEventBody::MovesReviewed {
        effect_id: "moves/review".parse().unwrap(),
        vetoed: vec!["m1".to_owned()],
        edited: vec!["m2".to_owned()],
        added: vec!["m4".to_owned()],
        titles: BTreeMap::from([
            ("m2".to_owned(), "yodeling".to_owned()),
            ("m4".to_owned(), "zeppelin".to_owned()),
        ]),
    };
    assert_eq!(event.unwrap().body, expected);
}

#[test]
fn the_last_review_change_of_a_move_wins() {
    let ran = reviewed(vec![
        veto("m1"),
        edit("m1", proposal("yodeling")),
        edit("m2", proposal("xylophone")),
        veto("m2"),
        add(proposal("zeppelin")),
        edit("m4", proposal("wristwatch")),
    ]);
    assert_eq!(debated(&ran), ["m1", "m3", "m4"]);
    assert!(ran.debate("m1").move_markdown.contains("yodeling"));
    assert!(ran.debate("m4").move_markdown.contains("wristwatch"));
    assert_eq!(
        ran.rules(),
        ["Note consult.edited m1", "Note consult.vetoed m2", "Note consult.added m4",]
    );
    let mut keys = ran.keys();
    keys.sort_unstable();
    let many = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), many, "a key stands twice");
}

#[test]
fn a_vetoed_move_needs_no_review_and_has_no_similar_moves() {
    let wrong = "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].";
    let ran = reviewed(vec![edit("m1", claiming("bicycles", wrong)), veto("m1")]);
    assert_eq!(ran.rules(), ["Warn claims.wrong-value m1", "Note consult.vetoed m1"]);
    assert_eq!(ran.outcome.verdict, RunVerdict::Pass);
}

#[test]
fn an_invalid_review_change_is_reported_and_not_applied() {
    let forged = Proposal { title: "# m9: a\nb".to_owned(), ..own(proposal("zeppelin")) };
    let mut nobody = veto("m1");
    nobody.by = String::new();
    let ran = reviewed(vec![
        veto("m9"),
        nobody,
        by_ada(ReviewAction::Add { proposal: forged }),
        edit("m04", proposal("zeppelin")),
    ]);
    assert_eq!(debated(&ran), ["m1", "m2", "m3"]);
    assert_eq!(ran.rules(), vec!["Warn consult.change-ignored moves/review"; 4]);
}

#[test]
fn added_moves_beyond_the_limit_are_ignored() {
    let letters = "abcdefghijklmnopqrst".chars();
    let changes = letters.map(|one| add(proposal(&one.to_string().repeat(8)))).collect();
    let ran = reviewed(changes);
    assert_eq!(debated(&ran).len(), 3 + MAX_ADDED_MOVES);
    let ignored = "Warn consult.change-ignored moves/review";
    assert_eq!(ran.rules().iter().filter(|rule| *rule == ignored).count(), 5);
}

#[test]
fn run_in_which_everything_is_vetoed_fails() {
    let ran = reviewed(vec![veto("m1"), veto("m2"), veto("m3")]);
    assert_eq!(debated(&ran), [""; 0]);
    assert_eq!(ran.outcome.verdict, RunVerdict::Fail);
    assert_eq!(ran.rules().last().unwrap(), "Block consult.no-debate consult");
}

/// Regression test: two people who edited the same move overwrote each other unnoticed.
#[test]
fn a_review_change_based_on_an_outdated_move_is_refused() {
    let of = |changes: Vec<ReviewChange>| reviewed(changes).consult.state().moves[&2].clone();
    let (before, vetoed) = (of(Vec::new()), of(vec![veto("m2")]));
    let edited = of(vec![veto("m2"), edit("m2", proposal("yodeling"))]);
    let seal = |one: &MoveRecord| one.seal().unwrap();
    // A change to another move is not a conflict, and neither is a change that was undone.
    assert_eq!(of(vec![veto("m1")]).check_version(&seal(&before)), Ok(()));
    assert_eq!(edited.check_version(&seal(&edited)), Ok(()));
    let words = |now: &MoveRecord, seen: &MoveRecord| {
        now.check_version(&seal(seen)).unwrap_err().to_string()
    };
    assert_eq!(
        words(&vetoed, &before),
        "m2 has changed since you read it: it was vetoed by Ada: We tried it."
    );
    assert_eq!(words(&edited, &vetoed), "m2 has changed since you read it: it was edited by Ada");
    assert_eq!(
        words(&before, &edited),
        "m2 has changed since you read it: a change to it was undone"
    );
    let all = |changes: Vec<ReviewChange>| MoveReview { changes }.seal().unwrap();
    assert_ne!(all(vec![veto("m1")]), all(vec![veto("m2")]));
}
