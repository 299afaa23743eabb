use std::collections::BTreeMap;

use super::*;
use crate::consult::SupportCount;
use crate::debate::{DebateResult, ScoreBasis, Scorecard};

fn card(score: u8, basis: ScoreBasis) -> BTreeMap<String, Scorecard> {
    let scores = BTreeMap::from([("impact".to_owned(), score)]);
    BTreeMap::from([("D1".to_owned(), Scorecard { scores, reasoning: String::new(), basis })])
}

fn alone(move_id: &str, score: u8, basis: ScoreBasis) -> BaselineScores {
    BaselineScores::of(move_id.to_owned(), card(score, basis), 10)
}

fn ranked_move(move_id: &str, rank: u32, score: u8) -> RankedMove {
    RankedMove {
        move_id: move_id.to_owned(),
        title: format!("Move {move_id}"),
        rank: Some(rank),
        debated: Some(DebateResult {
            move_id: move_id.to_owned(),
            rounds: 1,
            rounds_done: 1,
            scorecards: card(score, ScoreBasis::Structured),
            total_score: u32::from(score),
            top_score: 10,
            spread: 0,
            objections: Vec::new(),
            stances: BTreeMap::new(),
            degraded: Vec::new(),
            calculations: Vec::new(),
        }),
        isolation: None,
        findings: Vec::new(),
        similar_to: [].into(),
        support: SupportCount::default(),
        said: None,
    }
}

/// Moves as id, score without a debate and score after it, ordered by the latter.
fn ranked(moves: &[(&str, u8, u8)]) -> ConsultResult {
    let ranked = |(rank, (id, _, after)): (u32, &(&str, u8, u8))| ranked_move(id, rank, *after);
    let mut ranked: Vec<RankedMove> = (1..).zip(moves).map(ranked).collect();
    let other = ranked.split_off(ranked.len().min(RECOMMENDED));
    ConsultResult {
        company: "Small Works".to_owned(),
        sheet_sha256: None,
        recommended: ranked,
        other,
        missing: Vec::new(),
        do_nothing: None,
        verdict: None,
        baseline: moves
            .iter()
            .map(|(id, before, _)| alone(id, *before, ScoreBasis::Structured))
            .collect(),
    }
}

#[test]
fn the_debate_effect_reports_new_moves_and_score_changes() {
    let ranked = ranked(&[("m1", 8, 9), ("m4", 3, 8), ("m3", 7, 7), ("m2", 9, 6)]);
    let effect = DebateEffect::of(&ranked).unwrap();
    assert_eq!(
        (effect.before.clone(), effect.after.clone()),
        (vec!["m2", "m1", "m3"], vec!["m1", "m4", "m3"])
    );
    assert_eq!((effect.entered_top(), effect.left_top()), (vec!["m4"], vec!["m2"]));
    // 1, 5, 0 and 3 points: 2.25 on average.
    assert_eq!(tenths(effect.average_tenths()), "2.3");
    assert_eq!(effect.largest_shift(), Some(&("m4", 3, 8)));
}

#[test]
fn a_reordered_recommendation_is_distinguished_from_a_changed_one() {
    let ranked = ranked(&[("m1", 7, 9), ("m2", 8, 8), ("m3", 6, 7)]);
    let effect = DebateEffect::of(&ranked).unwrap();
    assert!(effect.entered_top().is_empty() && effect.before != effect.after);
}

#[test]
fn missing_scores_are_not_compared_with_the_baseline() {
    let mut ranked = ranked(&[("m1", 7, 9), ("m2", 8, 8)]);
    ranked.baseline[1] = alone("m2", 5, ScoreBasis::Neutral);
    let effect = DebateEffect::of(&ranked).unwrap();
    assert_eq!(effect.moved, [("m1", 7, 9)]);
    ranked.baseline.clear();
    assert!(DebateEffect::of(&ranked).is_none());
}

#[test]
fn moves_ranked_below_doing_nothing_are_listed_in_rank_order() {
    let ranked = ranked(&[("m1", 7, 9), ("m2", 8, 6), ("m3", 8, 4), ("m10", 8, 3)]);
    let nothing = alone("m0", 6, ScoreBasis::Structured);
    assert_eq!(moves_below_do_nothing(&ranked, &nothing), [("m3", 4), ("m10", 3)]);
}
