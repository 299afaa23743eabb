use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use proptest::prelude::*;

use super::super::support::*;
use super::super::{
    ConsultInput, ConsultOptions, MoveApproval, RoleModels, VERDICT_APPROVAL, VerdictMode,
    VerdictRequest, calls, settle,
};
use super::*;
use crate::child::ChildRequest;
use crate::debate::{DebateStance, Objection, ObjectionSeverity, ObjectionState, base_calls};
use crate::model::{CallPurpose, ModelName, ModelRequest};
use crate::verdict::{PanelCheck, VerdictTier};
use crate::{Conclusion, EffectId, EffectResult, FindingSeverity, Outcome, RunVerdict};

/// The board with a panel, doing nothing and this many rounds.
fn with_panel(mode: VerdictMode, rounds: u32) -> ConsultInput {
    let mut input = input();
    input.terms = ConsultOptions { do_nothing: true, ..ConsultOptions::default() };
    input.committee.rounds = rounds;
    let request = VerdictRequest { mode: Some(mode), ..VerdictRequest::default() };
    input.committee.request_verdict(&request).unwrap();
    input
}

/// Without an early stop.
fn full() -> ConsultInput {
    let mut input = with_panel(VerdictMode::Full, 4);
    input.committee.verdict.as_mut().unwrap().stop_at = 1;
    input
}

/// Titles of the moves, worst first: the first letter is their quality.
fn quality(case: &str) -> u8 {
    let title = case.lines().find_map(|line| line.strip_prefix("Title: ")).unwrap();
    match title {
        _ if title.starts_with("Do nothing") => 5,
        _ if title.contains(' ') => 2,
        word => 3 + (word.as_bytes()[0] - b'a') / 3,
    }
}

/// Sees what is in a case, and deducts what a weakened copy lacks.
fn good_judge(_: &EffectId, request: &ModelRequest) -> EffectResult {
    let case = &request.turns[0].block.text;
    let deduction = if case.contains("Kill criteria: none given") { 2 } else { 0 };
    scores((quality(case) - deduction).max(1))
}

/// Prefers what a good judge rejects.
fn bad_judge(_: &EffectId, request: &ModelRequest) -> EffectResult {
    let case = &request.turns[0].block.text;
    let bonus = if case.contains("Kill criteria: none given") { 2 } else { 0 };
    scores(8 - quality(case).min(7) + bonus)
}

fn child(input: &DebateInput) -> EffectResult {
    let EffectResult::ChildEnded(mut end) = debated(input, 5) else { unreachable!() };
    if let Conclusion::Debated(result) = &mut end.outcome.conclusion
        && input.scoring == DebateScoring::Panel
    {
        (result.scorecards, result.total_score) = (BTreeMap::new(), 0);
    }
    EffectResult::ChildEnded(end)
}

fn judged(
    input: ConsultInput,
    judge: impl Fn(&EffectId, &ModelRequest) -> EffectResult,
    next: impl FnMut(usize) -> usize,
) -> Ran {
    drive(
        input,
        |id, effect| match effect {
            Effect::CallModel(request) if request.purpose == CallPurpose::PanelScore => {
                judge(id, request)
            }
            Effect::StartChild(ChildRequest::Debate(input)) => child(input),
            _ => well(id, effect),
        },
        next,
    )
}

/// Model calls of a run, with those of its debates.
fn calls_made(ran: &Ran) -> u32 {
    let call = |effect: &Effect| match effect {
        Effect::CallModel(_) => 1,
        Effect::StartChild(ChildRequest::Debate(input)) => {
            let makers = u32::try_from(input.decision_makers.len()).unwrap();
            let scores = if input.scoring == DebateScoring::Panel { makers } else { 0 };
            base_calls(input.rounds, makers) - scores
        }
        _ => 0,
    };
    ran.asked.values().map(call).sum()
}

fn verdict(ran: &Ran) -> &PanelVerdict {
    ran.ranked().verdict.as_deref().unwrap()
}

fn tier(verdict: &PanelVerdict, tier: VerdictTier) -> Vec<String> {
    verdict.tiers.tier(tier).into_iter().map(|one| one.move_id.clone()).collect()
}

#[test]
fn the_estimate_has_the_published_numbers_of_calls() {
    assert_eq!(calls(&with_panel(VerdictMode::Full, 10)), 1_548);
    assert_eq!(calls(&with_panel(VerdictMode::Full, 4)), 1_008);
    assert_eq!(calls(&with_panel(VerdictMode::Panel, 10)), 1_116);
    assert_eq!(calls(&with_panel(VerdictMode::Panel, 4)), 576);
    assert_eq!(calls(&with_panel(VerdictMode::Off, 10)), 925);
}

#[test]
fn a_run_without_an_early_stop_makes_exactly_the_estimated_calls() {
    let panel = |rounds| with_panel(VerdictMode::Panel, rounds);
    for input in [full(), panel(4), panel(10), with_panel(VerdictMode::Off, 10)] {
        // Members disagree, so that more than one move leads.
        let noisy = |id: &EffectId, request: &ModelRequest| {
            let member = id.as_str().rsplit('/').next().unwrap().as_bytes()[1];
            let case = &request.turns[0].block.text;
            let weak = if case.contains("Kill criteria: none given") { 2 } else { 0 };
            let taste = (case.len() as u8).wrapping_mul(member) % 3;
            scores((quality(case) + taste).saturating_sub(1 + weak).clamp(1, 10))
        };
        let ran = judged(input.clone(), noisy, |_| 0);
        assert_eq!(calls_made(&ran), calls(&input));
    }
}

#[test]
fn the_stages_debate_the_best_moves_again_and_stop_when_few_lead() {
    let ran = judged(full(), good_judge, |_| 0);
    let again: Vec<&str> =
        ran.asked.keys().filter(|id| id.matches('/').count() == 1).map(String::as_str).collect();
    let again: Vec<&str> =
        again.into_iter().filter(|id| id.contains("/d") && !id.contains("panel")).collect();
    // Moves 7 to 9 have the same quality: lower numbers come first.
    let best_eight = [7, 8, 10, 11, 12, 13, 14, 15].map(|number| format!("m{number}/d2"));
    let best_eight = BTreeSet::from(best_eight);
    let second: BTreeSet<String> =
        again.iter().filter(|id| id.ends_with("/d2")).map(|id| (*id).to_owned()).collect();
    assert_eq!(second, best_eight);
    let stopped = judged(with_panel(VerdictMode::Full, 4), good_judge, |_| 0);
    assert!(calls_made(&stopped) <= calls(&full()));
    assert!(tier(verdict(&stopped), VerdictTier::Lead).contains(&"m15".to_owned()));
    let debate = ran.debate("m15/d2");
    assert_eq!((debate.rounds, debate.scoring), (4, DebateScoring::Panel));
    assert_eq!(ran.debate("m15").scoring, DebateScoring::DefendersAndPanel);
}

#[test]
fn the_order_of_replies_changes_nothing() {
    let one = judged(with_panel(VerdictMode::Full, 4), good_judge, |_| 0);
    let other = judged(with_panel(VerdictMode::Full, 4), good_judge, |open| open - 1);
    let mut state = 7_usize;
    let third = judged(with_panel(VerdictMode::Full, 4), good_judge, |open| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % open
    });
    assert_eq!(one.outcome, other.outcome);
    assert_eq!(one.outcome, third.outcome);
    assert_eq!(one.asked, third.asked);
}

#[test]
fn a_good_panel_passes_its_controls_and_its_lead_is_recommended() {
    let ran = judged(full(), good_judge, |_| 0);
    let verdict = verdict(&ran);
    assert_eq!(verdict.tiers.controls.check, PanelCheck::Passed, "{:?}", verdict.tiers.controls);
    assert_eq!(verdict.tiers.controls.results.len(), 5);
    let recommended: Vec<&str> =
        ran.ranked().recommended.iter().map(|one| one.move_id.as_str()).collect();
    let lead = tier(verdict, VerdictTier::Lead);
    assert!(!recommended.is_empty() && recommended.iter().all(|id| lead.contains(&(*id).into())));
    assert_eq!(ran.outcome.verdict, RunVerdict::Pass);
    assert_eq!(verdict.tiers.panel, PanelLabel::SingleModel);
    assert!(ran.ranked().close_calls().is_empty());
}

#[test]
fn a_panel_that_fails_its_controls_recommends_nothing_until_a_person_approves() {
    let ran = judged(full(), bad_judge, |_| 0);
    assert!(verdict(&ran).is_failed());
    assert!(ran.ranked().recommended.is_empty());
    assert_eq!(ran.outcome.verdict, RunVerdict::NeedsPerson);
    assert!(ran.rules().contains(&"Escalate panel.control-missed verdict".to_owned()));
    // More debates cannot repair it.
    assert!(!ran.asked.keys().any(|id| id.ends_with("/d2")));
    assert_eq!(ran.ranked().check_verdict_needs_approval(&[]), Ok(()));
    let approval = MoveApproval {
        move_id: VERDICT_APPROVAL.to_owned(),
        by: "ada".to_owned(),
        note: String::new(),
        at_ms: 1,
    };
    let approved = settle(ran.outcome, &[approval]);
    let Conclusion::Ranked(ranked) = &approved.conclusion else { panic!() };
    assert!(!ranked.recommended.is_empty());
    assert!(ranked.verdict.as_ref().is_some_and(|verdict| verdict.approved && verdict.is_failed()));
    assert_eq!(approved.verdict, RunVerdict::Pass);
    let severity = |outcome: &Outcome| {
        let mut found = outcome.findings.iter();
        found.find(|one| one.rule.to_string() == "panel.control-missed").map(|one| one.severity)
    };
    assert_eq!(severity(&approved), Some(FindingSeverity::Warn));
}

#[test]
fn a_move_that_is_held_back_is_scored_but_in_no_tier_until_it_is_approved() {
    let wrong = claiming("orchards", "Revenue was $9,999 million in FY2025 [F0:Revenue:FY2025].");
    let moves_of_five = moves([proposal("mountain"), proposal("notebook"), wrong.clone()]);
    let ran = drive(
        full(),
        |id, effect| match (id.as_str(), effect) {
            ("analyst_5", _) => moves_of_five.clone(),
            ("m15/rewrite", _) => moves([wrong.clone()]),
            (_, Effect::CallModel(request)) if request.purpose == CallPurpose::PanelScore => {
                good_judge(id, request)
            }
            (_, Effect::StartChild(ChildRequest::Debate(input))) => child(input),
            _ => well(id, effect),
        },
        |_| 0,
    );
    let held = verdict(&ran).estimate("m15").unwrap();
    assert_eq!((held.tier, held.kind), (None, CaseKind::HeldMove));
    assert!(ran.asked.contains_key("m15/d2"), "it takes part in the repeats");
    let approval =
        MoveApproval { move_id: "m15".into(), by: "ada".into(), note: String::new(), at_ms: 1 };
    let approved = settle(ran.outcome.clone(), &[approval]);
    let Conclusion::Ranked(ranked) = &approved.conclusion else { panic!() };
    let found = ranked.verdict.as_ref().unwrap().estimate("m15").unwrap();
    assert_eq!(found.tier, Some(VerdictTier::Lead));
}

#[test]
fn a_member_without_usable_scores_is_left_out_and_never_counts_as_neutral() {
    let silent = |id: &EffectId, request: &ModelRequest| match id.as_str().contains("panel/P2") {
        true => said("I would rather not."),
        false => good_judge(id, request),
    };
    let ran = judged(full(), silent, |_| 0);
    let verdict = verdict(&ran);
    assert_eq!(verdict.tiers.members_with_missing_cards, ["P2".to_owned()].into());
    let own = verdict.record.cards.iter().filter(|card| card.member == "P2");
    assert!(
        own.clone().count() > 15 && own.into_iter().all(|card| card.scorecard.scores.is_empty())
    );
    assert!(ran.rules().contains(&"Warn panel.card-missing P2".to_owned()));
    assert!(ran.asked.contains_key("m1/d1/panel/P2/ask-2"), "it is asked again once");
}

#[test]
fn cases_hide_who_spoke_and_whether_they_are_controls() {
    let ran = judged(full(), good_judge, |_| 0);
    let cases = ran.asked.iter().filter_map(|(id, effect)| match effect {
        Effect::CallModel(request) if request.purpose == CallPurpose::PanelScore => {
            Some((id, request))
        }
        _ => None,
    });
    let mut count = 0;
    for (id, request) in cases {
        let case = &request.turns[0].block.text;
        for word in ["analyst", "gpt", "openai", "D1", "D2", "control", "weakened", "m7"] {
            assert!(!case.contains(word), "{id} has `{word}`: {case}");
        }
        assert_eq!(request.turns.len(), 1);
        count += 1;
    }
    assert!(count > 100);
    // Speakers in the debate of a planted move cannot tell either.
    let planted = ran.debate("control-1");
    assert!(planted.move_markdown.starts_with("# m16: "), "{}", planted.move_markdown);
}

#[test]
fn every_stage_publishes_its_verdict_and_later_ones_replace_it() {
    let ran = judged(full(), good_judge, |_| 0);
    let keys = ran.keys();
    let stages = keys.iter().filter(|key| key.ends_with(":verdict_updated")).count();
    assert_eq!(u32::try_from(stages).unwrap(), verdict(&ran).stages);
    assert!(stages >= 2);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

#[test]
fn the_event_of_a_verdict_has_the_score_of_every_control() {
    let ran = judged(full(), good_judge, |_| 0);
    let scores = ran.events.iter().rev().find_map(|event| match &event.body {
        RunEventBody::VerdictUpdated { control_scores, .. } => Some(control_scores),
        _ => None,
    });
    let scores = scores.unwrap();
    let verdict = verdict(&ran);
    let ids: BTreeSet<&String> = scores.keys().collect();
    assert_eq!(ids, verdict.tiers.controls.results.iter().map(|one| &one.id).collect());
    // A judge gives planted moves 2 of 10 for every metric.
    assert_eq!(scores["control-1"], 240, "{scores:?}");
}

#[test]
fn too_few_moves_have_scores_but_no_tiers() {
    let mut input = full();
    input.moves = Some(3);
    let ran = judged(input.clone(), good_judge, |_| 0);
    let verdict = verdict(&ran);
    assert!(verdict.tiers.estimates.iter().all(|one| one.tier.is_none()));
    assert_eq!(ran.ranked().recommended.len(), 3);
    assert!(calls_made(&ran) <= calls(&input));
}

/// What must not change a case.
#[derive(Debug, Clone)]
struct Surroundings {
    /// Who proposes which titles: the moves start at another analyst's first title.
    shift: usize,
    /// Which moves there are beside the first.
    others: usize,
    model: String,
    maker: String,
    score: u8,
    stance: DebateStance,
    /// A text of the objections that names a member and a model.
    said: String,
}

/// The cases of first debates, as the first member reads them.
fn cases_within(around: &Surroundings) -> BTreeSet<String> {
    let mut input = with_panel(VerdictMode::Panel, 1);
    input.committee.verdict.as_mut().unwrap().controls.weakened = 0;
    (input.moves, input.terms.do_nothing) = (Some(5), true);
    input.committee.panel.truncate(3);
    input.models = RoleModels::all(around.model.parse::<ModelName>().unwrap());
    input.committee.decision_makers[0].name.clone_from(&around.maker);
    let objection = Objection {
        id: format!("O{}", 1 + around.shift),
        severity: ObjectionSeverity::Major,
        text: around.said.replace("MAKER", &around.maker).replace("MODEL", &around.model),
        evidence: Vec::new(),
        round: 1 + u32::from(around.score),
        state: ObjectionState::Open,
        open_in: vec!["D2".to_owned()],
        reply: None,
    };
    let ran = drive(
        input,
        |id, effect| match effect {
            Effect::CallModel(request) if request.purpose == CallPurpose::Analyst => {
                let number: usize = id.as_str()["analyst_".len()..].parse().unwrap();
                let title = match (number - 1 + around.shift) % 5 {
                    0 => 0,
                    other => other + around.others,
                };
                moves([proposal(WORDS[title])])
            }
            Effect::CallModel(request) if request.purpose == CallPurpose::PanelScore => {
                good_judge(id, request)
            }
            Effect::StartChild(ChildRequest::Debate(input)) => {
                let EffectResult::ChildEnded(mut end) = debated(input, around.score) else {
                    unreachable!()
                };
                let Conclusion::Debated(result) = &mut end.outcome.conclusion else {
                    unreachable!()
                };
                result.objections = vec![objection.clone()];
                result.stances.insert("D1".to_owned(), around.stance);
                EffectResult::ChildEnded(end)
            }
            _ => well(id, effect),
        },
        |_| 0,
    );
    let cases = ran.asked.iter().filter(|(id, _)| id.ends_with("/d1/panel/P1"));
    let text = |(id, _): (&String, &Effect)| ran.question(id).turns[0].block.text.to_string();
    cases.map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Author, number, model, names, scores and stances of defenders, and the other moves.
    #[test]
    fn nothing_around_a_case_changes_one_byte_of_it(
        shift in 0_usize..5,
        others in 0_usize..=10,
        model in "[a-z]{4,9}-[0-9]{1,2}",
        maker in "[A-Z][a-z]{3,8} [A-Z][a-z]{3,8}",
        score in 1_u8..=10,
        stance in prop::sample::select(vec![
            DebateStance::Hold, DebateStance::Partial, DebateStance::Concede,
        ]),
    ) {
        let said = "Says MAKER, with MODEL: nobody asked for it.".to_owned();
        let plain = Surroundings {
            shift: 0,
            others: 0,
            model: "openai/gpt-5-mini".to_owned(),
            maker: "Growth Strategist".to_owned(),
            score: 5,
            stance: DebateStance::Hold,
            said: said.clone(),
        };
        static PLAIN: OnceLock<BTreeSet<String>> = OnceLock::new();
        let expected = PLAIN.get_or_init(|| cases_within(&plain));
        let model = format!("openai/{model}");
        let (own_model, own_maker) = (model.clone(), maker.clone());
        let changed =
            Surroundings { shift, others, model: own_model, maker: own_maker, score, stance, said };
        let found = cases_within(&changed);
        prop_assert_eq!(found.len(), 5 + 3);
        let of_first = |cases: &BTreeSet<String>| -> Vec<String> {
            cases.iter().filter(|case| case.contains(WORDS[0])).cloned().collect()
        };
        prop_assert!(!of_first(&found).is_empty());
        prop_assert_eq!(of_first(&found), of_first(expected));
        prop_assert_eq!(&found == expected, others == 0);
        let names = [model.as_str(), &model["openai/".len()..], maker.as_str()];
        prop_assert!(!found.iter().any(|case| names.iter().any(|name| case.contains(name))));
    }
}

#[test]
fn repeated_passes_are_pooled_and_judges_without_noise_agree_with_themselves() {
    let mut input = full();
    input.committee.verdict.as_mut().unwrap().repeat = 3;
    let ran = judged(input.clone(), good_judge, |_| 0);
    let verdict = verdict(&ran);
    let stability = verdict.stability.unwrap();
    assert_eq!((stability.verdicts, stability.top3_overlap, stability.tau), (3, 1_000, 1_000));
    assert_eq!((stability.contradictions, stability.text()), (0, "repeatable"));
    assert!(ran.asked.contains_key("r3/m15/d2") && ran.asked.contains_key("r2/m1/d1/panel/P1"));
    assert_eq!(ran.debate("r2/m1").rounds, 4);
    assert_eq!(ran.debate("r2/m1").scoring, DebateScoring::Panel);
    let once = judged(full(), good_judge, |_| 0);
    let debates =
        |ran: &Ran, id: &str| ran.ranked().verdict.as_ref().unwrap().estimate(id).unwrap().debates;
    assert_eq!(debates(&ran, "m15"), 3 * debates(&once, "m15"));
    assert_eq!(verdict.record.controls.len(), 5);
    assert!(calls_made(&ran) <= calls(&input));
    let keys = ran.keys();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

#[test]
fn a_failed_panel_ends_the_repeats() {
    let mut input = full();
    input.committee.verdict.as_mut().unwrap().repeat = 3;
    let ran = judged(input, bad_judge, |_| 0);
    assert!(!ran.asked.keys().any(|id| id.starts_with("r2/")));
    assert_eq!(verdict(&ran).stability, None);
    assert!(verdict(&ran).is_failed());
}
