use super::*;
use crate::consult::board;

fn request(mode: Option<VerdictMode>, again: Option<&[u32]>, models: &[&str]) -> VerdictRequest {
    VerdictRequest {
        mode,
        again: again.map(<[u32]>::to_vec),
        panel_models: models.iter().map(|model| model.parse().unwrap()).collect(),
        repeat: None,
        moves: None,
    }
}

#[test]
fn a_request_decides_who_scores_and_what_is_debated_again() {
    let of = |request: &VerdictRequest, committee: &Committee| {
        let mut committee = committee.clone();
        committee.request_verdict(request).map(|()| {
            let again = committee.verdict.as_ref().map(|plan| plan.again.clone());
            (committee.verdict_mode(), committee.panel.len(), again)
        })
    };
    let full = Some(vec![8, 4, 4]);
    let plain = board();
    use VerdictMode::{Full, Off, Panel};
    assert_eq!(of(&request(None, None, &[]), &plain), Ok((Full, 5, full.clone())));
    assert_eq!(of(&request(Some(Off), None, &[]), &plain), Ok((Off, 0, None)));
    assert_eq!(of(&request(Some(Full), None, &[]), &plain), Ok((Full, 5, full.clone())));
    assert_eq!(of(&request(Some(Panel), None, &[]), &plain), Ok((Panel, 5, Some(Vec::new()))));
    assert_eq!(of(&request(None, Some(&[3]), &[]), &plain), Ok((Full, 5, Some(vec![3]))));
    assert_eq!(of(&request(None, None, &["a/b"]), &plain), Ok((Full, 5, full.clone())));
    assert_eq!(of(&request(Some(Panel), Some(&[3]), &[]), &plain), Err(VerdictConflict::NoRepeats));
    assert_eq!(of(&request(Some(Off), None, &["a/b"]), &plain), Err(VerdictConflict::NoPanel));
    let own = Committee { verdict: Some(VerdictPlan::default()), panel: panel(), ..board() };
    assert_eq!(of(&request(None, None, &[]), &own), Ok((Full, 5, full)));
    assert_eq!(of(&request(Some(Off), None, &[]), &own), Ok((Off, 0, None)));
}

#[test]
fn a_new_run_has_a_panel_with_forecasts_and_a_stored_run_keeps_what_it_had() {
    let asks = |committee: &Committee| committee.verdict.as_ref().map(VerdictPlan::asks_forecasts);
    assert_eq!(asks(&board().with_default_verdict()), Some(true));
    // Reading decides nothing: only a request for a new run does.
    let stored: Committee =
        serde_json::from_str(&crate::canonical_json(&board()).unwrap()).unwrap();
    assert_eq!((stored.verdict_mode(), asks(&stored)), (VerdictMode::Off, None));
    let stored: VerdictPlan = serde_json::from_str(r#"{"again": [8, 4, 4]}"#).unwrap();
    let stored = Committee { verdict: Some(stored), panel: panel(), ..board() };
    assert_eq!(asks(&stored), Some(false));
    assert_eq!(asks(&stored.with_default_verdict()), Some(true), "a file without the key");
    let without = VerdictPlan { forecasts: Some(false), ..VerdictPlan::default() };
    let without = Committee { verdict: Some(without), ..board() };
    assert_eq!(asks(&without.with_default_verdict()), Some(false));
}

#[test]
fn a_few_moves_are_debated_once_unless_repeats_are_requested() {
    let of = |mode, again: Option<&[u32]>, moves: u32, rounds: u32| {
        let mut committee = Committee { rounds, ..board() };
        let request = VerdictRequest { moves: Some(moves), ..request(mode, again, &[]) };
        committee.request_verdict(&request).unwrap();
        let plan = committee.verdict.unwrap();
        (plan.again.len(), plan.rounds_again, plan.asks_forecasts())
    };
    assert_eq!(of(None, None, 6, 10), (3, 4, true));
    assert_eq!(of(None, None, 5, 2), (0, 2, false));
    assert_eq!(of(Some(VerdictMode::Full), None, 2, 1), (3, 1, false));
    assert_eq!(of(None, Some(&[2]), 2, 10), (1, 4, false));
}

#[test]
fn the_built_in_panel_leaves_the_ids_of_other_members_alone() {
    let mut committee = board();
    committee.decision_makers[0].id = "P2".to_owned();
    let committee = committee.with_default_verdict();
    let ids: Vec<&str> = committee.panel.iter().map(|member| member.id.as_str()).collect();
    assert_eq!(ids, ["P1", "P2_", "P3", "P4", "P5"]);
    committee.validate().unwrap();
}

#[test]
fn models_are_dealt_to_the_members_in_turn() {
    let mut committee = board();
    committee.request_verdict(&request(None, None, &["a/one", "b/two"])).unwrap();
    let models: Vec<String> =
        committee.panel.iter().filter_map(|one| Some(one.model.as_ref()?.to_string())).collect();
    assert_eq!(models, ["a/one", "b/two", "a/one", "b/two", "a/one"]);
    committee.validate().unwrap();
}

#[test]
fn a_file_writes_probabilities_as_fractions_and_a_run_stores_thousandths() {
    let read = |json: &str| serde_json::from_str::<VerdictPlan>(json);
    let plan = read(r#"{"lead": 0.8, "interval": 0.95}"#).unwrap();
    assert_eq!((plan.lead.thousandths(), plan.interval.thousandths()), (800, 950));
    let stored = crate::canonical_json(&plan).unwrap();
    assert_eq!(read(&stored).unwrap(), plan);
    assert!(read(r#"{"lead": 1.2}"#).is_err());
    assert!(read(r#"{"lead": 1001}"#).is_err());
}

#[test]
fn a_plan_out_of_range_is_refused() {
    let check = |change: fn(&mut VerdictPlan), is_valid: bool| {
        let mut plan = VerdictPlan::default();
        change(&mut plan);
        assert_eq!(plan.validate().is_ok(), is_valid, "{plan:?}");
    };
    check(|_| {}, true);
    check(|plan| plan.again = vec![], true);
    check(|plan| plan.again = vec![0], false);
    check(|plan| plan.again = vec![1; 6], false);
    check(|plan| plan.rounds_again = 0, false);
    check(|plan| plan.stop_at = 0, false);
    check(|plan| plan.lead = ChanceLevel(400), false);
    check(|plan| plan.controls.known_bad = 4, false);
    check(|plan| plan.repeat = 5, true);
    check(|plan| plan.repeat = 6, false);
    check(|plan| plan.repeat = 0, false);
}

#[test]
fn a_panel_that_is_not_independent_is_reported() {
    let mut committee = board();
    assert_eq!(committee.panel_warnings(), Vec::<&str>::new());
    assert_eq!(board().with_default_verdict().panel_warnings().len(), 2);
    committee.request_verdict(&request(None, None, &["a/one", "b/two", "c/three"])).unwrap();
    assert_eq!(committee.panel_warnings(), Vec::<&str>::new());
    committee.critic.model = Some("b/two".parse().unwrap());
    assert_eq!(committee.panel_warnings(), ["a model of the panel also speaks in the debates"]);
}
