use super::*;
use crate::consult::support::{Ran, claiming, drive, input, moves, small_input, well};
use crate::consult::{
    ConsultOptions, Proposal, ReviewAction, RoleModels, VerdictMode, VerdictRequest, estimate,
};
use crate::report::{DeriveFault, derive};
use crate::{RunEvent, RunEventBody};

const WRONG: &str = "Revenue was $1,350 million in FY2025 [F0:Revenue:FY2025].";
const RIGHT: &str = "Revenue was $1,250 million in FY2025 [F0:Revenue:FY2025].";

type Journal = BTreeMap<EffectId, EffectRecord>;

fn parent_id() -> RunId {
    "01a1dd22-30af-720e-bd62-e1beb0920949".parse().unwrap()
}

fn model(name: &str) -> ModelList {
    name.parse().unwrap()
}

/// Runs a consultation and records its journal. The second move needs a rewrite.
fn recorded(input: ConsultInput) -> (Ran, Journal) {
    let mut journal = Journal::new();
    let ran = drive(
        input,
        |id, effect| {
            let result = match id.as_str() {
                "analyst_2" => moves([claiming("bicycles", WRONG)]),
                "m2/rewrite" => moves([claiming("bicycles", RIGHT)]),
                _ => well(id, effect),
            };
            let request_sha256 = effect.request_hash().unwrap();
            journal.insert(id.clone(), EffectRecord { request_sha256, result: result.clone() });
            result
        },
        |_| 0,
    );
    (ran, journal)
}

fn request(from: ForkPoint, input: ConsultInput) -> ForkRequest {
    ForkRequest { parent: parent_id(), from, input, edits: Vec::new() }
}

fn with_critic(input: &ConsultInput) -> ConsultInput {
    let models = RoleModels { critic: Some(model("openai/gpt-5")), ..input.models.clone() };
    ConsultInput { models, ..input.clone() }
}

/// Executes a fork and returns the effects that it performed itself.
fn execute(fork: &Fork) -> (Ran, Vec<String>) {
    let mut performed = Vec::new();
    let ran = drive(
        fork.input.clone(),
        |id, effect| match fork.effects.get(id) {
            Some(record) => {
                assert_eq!(record.request_sha256, effect.request_hash().unwrap(), "{id}");
                record.result.clone()
            }
            None => {
                performed.push(id.to_string());
                well(id, effect)
            }
        },
        |_| 0,
    );
    (ran, performed)
}

fn ids(effects: &Journal) -> Vec<&str> {
    effects.keys().map(EffectId::as_str).collect()
}

fn edit(move_id: &str) -> ReviewChange {
    let proposal = claiming("cinnamon", "Buyers want more of it.");
    let proposal: Proposal = serde_json::from_value(proposal).unwrap();
    let what = ReviewAction::Edit { move_id: move_id.to_owned(), proposal };
    ReviewChange { by: "Ada".to_owned(), at_ms: 7, what }
}

#[test]
fn a_fork_from_the_debates_reuses_everything_before_them() {
    let (_, journal) = recorded(small_input());
    let forked =
        fork(&small_input(), &journal, request(ForkPoint::Debates, with_critic(&small_input())));
    let forked = forked.unwrap();
    assert_eq!(
        ids(&forked.effects),
        ["F1", "F2", "analyst_1", "analyst_2", "gather", "m2/rewrite"]
    );
    let (ran, performed) = execute(&forked);
    assert_eq!(performed, ["m1", "m2"]);
    assert_eq!(ran.debate("m1").critic_model, model("openai/gpt-5"));
    assert_eq!(ran.ranked().moves().count(), 2);
}

#[test]
fn a_fork_from_the_moves_proposes_them_again() {
    let (_, journal) = recorded(small_input());
    let brief = Some("Only moves without new debt.".to_owned());
    let terms = ConsultOptions { brief, ..ConsultOptions::default() };
    let changed = ConsultInput { terms, ..small_input() };
    let forked = fork(&small_input(), &journal, request(ForkPoint::Moves, changed)).unwrap();
    assert_eq!(ids(&forked.effects), ["F1", "F2", "gather"]);
    let (_, performed) = execute(&forked);
    assert_eq!(performed, ["analyst_1", "analyst_2", "m1", "m2"]);
}

#[test]
fn a_fork_can_be_forked() {
    let (_, mut journal) = recorded(small_input());
    let first = request(ForkPoint::Moves, small_input());
    let first = fork(&small_input(), &journal, first).unwrap();
    journal.extend(first.effects.clone());
    let second = fork(&first.input, &journal, request(ForkPoint::Debates, first.input.clone()));
    assert_eq!(second.unwrap().effects.len(), 6);
}

#[test]
fn inherited_replies_are_neither_counted_nor_estimated() {
    let (_, journal) = recorded(small_input());
    let forked = fork(&small_input(), &journal, request(ForkPoint::Debates, small_input()));
    let forked = forked.unwrap();
    let (ran, _) = execute(&forked);
    let replied = |event: &&RunEvent| matches!(event.body, RunEventBody::ModelReplied { .. });
    assert_eq!(ran.events.iter().filter(replied).count(), 0);
    let calls = |input: &ConsultInput| estimate(input, None).all_calls();
    assert_eq!(calls(&small_input()) - calls(&forked.input), 4);
    let from_moves = fork(&small_input(), &journal, request(ForkPoint::Moves, small_input()));
    assert_eq!(calls(&small_input()) - calls(&from_moves.unwrap().input), 2);
}

#[test]
fn only_the_models_of_later_stages_are_called() {
    let models = RoleModels {
        inference: Some(model("openai/a")),
        analyst: Some(model("openai/b")),
        ..RoleModels::all(model("openai/c"))
    };
    let input = ConsultInput { models, ..small_input() };
    let count = |from| input.models_from(from).len();
    assert_eq!(count(None), 3);
    assert_eq!(count(Some(ForkPoint::Moves)), 2);
    assert_eq!(count(Some(ForkPoint::Debates)), 1);
}

#[test]
fn a_change_of_an_earlier_stage_is_refused_and_the_possible_point_named() {
    let (_, journal) = recorded(small_input());
    let refused = |from, input: ConsultInput| {
        fork(&small_input(), &journal, request(from, input)).unwrap_err()
    };
    let brief = Some("Grow.".to_owned());
    let briefed = ConsultInput {
        terms: ConsultOptions { brief, ..ConsultOptions::default() },
        ..small_input()
    };
    let altered = |from, effect: &str, possible| ForkFault::Altered {
        from,
        effect: effect.parse().unwrap(),
        possible,
    };
    assert_eq!(
        refused(ForkPoint::Debates, briefed),
        altered(ForkPoint::Debates, "analyst_1", Some(ForkPoint::Moves))
    );
    let mut models = small_input().models;
    models.inference = Some(model("openai/gpt-5"));
    let inferred = ConsultInput { models, ..small_input() };
    for from in [ForkPoint::Moves, ForkPoint::Debates] {
        assert_eq!(refused(from, inferred.clone()), altered(from, "F1", None));
    }
    let mut renamed = small_input();
    renamed.committee.analysts[0].id = "scout".to_owned();
    assert_eq!(
        refused(ForkPoint::Debates, renamed),
        altered(ForkPoint::Debates, "scout", Some(ForkPoint::Moves))
    );
}

#[test]
fn a_run_that_stopped_before_the_fork_point_is_refused() {
    let (_, mut journal) = recorded(small_input());
    journal.remove(&"m2/rewrite".parse::<EffectId>().unwrap());
    let forked = |journal: &Journal, from| {
        fork(&small_input(), journal, request(from, small_input())).map(drop)
    };
    let not_reached = |from| Err(ForkFault::NotReached { from });
    assert_eq!(forked(&journal, ForkPoint::Debates), not_reached(ForkPoint::Debates));
    assert_eq!(forked(&journal, ForkPoint::Moves), Ok(()));
    journal.remove(&"F2".parse::<EffectId>().unwrap());
    assert_eq!(forked(&journal, ForkPoint::Moves), not_reached(ForkPoint::Moves));
}

#[test]
fn an_edited_move_is_debated_with_its_new_text() {
    let (_, journal) = recorded(small_input());
    let edits = vec![edit("m2")];
    let edited = ForkRequest { edits, ..request(ForkPoint::Debates, small_input()) };
    let forked = fork(&small_input(), &journal, edited).unwrap();
    assert_eq!(forked.effects.len(), 6);
    let (ran, performed) = execute(&forked);
    assert_eq!(performed, ["m1", "m2"]);
    assert!(ran.debate("m2").move_markdown.contains("cinnamon"));
    assert!(!ran.debate("m1").move_markdown.contains("cinnamon"));
}

#[test]
fn an_edit_extends_the_review_of_the_parent() {
    let terms = ConsultOptions { pause_after_moves: true, ..ConsultOptions::default() };
    let reviewed = ConsultInput { terms, ..small_input() };
    let (_, mut journal) = recorded(reviewed.clone());
    let id: EffectId = Consult::REVIEW.parse().unwrap();
    let before = MoveReview { changes: vec![edit("m1")] };
    journal.get_mut(&id).unwrap().result = EffectResult::PersonSaid(Box::new(before));
    let same = fork(&reviewed, &journal, request(ForkPoint::Debates, reviewed.clone())).unwrap();
    let changes = |fork: &Fork| fork.input.inherited_review().unwrap().changes.clone();
    assert_eq!(changes(&same), [edit("m1")]);
    assert!(execute(&same).0.debate("m1").move_markdown.contains("cinnamon"));
    let edited = |input: &ConsultInput, journal: &Journal| {
        let edits = vec![edit("m2")];
        let request = ForkRequest { edits, ..request(ForkPoint::Debates, input.clone()) };
        fork(input, journal, request).unwrap()
    };
    assert_eq!(changes(&edited(&reviewed, &journal)), [edit("m1"), edit("m2")]);
    // A fork of a fork keeps the review, which is not in its journal.
    journal.remove(&id);
    assert_eq!(changes(&edited(&same.input, &journal)), [edit("m1"), edit("m2")]);
}

#[test]
fn an_edit_of_an_unknown_move_or_from_the_moves_is_refused() {
    let (_, journal) = recorded(small_input());
    let edited = |from, move_id: &str| {
        let request = ForkRequest { edits: vec![edit(move_id)], ..request(from, small_input()) };
        fork(&small_input(), &journal, request).unwrap_err()
    };
    assert_eq!(edited(ForkPoint::Moves, "m1"), ForkFault::EditFromMoves);
    let known = vec!["m1".to_owned(), "m2".to_owned()];
    let unknown = ForkFault::UnknownMove { move_id: "m9".to_owned(), known };
    assert_eq!(edited(ForkPoint::Debates, "m9"), unknown);
}

#[test]
fn a_changed_inherited_result_is_detected() {
    let (_, journal) = recorded(small_input());
    let forked = fork(&small_input(), &journal, request(ForkPoint::Debates, small_input()));
    let Fork { input, mut effects } = forked.unwrap();
    assert_eq!(other_than_parent(&input, &effects, &journal), None);
    let is_inherited = |fault| matches!(fault, Err(DeriveFault::Inherited { .. }));
    assert!(!is_inherited(derive(&input, &effects, &[])));
    let id: EffectId = "F2".parse().unwrap();
    effects.get_mut(&id).unwrap().result =
        journal[&"F1".parse::<EffectId>().unwrap()].result.clone();
    let EffectResult::ModelReplied(reply) = &mut effects.get_mut(&id).unwrap().result else {
        panic!("no reply")
    };
    reply.text.push('!');
    assert_eq!(other_than_parent(&input, &effects, &journal), Some(&id));
    assert!(is_inherited(derive(&input, &effects, &[])));
}

#[test]
fn changed_settings_are_listed() {
    let mut after = with_critic(&input());
    after.committee.rounds = 3;
    let listed: Vec<String> = fork_changes(&input(), &after)
        .into_iter()
        .map(|change| format!("{}: {} → {}", change.setting, change.before, change.after))
        .collect();
    assert_eq!(listed, ["critic: openai/gpt-5-mini → openai/gpt-5", "rounds: 10 → 3"]);
    after.committee.critic.name = "Another critic".to_owned();
    assert_eq!(fork_changes(&input(), &after)[2].after, "board (changed)");
}

#[test]
fn a_panel_that_is_added_is_a_change_of_the_verdict_alone() {
    let mut before = input();
    let off = VerdictRequest { mode: Some(VerdictMode::Off), ..VerdictRequest::default() };
    before.committee.request_verdict(&off).unwrap();
    let mut after = before.clone();
    let asked = VerdictRequest { repeat: Some(2), ..VerdictRequest::default() };
    after.committee.request_verdict(&asked).unwrap();
    let change = ForkChange {
        setting: "verdict".to_owned(),
        before: "off".to_owned(),
        after: "full, again 8,4,4, repeat 2".to_owned(),
    };
    assert_eq!(fork_changes(&before, &after), [change]);
}
