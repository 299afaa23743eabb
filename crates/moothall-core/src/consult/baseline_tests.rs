use super::super::support::*;
use super::super::{ConsultInput, ConsultOptions, calls};
use crate::debate::ScoreBasis;
use crate::model::CallPurpose;
use crate::{Effect, RunVerdict};

fn with(terms: ConsultOptions) -> ConsultInput {
    ConsultInput { terms, ..small_input() }
}

fn do_nothing() -> ConsultInput {
    with(ConsultOptions { do_nothing: true, ..ConsultOptions::default() })
}

fn of_purpose(ran: &Ran, purpose: CallPurpose) -> Vec<&str> {
    let is =
        |effect: &Effect| matches!(effect, Effect::CallModel(asked) if asked.purpose == purpose);
    ran.asked.iter().filter(|(_, effect)| is(effect)).map(|(id, _)| id.as_str()).collect()
}

#[test]
fn doing_nothing_is_scored_by_every_decision_maker_and_has_no_debate() {
    let ran = run(do_nothing(), &[]);
    let asked = ["m0/score/D1", "m0/score/D2", "m0/score/D3"];
    assert_eq!(of_purpose(&ran, CallPurpose::ScoreNothing), asked);
    let scored = ran.ranked().do_nothing.as_ref().unwrap();
    assert_eq!((scored.total_score, scored.top_score, scored.spread), (48, 120, 0));
    assert!(scored.is_given() && scored.move_id == "m0");
    assert!(ran.ranked().moves().all(|one| one.move_id != "m0"));
    assert_eq!(ran.ranked().baseline, []);
    let (before, after) = (calls(&small_input()), calls(&do_nothing()));
    assert_eq!(after - before, 3);
    assert_eq!(ran.outcome.verdict, RunVerdict::Pass);
}

#[test]
fn the_baseline_prompt_equals_the_debate_prompt_without_the_debate() {
    let ran = run(do_nothing(), &[]);
    let (asked, debate) = (ran.question("m0/score/D2"), ran.debate("m1"));
    assert_eq!(asked.system[0].text, debate.dossier);
    assert!(asked.system[2].text.contains("You are D2 (Operational Pragmatist)"));
    assert!(asked.system[2].text.contains("# m0: Do nothing"));
    assert!(asked.system[1].text.contains("`impact` (Impact): How large"));
    assert_eq!(asked.schema.as_ref().unwrap().name(), "scores");
}

#[test]
fn baseline_scores_every_move_without_its_debate() {
    let input = with(ConsultOptions { baseline: true, ..ConsultOptions::default() });
    let ran = run(input.clone(), &[]);
    let asked = of_purpose(&ran, CallPurpose::ScoreBaseline);
    assert_eq!(
        asked,
        [
            "m1/baseline/D1",
            "m1/baseline/D2",
            "m1/baseline/D3",
            "m2/baseline/D1",
            "m2/baseline/D2",
            "m2/baseline/D3",
        ]
    );
    let totals: Vec<_> =
        ran.ranked().baseline.iter().map(|one| (one.move_id.as_str(), one.total_score)).collect();
    assert_eq!(totals, [("m1", 36), ("m2", 48)]);
    assert_eq!(calls(&input) - calls(&small_input()), 6);
    // The debates are requested exactly as without a baseline.
    assert_eq!(ran.asked.get("m1"), run(small_input(), &[]).asked.get("m1"));
}

#[test]
fn missing_scores_of_doing_nothing_are_reported() {
    let ran = run(
        do_nothing(),
        &[
            ("m0/score/D1", failed()),
            ("m0/score/D2", said("well")),
            (
                "m0/score/D2/ask-2",
                said("Impact: 3\nFeasibility: 9\nRisk-Adjusted Return: 5\nStrategic Alignment: 4"),
            ),
            ("m0/score/D3", said("{}")),
            ("m0/score/D3/ask-2", said("{}")),
        ],
    );
    let scored = ran.ranked().do_nothing.as_ref().unwrap();
    let bases: Vec<ScoreBasis> = scored.scorecards.values().map(|card| card.basis).collect();
    assert_eq!(bases, [ScoreBasis::NotScored, ScoreBasis::FromText, ScoreBasis::NotScored]);
    assert!(!scored.is_given() && !scored.is_scored());
    assert_eq!(scored.scorecards["D2"].sum(), 21);
    let rule = "Warn consult.not-scored m0".to_owned();
    assert_eq!(ran.rules(), [rule.clone(), rule]);
}

#[test]
fn the_baseline_does_not_depend_on_the_order_of_answers() {
    let terms = ConsultOptions { do_nothing: true, baseline: true, ..ConsultOptions::default() };
    let first = drive(with(terms.clone()), well, |_| 0);
    for seed in 1..6_usize {
        let mut at = seed;
        let other = drive(with(terms.clone()), well, move |open| {
            at = at.wrapping_mul(31).wrapping_add(seed);
            at % open
        });
        assert_eq!(other.outcome, first.outcome);
    }
}
