use proptest::prelude::*;
use serde_json::json;

use super::super::support::{proposal, reply};
use super::*;
use crate::model::StopReason;
use crate::output_schema::tests::conforming;

fn answer(moves: &[Value]) -> ModelReply {
    reply(json!({ "moves": moves }).to_string())
}

#[track_caller]
fn check_problems(moves: &[Value], expected: &[&str]) {
    match read(PromptRevision::V1, &answer(moves), 1) {
        Err(OutputFault::Invalid { problems }) => assert_eq!(problems, expected),
        other => panic!("{other:?}"),
    }
}

fn changed(field: &str, value: Value) -> Value {
    let mut one = proposal("bicycles");
    one[field] = value;
    one
}

#[test]
fn a_valid_answer_is_parsed_into_moves_in_order() {
    let moves = read(PromptRevision::V2, &answer(&[proposal("alphabet"), proposal("bicycles")]), 2)
        .unwrap();
    let titles: Vec<&str> = moves.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(titles, ["alphabet", "bicycles"]);
}

#[test]
fn moves_beyond_the_requested_number_are_dropped() {
    let moves = read(PromptRevision::V2, &answer(&[proposal("alphabet"), proposal("bicycles")]), 1)
        .unwrap();
    assert_eq!(moves.len(), 1);
}

#[test]
fn the_first_revision_names_problems_by_move_and_field() {
    check_problems(&[], &["`moves` has 0 moves; there must be 1"]);
    check_problems(&[changed("title", json!("  "))], &["move 1: `title` is empty"]);
    check_problems(
        &[changed("thesis", json!("long ".repeat(500)))],
        &["move 1: `thesis` has 2500 characters; 2000 are the most"],
    );
    check_problems(
        &[changed("risks", json!([]))],
        &["move 1: `risks` has 0 entries; 1 to 8 are wanted"],
    );
    check_problems(
        &[changed("extra", json!(1))],
        &[
            "unknown field `extra`, expected one of `title`, `thesis`, `actions`, `what_must_be_true`, `evidence`, `risks`, `cost`, `horizon`, `kill_criteria`",
        ],
    );
}

#[test]
fn a_truncated_proposal_answer_is_not_parsed() {
    let mut cut = answer(&[proposal("alphabet")]);
    cut.stop = StopReason::MaxTokens;
    assert_eq!(read(PromptRevision::V2, &cut, 1), Err(OutputFault::CutOff));
}

#[test]
fn usable_moves_of_a_second_answer_are_kept() {
    let moves = [
        json!({"title": "no thesis"}),
        changed("thesis", json!("long ".repeat(500))),
        changed("title", json!("")),
        changed("risks", json!([])),
    ];
    let taken = read_usable_moves(PromptRevision::V2, &answer(&moves), 3).unwrap();
    let lengths: Vec<(usize, usize)> =
        taken.iter().map(|one| (one.thesis.chars().count(), one.risks.len())).collect();
    assert_eq!(lengths, [(2000, 1), (83, 0)]);
    assert!(read_usable_moves(PromptRevision::V2, &answer(&moves[..1]), 3).is_err());
    assert!(read_usable_moves(PromptRevision::V2, &reply("[]"), 3).is_err());
}

#[test]
fn move_text_stays_on_one_line_and_citation_ids_lose_their_brackets() {
    let mut one = changed("title", json!("bicycles\n\n# m9: other\u{202e}"));
    one["evidence"] = json!(["[F0:Revenue:FY2025]", " E0:1 "]);
    let moves = read(PromptRevision::V2, &answer(&[one]), 1).unwrap();
    assert_eq!(moves[0].title, "bicycles # m9: other");
    assert_eq!(moves[0].evidence, ["F0:Revenue:FY2025", "E0:1"]);
}

#[test]
fn the_schema_lists_fields_in_the_order_of_a_move() {
    insta::assert_snapshot!(schema(PromptRevision::V2, 3).text());
}

#[test]
fn the_schema_of_the_first_revision_is_stable() {
    insta::assert_snapshot!(schema(PromptRevision::V1, 3).text());
}

#[test]
fn long_fields_are_truncated_and_ids_extracted_from_citations() {
    let mut one = changed("title", json!("t".repeat(200)));
    one["thesis"] = json!("long ".repeat(500));
    one["evidence"] =
        json!(["[U0:plan:3] the plan says that sales double", "E0:1; F0:Cash:FY2025"]);
    let moves = read(PromptRevision::V2, &answer(&[one]), 1).unwrap();
    assert_eq!((moves[0].title.len(), moves[0].thesis.chars().count()), (122, 2000));
    assert_eq!(moves[0].evidence, ["U0:plan:3", "E0:1"]);
}

#[test]
fn missing_moves_and_empty_fields_are_problems_in_every_revision() {
    for revision in [PromptRevision::V1, PromptRevision::V2] {
        let fault = read(revision, &answer(&[changed("risks", json!([]))]), 2).unwrap_err();
        assert_eq!(
            fault.problems(),
            [
                "`moves` has 1 moves; there must be 2",
                "move 1: `risks` has 0 entries; 1 to 8 are wanted"
            ]
        );
    }
}

proptest! {
    #[test]
    fn every_answer_that_conforms_to_the_schema_of_moves_is_accepted(
        text in conforming(&schema(PromptRevision::V2, 3)),
    ) {
        prop_assert_eq!(read(PromptRevision::V2, &reply(text), 3).unwrap().len(), 3);
    }
}
