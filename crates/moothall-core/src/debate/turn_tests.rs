use serde_json::json;

use super::super::support::reply;
use super::*;
use crate::consult::board;
use crate::model::StopReason;

#[test]
fn every_question_has_a_schema_with_all_fields_required_in_order() {
    let shown = |schema: OutputSchema| {
        let value: Value = serde_json::from_str(schema.text()).unwrap();
        format!("{value:#}")
    };
    let v1 = CallSettings { prompts: PromptRevision::V1, ..CallSettings::default() };
    insta::assert_snapshot!("critic_schema", shown(critic_schema(&v1, false)));
    let schema = decision_maker_schema(&v1, &board().metrics, false);
    assert_eq!(schema, score_schema(&v1, &board().metrics));
    insta::assert_snapshot!("decision_maker_schema", shown(schema));
    let v2 = CallSettings::default();
    insta::assert_snapshot!("critic_schema_v2", shown(critic_schema(&v2, false)));
    let schema = decision_maker_schema(&v2, &board().metrics, false);
    insta::assert_snapshot!("decision_maker_schema_v2", shown(schema));
    insta::assert_snapshot!("score_schema_v2", shown(score_schema(&v2, &board().metrics)));
}

#[test]
fn a_turn_in_the_expected_form_is_parsed() {
    let turn = CriticTurn {
        message: "Why?".to_owned(),
        objections: vec![RaisedObjection {
            id: "new".to_owned(),
            severity: ObjectionSeverity::Fatal,
            text: "No buyer.".to_owned(),
            evidence: vec!["F0:Revenue:FY2025".to_owned()],
        }],
        withdrawn: vec!["O1".to_owned()],
    };
    assert_eq!(read_critic(&reply(serde_json::to_string(&turn).unwrap())), Ok(turn));

    let metrics = board().metrics.iter().map(|metric| (metric.id.clone(), 7)).collect();
    let turn = DecisionMakerTurn {
        message: "Because.".to_owned(),
        stance: DebateStance::Partial,
        answers: vec![ObjectionAnswer { objection: "O1".to_owned(), evidence: Vec::new() }],
        conceded: Vec::new(),
        scores: Some(RawScores { metrics, reasoning: "So it is.".to_owned() }),
    };
    let written = reply(serde_json::to_string(&turn).unwrap());
    assert_eq!(read_decision_maker(&written), Ok(turn));
    for revision in [PromptRevision::V1, PromptRevision::V2] {
        let (scores, reasoning) = read_scores(revision, &written, &board().metrics).unwrap();
        assert_eq!((scores.values().sum::<u8>(), reasoning.as_str()), (28, "So it is."));
    }
    let fenced = reply(format!("Here:\n```json\n{}\n```", written.text));
    assert!(read_decision_maker(&fenced).is_ok());
}

#[track_caller]
fn check_critic(answer: Value, expected: &[&str]) {
    let fault = read_critic(&reply(answer.to_string())).unwrap_err();
    assert_eq!(fault.problems(), expected);
}

#[test]
fn an_invalid_critic_answer_reports_its_problems() {
    let objection =
        |text: &str| json!({"id": "new", "severity": "minor", "text": text, "evidence": []});
    check_critic(json!({"message": "a", "objections": []}), &["missing field `withdrawn`"]);
    check_critic(
        json!({"message": " \u{200b}\n", "objections": [objection("")], "withdrawn": []}),
        &["`message` is empty", "an objection has an empty `text`"],
    );
    check_critic(
        json!({"message": "a", "objections": vec![objection("b"); 9], "withdrawn": vec!["O1"; 20]}),
        &[
            "`objections` has 9 entries; there may be 8 at most",
            "`withdrawn` has 20 entries; there may be 16 at most",
        ],
    );
    check_critic(
        json!({"message": "a", "objections": [], "withdrawn": [], "verdict": "pass"}),
        &["unknown field `verdict`, expected one of `message`, `objections`, `withdrawn`"],
    );
    let long = "\u{1b}".repeat(5000);
    let fault = read_critic(&reply(json!({"message": "a", long: 1}).to_string())).unwrap_err();
    assert!(
        fault.problems().iter().all(|problem| problem.len() < 800 && !problem.contains('\u{1b}'))
    );
    let huge = reply(
        json!({"message": "x".repeat(20_000), "objections": [], "withdrawn": []}).to_string(),
    );
    assert_eq!(
        read_critic(&huge).unwrap_err().problems(),
        ["the answer has more than 12288 bytes"]
    );
    let cut = ModelReply { stop: StopReason::MaxTokens, ..reply("{}") };
    assert_eq!(read_critic(&cut), Err(OutputFault::CutOff));
}

#[test]
fn a_score_out_of_range_is_a_problem_and_is_not_clamped() {
    #[track_caller]
    fn check(scores: Value, expected: &[&str]) {
        let turn = json!({
            "message": "", "stance": "hold", "answers": [], "conceded": [], "scores": scores,
        });
        for revision in [PromptRevision::V1, PromptRevision::V2] {
            let fault =
                read_scores(revision, &reply(turn.to_string()), &board().metrics).unwrap_err();
            assert_eq!(fault.problems(), expected);
        }
    }
    check(json!(null), &["`scores` is null; this is the time to score"]);
    check(
        json!({"impact": 0, "feasibility": 11, "risk_adjusted_return": -2, "extra": 5, "reasoning": ""}),
        &[
            "`scores.impact` is 0; it is from 1 to 10",
            "`scores.feasibility` is 11; it is from 1 to 10",
            "`scores.risk_adjusted_return` is -2; it is from 1 to 10",
            "`scores.strategic_alignment` is missing",
            "there is no metric `extra`",
        ],
    );
    check(
        json!({"impact": 7.5, "feasibility": 7, "risk_adjusted_return": 7, "strategic_alignment": 7, "reasoning": ""}),
        &["invalid type: floating point `7.5`, expected i64"],
    );
}

#[test]
fn scores_are_read_from_the_separate_form() {
    let form = json!({
        "reasoning": "Solid.", "impact": 7, "feasibility": 6, "risk_adjusted_return": 5,
        "strategic_alignment": 8,
    });
    let (scores, reasoning) =
        read_scores(PromptRevision::V2, &reply(form.to_string()), &board().metrics).unwrap();
    assert_eq!((scores.values().sum::<u8>(), reasoning.as_str()), (26, "Solid."));
    assert!(read_scores(PromptRevision::V1, &reply(form.to_string()), &board().metrics).is_err());
}
