use std::collections::BTreeSet;

use serde_json::json;

use super::support::{Ran, answers, critic, except, failed, in_form, input, run, said, scores};
use super::*;
use crate::model::{CacheDuration, ModelRequest, PromptRole};
use crate::sandbox::{SandboxFailure, SandboxFailureKind};
use crate::{Conclusion, RunVerdict};

fn entry(role: &str, content: &str, round: u32) -> DebateLogEntry {
    DebateLogEntry { role: role.to_owned(), content: content.to_owned(), round }
}

/// Design document 000 §13, unit test for critic_round_1.
#[test]
fn the_critics_opening_goes_to_all_three_logs() {
    let mut debate = Debate::new(input(10)).unwrap();
    let step = debate.start();
    let [(id, Effect::CallModel(request))] = step.perform.as_slice() else { panic!("{step:?}") };
    assert_eq!((id.as_str(), request.purpose), ("m7/round-1/critic", CallPurpose::Critic));
    let step = debate.resume(id, said(critic("It rests on one year.", &[], &[]))).unwrap();

    let opening = vec![entry("critic", "It rests on one year.", 1)];
    let logs = ["i1", "i2", "i3"].map(|name| (name.to_owned(), opening.clone()));
    assert_eq!(debate.logs(), BTreeMap::from(logs));
    let asked: Vec<&str> = step.perform.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(asked, ["m7/round-1/D1", "m7/round-1/D2", "m7/round-1/D3"]);
    let published: Vec<&str> = step.publish.iter().map(|event| event.key.as_str()).collect();
    assert_eq!(
        published,
        [
            "m7/round-1/critic:model_replied",
            "m7/round-1/critic:sandbox_turn",
            "m7/round-1:sandbox_round:critic_responded",
        ]
    );
}

/// Design document 000 §13, unit test for dm_respond.
#[test]
fn three_parallel_answers_go_to_the_logs_of_their_decision_makers() {
    let mut debate = Debate::new(input(2)).unwrap();
    let opening = debate.start().perform.remove(0).0;
    let step = debate.resume(&opening, said(critic("Why?", &[], &[]))).unwrap();
    let ids: Vec<EffectId> = step.perform.into_iter().map(|(id, _)| id).collect();
    let words = |id: &EffectId| said(answers(&format!("Words of {id}."), "hold", &[], &[]));
    for id in [&ids[2], &ids[0]] {
        let step = debate.resume(id, words(id)).unwrap();
        assert!(step.perform.is_empty(), "nobody goes on alone");
    }
    let step = debate.resume(&ids[1], words(&ids[1])).unwrap();

    let log = |seat: &str| {
        vec![entry("critic", "Why?", 1), entry(seat, &format!("Words of m7/round-1/{seat}."), 1)]
    };
    let logs = [("i1", "D1"), ("i2", "D2"), ("i3", "D3")];
    let logs = logs.map(|(name, seat)| (name.to_owned(), log(seat)));
    assert_eq!(debate.logs(), BTreeMap::from(logs));
    assert_eq!(debate.rounds_done(), 1);
    let asked: Vec<&str> = step.perform.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(asked, ["m7/round-2/critic/D1", "m7/round-2/critic/D2", "m7/round-2/critic/D3"]);
}

/// Design document 000 §13, unit test for scoring.
#[test]
fn scores_add_up_to_a_total_out_of_120() {
    let ran = run(
        input(1),
        except(&[
            ("m7/score/D1", said(scores([8, 9, 7, 8], "Growth carries it."))),
            ("m7/score/D2", said(scores([7, 8, 8, 9], "It can be done."))),
            ("m7/score/D3", said(scores([9, 8, 8, 9], "Holders gain."))),
        ]),
    );
    let debated = ran.debated();
    assert_eq!((debated.total_score, debated.top_score, debated.spread), (98, 120, 2));
    assert_eq!(
        debated.scorecards["D2"],
        Scorecard {
            scores: [
                ("impact", 7),
                ("feasibility", 8),
                ("risk_adjusted_return", 8),
                ("strategic_alignment", 9),
            ]
            .map(|(metric, score)| (metric.to_owned(), score))
            .into(),
            reasoning: "It can be done.".to_owned(),
            basis: ScoreBasis::Structured,
        }
    );
    let Some(RunEvent { key, body: RunEventBody::SandboxScored { score, out_of, breakdown, .. } }) =
        ran.events.last()
    else {
        panic!("{:?}", ran.events.last())
    };
    assert_eq!((key.as_str(), *score, *out_of), ("m7:sandbox_scored", 98, 120));
    assert_eq!(breakdown["D3"], debated.scorecards["D3"].scores);
    assert_eq!(ran.outcome.findings, []);
}

/// Design document 000 §13, integration test for the subgraph.
#[test]
fn a_full_debate_counts_its_rounds_grows_by_two_entries_each_and_ends_with_scores() {
    let ran = run(input(10), |id| said(in_form(id)));
    assert_eq!(ran.asked.len(), 61);
    assert_eq!(base_calls(10, 3), 61);
    let waves: Vec<usize> = ran.waves.iter().map(Vec::len).collect();
    assert_eq!(waves, [[1].as_slice(), &[3; 20]].concat());

    for (name, log) in ran.debate.logs() {
        let seat = name.replace('i', "D");
        let shape: Vec<(&str, u32)> =
            log.iter().map(|entry| (entry.role.as_str(), entry.round)).collect();
        let expected: Vec<(&str, u32)> =
            (1..=10).flat_map(|round| [("critic", round), (seat.as_str(), round)]).collect();
        assert_eq!(shape, expected);
    }
    let rounds: Vec<(u32, RoundStatus)> = ran
        .events
        .iter()
        .filter_map(|event| match event.body {
            RunEventBody::SandboxRound { round, status, .. } => Some((round, status)),
            _ => None,
        })
        .collect();
    let expected: Vec<(u32, RoundStatus)> = (1..=10)
        .flat_map(|round| {
            [(round, RoundStatus::CriticResponded), (round, RoundStatus::DmResponded)]
        })
        .collect();
    assert_eq!(rounds, expected);

    let debated = ran.debated();
    assert_eq!((debated.rounds, debated.rounds_done, debated.total_score), (10, 10, 78));
    assert_eq!(debated.stances.values().collect::<Vec<_>>(), [&DebateStance::Hold; 3]);
    assert_eq!((&debated.degraded, ran.outcome.verdict), (&Vec::new(), RunVerdict::Pass));
    assert_eq!(debated.objections.len(), 2 + 3 * 9);
    let keys: BTreeSet<&str> = ran.keys().into_iter().collect();
    assert_eq!(keys.len(), ran.events.len(), "every event has a key of its own");
}

#[test]
fn debate_requests_only_append_to_the_previous_ones() {
    let ran = run(input(10), |id| said(in_form(id)));
    let texts = |request: &ModelRequest| -> Vec<(PromptRole, String)> {
        request.turns.iter().map(|turn| (turn.role, turn.block.text.to_string())).collect()
    };
    let chain = |name: &dyn Fn(u32) -> String, first: u32| {
        for round in first..10 {
            let (one, next) = (ran.question(&name(round)), ran.question(&name(round + 1)));
            assert_eq!((&one.system, &one.schema), (&next.system, &next.schema));
            assert_eq!(texts(one), texts(next)[..one.turns.len()]);
            assert_eq!(next.turns.len(), one.turns.len() + 2);
        }
    };
    chain(&|round| format!("m7/round-{round}/D2"), 1);
    chain(&|round| format!("m7/round-{round}/critic/D2"), 2);
    let (opening, pressed) =
        (ran.question("m7/round-1/critic"), ran.question("m7/round-2/critic/D3"));
    assert_eq!(texts(opening), texts(pressed)[..1]);
    let (last, score) = (ran.question("m7/round-10/D1"), ran.question("m7/score/D1"));
    assert_eq!(&last.system, &score.system);
    assert_eq!(texts(last), texts(score)[..last.turns.len()]);

    for (id, request) in &ran.asked {
        let dossier = &request.system[0];
        assert_eq!(dossier.text, input(10).dossier, "{id}");
        let marks: Vec<bool> = request.blocks().map(|block| block.cache.is_some()).collect();
        let mut expected = vec![false; marks.len()];
        expected[..3].fill(true);
        *expected.last_mut().unwrap() = true;
        assert_eq!(marks, expected, "{id}");
        assert_eq!(dossier.cache, Some(CacheDuration::FiveMinutes));
        let roles: Vec<PromptRole> = request.turns.iter().map(|turn| turn.role).collect();
        let expected = [PromptRole::User, PromptRole::Assistant].into_iter().cycle();
        assert_eq!(roles, expected.take(roles.len()).collect::<Vec<_>>(), "{id}");
        assert_eq!(roles.last(), Some(&PromptRole::User));
    }
}

#[test]
fn a_malformed_debate_answer_is_requested_again_with_its_problems() {
    let bad = json!({"message": "", "objections": [], "withdrawn": []}).to_string();
    let ran = run(
        input(2),
        except(&[("m7/round-2/critic/D2", said(&bad)), ("m7/round-1/D1", said("I think so."))]),
    );
    assert_eq!(ran.asked.len(), 15);
    assert_eq!(ran.debated().degraded, []);
    let first = ran.question("m7/round-2/critic/D2");
    let again = ran.question("m7/round-2/critic/D2/ask-2");
    assert_eq!(again.turns[..first.turns.len()], first.turns);
    assert_eq!(&*again.turns[first.turns.len()].block.text, bad);
    assert!(again.turns.last().unwrap().block.text.contains("`message` is empty"));
    let about: Vec<&str> =
        ran.keys().into_iter().filter(|key| key.starts_with("m7/round-2/critic/D2")).collect();
    assert_eq!(
        about,
        [
            "m7/round-2/critic/D2:model_replied",
            "m7/round-2/critic/D2:output_rejected",
            "m7/round-2/critic/D2/ask-2:model_replied",
            "m7/round-2/critic/D2/ask-2:sandbox_turn",
        ]
    );
    // The invalid answer is not kept in the chain.
    let later = ran.question("m7/score/D1");
    assert!(later.turns.iter().all(|turn| !turn.block.text.contains("I think so.")));
}

#[test]
fn a_debate_answer_that_stays_malformed_is_kept_and_marked() {
    let ran = run(
        input(2),
        except(&[
            ("m7/round-1/critic", said("No.")),
            ("m7/round-1/critic/ask-2", said("No, and I say so [F0:Revenue:FY2025].")),
            ("m7/round-2/D2", said("Maybe.")),
            ("m7/round-2/D2/ask-2", failed(FailureKind::Overloaded)),
            ("m7/round-1/D3", said("  ")),
            ("m7/round-1/D3/ask-2", said("\u{200b}\u{7}")),
        ]),
    );
    let logs = ran.debate.logs();
    let opening = entry("critic", "No, and I say so [F0:Revenue:FY2025].", 1);
    assert_eq!(logs["i1"][0], opening);
    assert_eq!(logs["i2"][3], entry("D2", "Maybe.", 2));
    assert_eq!(logs["i3"][1], entry("D3", "(nothing was said)", 1));
    let debated = ran.debated();
    let unstructured =
        |thread: &str| DebateDegradation::Unstructured { thread: thread.to_owned(), messages: 1 };
    assert_eq!(debated.degraded, [unstructured("opening"), unstructured("D2"), unstructured("D3")]);
    // The opening's objections are unknown, so only those of the second round exist.
    assert!(debated.objections.iter().all(|objection| objection.round == 2));
    assert_eq!(ran.outcome.verdict, RunVerdict::Pass);
    let rules: Vec<String> = ran.rules().into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["debate.unstructured"; 3]);
    // The event refers to the call whose answer contains the text.
    assert!(ran.keys().contains(&"m7/round-2/D2:sandbox_turn"));
}

#[test]
fn a_thread_whose_model_fails_is_scored_on_its_completed_rounds() {
    let ran = run(
        input(4),
        except(&[
            ("m7/round-3/D2", failed(FailureKind::RateLimited)),
            ("m7/round-2/critic/D3", failed(FailureKind::Refused)),
        ]),
    );
    let debated = ran.debated();
    assert_eq!((debated.rounds, debated.rounds_done), (4, 1));
    let ended = |thread: &str, after_round, why: &str| DebateDegradation::EndedEarly {
        thread: thread.to_owned(),
        after_round,
        why: why.to_owned(),
    };
    assert_eq!(debated.degraded, [ended("D2", 2, "rate-limited"), ended("D3", 1, "refused")]);
    assert_eq!(debated.total_score, 78);
    let lengths: Vec<usize> = ran.debate.logs().values().map(Vec::len).collect();
    assert_eq!(lengths, [8, 5, 2]);
    // Scored on complete rounds: the message that D2 did not answer is not in the prompt.
    let score = ran.question("m7/score/D2");
    assert_eq!(score.turns.len(), 5);
    assert!(score.turns[4].block.text.starts_with("The debate ended after round 2 of 4."));
    assert_eq!(
        ran.rules(),
        [("debate.ended-early", "m7/D2"), ("debate.ended-early", "m7/D3")]
            .map(|(rule, subject)| (rule.to_owned(), subject.to_owned()))
    );
    assert!(ran.keys().contains(&"m7/round-4:sandbox_round:dm_responded"));
}

#[test]
fn a_thread_without_completed_rounds_is_not_scored() {
    let ran = run(input(2), except(&[("m7/round-1/D1", failed(FailureKind::TimedOut))]));
    let debated = ran.debated();
    assert_eq!(debated.scorecards["D1"].basis, ScoreBasis::NotScored);
    assert_eq!(debated.score(), None);
    assert!(!ran.asked.iter().any(|(id, _)| id == "m7/score/D1"));
    assert_eq!(
        debated.degraded,
        [
            DebateDegradation::EndedEarly {
                thread: "D1".to_owned(),
                after_round: 0,
                why: "timed-out".to_owned()
            },
            DebateDegradation::NotScored { decision_maker: "D1".to_owned() },
        ]
    );
}

#[test]
fn a_debate_without_an_opening_or_any_answer_is_not_debated() {
    #[track_caller]
    fn check(ids: &[&str], kind: FailureKind, expected: &str) -> Ran {
        let failing: Vec<(&str, EffectResult)> = ids.iter().map(|id| (*id, failed(kind))).collect();
        let ran = run(input(3), except(&failing));
        let why = expected.to_owned();
        assert_eq!(ran.outcome.conclusion, Conclusion::NotDebated { why });
        assert_eq!(ran.outcome.verdict, RunVerdict::Fail);
        assert_eq!(ran.rules(), [("debate.not-debated".to_owned(), "m7".to_owned())]);
        ran
    }
    let opening = ["m7/round-1/critic"];
    let ran = check(&opening, FailureKind::Auth, "the critic's opening failed: auth");
    assert_eq!(ran.debate.logs().values().map(Vec::len).sum::<usize>(), 0);
    check(
        &["m7/round-1/D1", "m7/round-1/D2", "m7/round-1/D3"],
        FailureKind::Server,
        "no decision maker answered the opening: server",
    );
}

#[test]
fn scores_are_requested_again_then_read_from_prose_then_missing() {
    let prose =
        "Impact (1-10): 8\nFeasibility: 7/10\nRisk-adjusted return = 6\n**Strategic Alignment**: 9";
    let ran = run(
        input(1),
        except(&[
            ("m7/score/D1", said(scores([11, 5, 5, 0], "Too much."))),
            ("m7/score/D1/ask-2", said(scores([10, 5, 5, 1], "Better."))),
            ("m7/score/D2", said("I would rather not.")),
            ("m7/score/D2/ask-2", said(prose)),
            ("m7/score/D3", said(scores([11, 5, 5, 5], "Too much."))),
            ("m7/score/D3/ask-2", said("Everything is fine: 8 of 10.")),
        ]),
    );
    let again = ran.question("m7/score/D1/ask-2").turns.last().unwrap().block.text.to_string();
    assert!(again.contains("`scores.impact` is 11; it is from 1 to 10"), "{again}");
    assert!(again.contains("`scores.strategic_alignment` is 0; it is from 1 to 10"), "{again}");
    let cards = &ran.debated().scorecards;
    let got: Vec<(u32, ScoreBasis)> = cards.values().map(|card| (card.sum(), card.basis)).collect();
    assert_eq!(
        got,
        [(21, ScoreBasis::Structured), (30, ScoreBasis::FromText), (0, ScoreBasis::NotScored)]
    );
    assert!(cards["D2"].reasoning.starts_with("Impact (1-10): 8 Feasibility"));
    assert_eq!(
        ran.debated().degraded,
        [
            DebateDegradation::ScoreFromText { decision_maker: "D2".to_owned() },
            DebateDegradation::NotScored { decision_maker: "D3".to_owned() },
        ]
    );
}

#[test]
fn missing_scores_are_not_scored_and_in_the_first_revision_neutral() {
    let answers = [
        ("m7/score/D1", failed(FailureKind::Overloaded)),
        ("m7/score/D2", said("{}")),
        ("m7/score/D2/ask-2", failed(FailureKind::Overloaded)),
    ];
    let bases = |input: DebateInput| {
        let debated = run(input, except(&answers)).debated().clone();
        let bases: Vec<ScoreBasis> = debated.scorecards.values().map(|card| card.basis).collect();
        (bases, debated.score())
    };
    use ScoreBasis::{Neutral, NotScored, Structured};
    assert_eq!(bases(input(1)), (vec![NotScored, NotScored, Structured], None));
    let mut first = input(1);
    first.calls.prompts = crate::PromptRevision::V1;
    assert_eq!(bases(first), (vec![Neutral, Neutral, Structured], Some(66)));
}

#[test]
fn a_concession_without_new_evidence_is_noted() {
    let cited = json!({
        "message": "Look at this.", "withdrawn": [],
        "objections": [{"id": "new", "severity": "fatal", "text": "It shrank.",
                        "evidence": ["F0:Revenue:FY2024"]}],
    });
    let ran = run(
        input(3),
        except(&[
            ("m7/round-1/critic", said(cited.to_string())),
            // New evidence was cited with the objection.
            ("m7/round-1/D1", said(answers("Granted.", "partial", &[], &["O1"]))),
            // Nothing new was cited.
            ("m7/round-2/D2", said(answers("You win [F0:Revenue:FY2024].", "concede", &[], &[]))),
            ("m7/round-3/D2", said(answers("As I said.", "concede", &[], &["d2-o1"]))),
            ("m7/round-3/D3", said(answers("Well.", "hold", &[], &["nobody raised this"]))),
        ]),
    );
    let notes: Vec<(&str, &str)> = ran
        .outcome
        .findings
        .iter()
        .map(|finding| (finding.subject.as_str(), finding.message.as_str()))
        .collect();
    let nothing = "and nothing new was cited in this round";
    assert_eq!(
        notes,
        [
            ("m7/round-2/D2", &*format!("D2 concedes the move, {nothing}")),
            ("m7/round-3/D2", &*format!("D2 concedes D2-O1, {nothing}")),
        ]
    );
    assert_eq!(ran.outcome.verdict, RunVerdict::Pass);
    let states: Vec<(&str, ObjectionState, Vec<&str>)> = ran
        .debated()
        .objections
        .iter()
        .filter(|objection| ["O1", "D2-O1"].contains(&objection.id.as_str()))
        .map(|objection| {
            let open_in = objection.open_in.iter().map(String::as_str).collect();
            (objection.id.as_str(), objection.state, open_in)
        })
        .collect();
    assert_eq!(
        states,
        [
            ("O1", ObjectionState::Conceded, vec!["D1", "D2", "D3"]),
            ("D2-O1", ObjectionState::Conceded, vec!["D2"]),
        ]
    );
    assert_eq!(ran.debated().hardest_open().unwrap().id, "O1");
}

#[test]
fn a_turn_event_has_an_excerpt_the_stance_and_the_citations() {
    let long = format!("We grew\u{202e} [F0:Revenue:FY2025; E0:1-25-1].\n\n{}", "word ".repeat(60));
    let turn = json!({
        "message": long, "stance": "partial", "conceded": [], "scores": null,
        "answers": [{"objection": "O1", "evidence": ["[T0:1-25-1:1A:3]", "see above"]}],
    });
    let ran = run(input(1), except(&[("m7/round-1/D2", said(turn.to_string()))]));
    let told = ran.events.iter().find(|event| event.key == "m7/round-1/D2:sandbox_turn").unwrap();
    let RunEventBody::SandboxTurn { thread, round, role, preview, stance, cites, .. } = &told.body
    else {
        panic!("{told:?}")
    };
    assert_eq!((thread.as_str(), *round, role.as_str()), ("D2", 1, "D2"));
    assert!(preview.starts_with("We grew [F0:Revenue:FY2025; E0:1-25-1]. word word"), "{preview}");
    assert_eq!((preview.chars().count(), preview.ends_with('…')), (160, true));
    assert_eq!(*stance, Some(DebateStance::Partial));
    assert_eq!(cites, &["F0:Revenue:FY2025", "E0:1-25-1", "T0:1-25-1:1A:3"]);
}

#[test]
fn the_state_of_a_debate_can_be_read_at_any_time() {
    let mut debate = Debate::new(input(2)).unwrap();
    assert_eq!(debate.debated().objections, []);
    let opening = debate.start().perform.remove(0).0;
    let step = debate.resume(&opening, said(in_form(opening.as_str()))).unwrap();
    let (first, _) = &step.perform[0];
    let _ = debate.resume(first, said(answers("Yes.", "partial", &["O1"], &[]))).unwrap();
    let debated = debate.debated();
    assert_eq!((debated.rounds_done, debated.total_score, debated.top_score), (0, 0, 120));
    assert_eq!(debated.stances, BTreeMap::from([("D1".to_owned(), DebateStance::Partial)]));
    assert_eq!(debated.objections[0].open_in, ["D2", "D3"]);
    assert!(debated.scorecards.is_empty());
}

#[test]
fn an_unexpected_result_does_not_change_a_debate() {
    let mut debate = Debate::new(input(1)).unwrap();
    let opening = debate.start().perform.remove(0).0;
    assert_eq!(debate.start(), Step::default());
    let other = EffectResult::NotExecuted(SandboxFailure {
        kind: SandboxFailureKind::Lost,
        detail: String::new(),
    });
    let error = debate.resume(&opening, other).unwrap_err().to_string();
    assert_eq!(
        error,
        "unexpected result `not_executed` for effect `m7/round-1/critic` while the workflow is waiting for the opening"
    );
    let unknown: EffectId = "m7/round-1/D1".parse().unwrap();
    debate.resume(&unknown, said("{}")).unwrap_err();
    let step = debate.resume(&opening, said(in_form("m7/round-1/critic"))).unwrap();
    assert_eq!(step.perform.len(), 3);
    debate.resume(&opening, said(in_form("m7/round-1/critic"))).unwrap_err();
}

#[test]
fn a_debate_works_with_a_small_committee() {
    let mut small = input(1);
    small.decision_makers.truncate(1);
    small.metrics.truncate(1);
    let score = json!({
        "message": "", "stance": "hold", "answers": [], "conceded": [],
        "scores": {"impact": 3, "reasoning": "Little."},
    });
    let ran = run(small, except(&[("m7/score/D1", said(score.to_string()))]));
    assert_eq!(ran.waves, [["m7/round-1/critic"], ["m7/round-1/D1"], ["m7/score/D1"]]);
    assert_eq!((ran.debated().total_score, ran.debated().top_score), (3, 10));
    assert_eq!(base_calls(1, 1), 3);
}
