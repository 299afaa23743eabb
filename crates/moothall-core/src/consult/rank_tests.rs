use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::RuleId;
use crate::consult::SupportCount;
use crate::debate::{Objection, ObjectionState, ScoreBasis, Scorecard};

fn debated(total_score: u32) -> DebateResult {
    DebateResult {
        move_id: String::new(),
        rounds: 10,
        rounds_done: 10,
        scorecards: BTreeMap::new(),
        total_score,
        top_score: 120,
        spread: 4,
        objections: Vec::new(),
        stances: BTreeMap::new(),
        degraded: Vec::new(),
        calculations: Vec::new(),
    }
}

fn a_move(id: &str, total_score: u32) -> RankedMove {
    RankedMove {
        move_id: id.to_owned(),
        title: format!("Move {id}"),
        rank: None,
        debated: Some(debated(total_score)),
        isolation: None,
        findings: Vec::new(),
        similar_to: BTreeSet::new(),
        said: None,
        support: SupportCount { supported: 3, total: 4 },
    }
}

fn with(mut one: RankedMove, change: impl FnOnce(&mut DebateResult)) -> RankedMove {
    one.debated.as_mut().map(change);
    one
}

fn marked(one: RankedMove, mark: DebateDegradation) -> RankedMove {
    with(one, |debated| debated.degraded.push(mark))
}

fn neutral() -> DebateDegradation {
    DebateDegradation::NeutralScore { decision_maker: "D2".to_owned() }
}

fn early() -> DebateDegradation {
    DebateDegradation::EndedEarly {
        thread: "D1".to_owned(),
        after_round: 4,
        why: "server".to_owned(),
    }
}

fn finding(subject: &str, severity: FindingSeverity) -> RunFinding {
    RunFinding {
        rule: RuleId::new("claims.wrong-value"),
        severity,
        subject: subject.to_owned(),
        message: "46.2% is not 46.9%".to_owned(),
        evidence: Vec::new(),
    }
}

fn held(mut one: RankedMove) -> RankedMove {
    one.findings.push(finding(&one.move_id, FindingSeverity::Escalate));
    one
}

fn objection(severity: ObjectionSeverity, state: ObjectionState) -> Objection {
    Objection {
        id: "O1".to_owned(),
        severity,
        text: "The demand is not shown.".to_owned(),
        evidence: Vec::new(),
        round: 1,
        state,
        open_in: Vec::new(),
        reply: None,
    }
}

type Places<'a> = Vec<(&'a str, Option<u32>)>;

/// Ids and ranks of the recommended and of the other moves.
fn order(ranking: &MoveRanking) -> (Places<'_>, Places<'_>) {
    fn places(moves: &[RankedMove]) -> Places<'_> {
        moves.iter().map(|one| (one.move_id.as_str(), one.rank)).collect()
    }
    (places(&ranking.recommended), places(&ranking.other))
}

fn nobody() -> BTreeSet<String> {
    BTreeSet::new()
}

#[test]
fn the_best_three_moves_are_recommended_and_the_rest_are_ordered() {
    let moves =
        [a_move("m1", 80), a_move("m2", 95), a_move("m3", 70), a_move("m4", 96), a_move("m5", 81)];
    let ranking = rank(moves, FindingAcceptance::These(&nobody()));
    assert_eq!(
        order(&ranking),
        (
            vec![("m4", Some(1)), ("m2", Some(2)), ("m5", Some(3))],
            vec![("m1", Some(4)), ("m3", Some(5))],
        )
    );
    assert_eq!(ranking.shortfall(), None);
}

#[test]
fn equal_totals_are_ordered_by_the_documented_tie_breakers() {
    let major = |state| vec![objection(ObjectionSeverity::Major, state)];
    let moves = [
        marked(with(a_move("m1", 90), |debated| debated.spread = 0), early()),
        with(a_move("m2", 90), |debated| debated.spread = 9),
        with(a_move("m3", 90), |debated| debated.objections = major(ObjectionState::Open)),
        RankedMove { support: SupportCount { supported: 1, total: 2 }, ..a_move("m4", 90) },
        RankedMove { support: SupportCount { supported: 0, total: 0 }, ..a_move("m5", 90) },
        RankedMove { support: SupportCount { supported: 6, total: 8 }, ..a_move("m10", 90) },
        with(a_move("m7", 90), |debated| debated.objections = major(ObjectionState::Answered)),
    ];
    let ranking = rank(moves, FindingAcceptance::These(&nobody()));
    let ids: Vec<&str> =
        ranking.recommended.iter().chain(&ranking.other).map(|one| one.move_id.as_str()).collect();
    assert_eq!(ids, ["m7", "m10", "m4", "m5", "m3", "m2", "m1"]);
}

#[test]
fn an_escalated_move_has_no_rank_until_a_reviewer_approves_it() {
    let moves = [held(a_move("m1", 110)), a_move("m2", 80), a_move("m3", 70), a_move("m4", 60)];
    let ranking = rank(moves.clone(), FindingAcceptance::These(&nobody()));
    assert_eq!(
        order(&ranking),
        (vec![("m2", Some(1)), ("m3", Some(2)), ("m4", Some(3))], vec![("m1", None)])
    );
    let approved = BTreeSet::from(["m1".to_owned()]);
    let expected = (vec![("m1", Some(1)), ("m2", Some(2)), ("m3", Some(3))], vec![("m4", Some(4))]);
    assert_eq!(order(&rank(moves.clone(), FindingAcceptance::These(&approved))), expected);
    assert_eq!(order(&rank(moves, FindingAcceptance::Every)), expected);
}

#[test]
fn a_move_with_neutral_scores_is_ranked_but_not_recommended() {
    let moves = [
        a_move("m1", 90),
        marked(a_move("m2", 85), neutral()),
        a_move("m3", 80),
        marked(a_move("m4", 70), early()),
    ];
    let ranking = rank(moves, FindingAcceptance::These(&nobody()));
    assert_eq!(
        order(&ranking),
        (vec![("m1", Some(1)), ("m3", Some(3)), ("m4", Some(4))], vec![("m2", Some(2))])
    );
}

#[test]
fn too_few_clean_moves_shorten_the_recommendation_and_add_a_note() {
    let not_debated = RankedMove { debated: None, ..a_move("m4", 0) };
    let moves = [
        held(a_move("m1", 110)),
        a_move("m2", 80),
        marked(a_move("m3", 70), neutral()),
        not_debated,
    ];
    let ranking = rank(moves, FindingAcceptance::These(&nobody()));
    assert_eq!(
        order(&ranking),
        (vec![("m2", Some(1))], vec![("m3", Some(2)), ("m1", None), ("m4", None)])
    );
    assert_eq!(
        ranking.shortfall().unwrap(),
        "1 of 3 moves are recommended (not debated: m4; held back by what code found: m1; scored with neutral 5s that nobody gave: m3)"
    );
    let asked_for_two = [a_move("m1", 80), a_move("m2", 70)];
    assert_eq!(rank(asked_for_two, FindingAcceptance::These(&nobody())).shortfall(), None);
}

#[test]
fn an_approval_after_the_end_changes_only_ranking_and_verdict() {
    let moves = [held(a_move("m1", 110)), held(a_move("m2", 80)), a_move("m3", 70)];
    let MoveRanking { recommended, other } = rank(moves, FindingAcceptance::These(&nobody()));
    let shortfall =
        MoveRanking { recommended: recommended.clone(), other: other.clone() }.shortfall();
    let ranked = ConsultResult {
        company: "Helix Instruments".to_owned(),
        sheet_sha256: None,
        recommended,
        other,
        missing: [Some("F2: rate-limited".to_owned()), shortfall].into_iter().flatten().collect(),
        do_nothing: None,
        baseline: Vec::new(),
        verdict: None,
    };
    let findings =
        vec![finding("m1", FindingSeverity::Escalate), finding("m2", FindingSeverity::Escalate)];
    let outcome = Outcome::new(findings, Conclusion::Ranked(Box::new(ranked)));

    let one = approve(&outcome, &BTreeSet::from(["m2".to_owned()]));
    assert_eq!(
        one.findings,
        [finding("m1", FindingSeverity::Escalate), finding("m2", FindingSeverity::Warn)]
    );
    let Conclusion::Ranked(ranked) = &one.conclusion else { panic!("{one:?}") };
    let ids: Vec<_> = ranked.moves().map(|one| (one.move_id.as_str(), one.rank)).collect();
    assert_eq!(ids, [("m2", Some(1)), ("m3", Some(2)), ("m1", None)]);
    assert_eq!(
        ranked.missing,
        ["F2: rate-limited", "2 of 3 moves are recommended (held back by what code found: m1)"]
    );

    let both = approve(&one, &BTreeSet::from(["m1".to_owned()]));
    let at_once = approve(&outcome, &BTreeSet::from(["m1".to_owned(), "m2".to_owned()]));
    assert_eq!(both, at_once);
    assert_eq!(both.verdict, crate::RunVerdict::Pass);
}

fn any_move() -> impl Strategy<Value = RankedMove> {
    (60_u32..64, 0_u32..3, 0_usize..3, 0_u32..3, any::<[bool; 4]>()).prop_map(
        |(total, spread, grave, supported, [is_held, is_debated, is_early, is_neutral])| {
            let mut one = with(a_move("m0", total), |debated| {
                debated.spread = spread;
                debated.objections =
                    vec![objection(ObjectionSeverity::Fatal, ObjectionState::Open); grave];
                debated.degraded.extend(is_early.then(early));
                debated.degraded.extend(is_neutral.then(neutral));
            });
            one.support = SupportCount { supported, total: 2.max(supported) };
            if !is_debated {
                one.debated = None;
            }
            if is_held { held(one) } else { one }
        },
    )
}

fn any_moves() -> impl Strategy<Value = Vec<RankedMove>> {
    proptest::collection::vec(any_move(), 0..16).prop_map(|mut moves| {
        for (number, one) in (1..).zip(&mut moves) {
            one.move_id = format!("m{number}");
        }
        moves
    })
}

proptest! {
    #[test]
    fn the_order_of_arrival_does_not_matter(moves in any_moves(), seed in any::<u64>()) {
        let mut shuffled = moves.clone();
        let mut state = seed | 1;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(
            rank(moves, FindingAcceptance::These(&nobody())),
            rank(shuffled, FindingAcceptance::These(&nobody()))
        );
    }

    #[test]
    fn every_move_is_listed_once_and_ranks_follow_the_rules(moves in any_moves()) {
        let count = moves.len();
        let ranking = rank(moves, FindingAcceptance::These(&nobody()));
        let all: Vec<&RankedMove> = ranking.recommended.iter().chain(&ranking.other).collect();
        prop_assert_eq!(all.len(), count);
        prop_assert!(ranking.recommended.len() <= RECOMMENDED);
        let clean = |one: &&RankedMove| one.rank.is_some() && !one.has_neutral_scores();
        prop_assert!(ranking.recommended.iter().all(|one| clean(&one)));
        prop_assert_eq!(
            ranking.recommended.len(),
            all.iter().copied().filter(clean).count().min(RECOMMENDED)
        );
        for one in &all {
            prop_assert_eq!(one.rank.is_some(), one.debated.is_some() && !one.is_held());
        }
        let mut placed: Vec<&RankedMove> =
            all.iter().copied().filter(|one| one.rank.is_some()).collect();
        placed.sort_by_key(|one| one.rank);
        for pair in placed.windows(2) {
            let (Some(one), Some(other)) = (&pair[0].debated, &pair[1].debated) else { continue };
            prop_assert!(one.total_score >= other.total_score);
            if one.total_score == other.total_score {
                prop_assert!(one.degraded.is_empty() || !other.degraded.is_empty());
            }
        }
    }

    #[test]
    fn an_approval_never_lowers_the_rank_of_the_approved_move(moves in any_moves()) {
        let before = rank(moves.clone(), FindingAcceptance::These(&nobody()));
        let approved = BTreeSet::from(["m1".to_owned()]);
        let after = rank(moves, FindingAcceptance::These(&approved));
        let place = |ranking: &MoveRanking| {
            let mut all = ranking.recommended.iter().chain(&ranking.other);
            all.find(|one| one.move_id == "m1").map(|one| one.rank.unwrap_or(u32::MAX))
        };
        prop_assert!(place(&after) <= place(&before));
    }
}

#[test]
fn a_move_without_all_scores_has_no_rank_and_is_named_in_the_shortfall() {
    let mut unscored = a_move("m1", 110);
    let card = Scorecard {
        scores: BTreeMap::new(),
        reasoning: String::new(),
        basis: ScoreBasis::NotScored,
    };
    unscored.debated.as_mut().unwrap().scorecards.insert("D1".to_owned(), card);
    let ranking = rank([unscored, a_move("m2", 80)], FindingAcceptance::These(&nobody()));
    assert_eq!(order(&ranking), (vec![("m2", Some(1))], vec![("m1", None)]));
    assert_eq!(
        ranking.shortfall().unwrap(),
        "1 of 2 moves are recommended (not scored by every decision maker: m1)"
    );
}
