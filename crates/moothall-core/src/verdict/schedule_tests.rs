use super::super::world::{SimulatedCompany, SimulatedPanel, SimulatedRun, SplitMix64, WORLD};
use super::*;

fn verdict() -> TierList {
    let panel = SimulatedPanel::new(5, 1);
    let mut rng = SplitMix64::new(1);
    let company = SimulatedCompany::new(WORLD, &panel, &mut rng);
    SimulatedRun::new(&company, &panel, &mut rng).verdict
}

#[test]
fn the_best_moves_are_debated_again_until_the_lead_is_small() {
    let verdict = verdict();
    let lead = u32::try_from(verdict.tier(VerdictTier::Lead).len()).unwrap();
    let best: Vec<&String> =
        verdict.moves_by_estimate().into_iter().map(|one| &one.move_id).collect();
    let waits = DebateSchedule { again: vec![8, 4], stop_at: lead - 1 };
    let stops = DebateSchedule { again: vec![8, 4], stop_at: lead };
    assert_eq!(waits.next_moves(0, &verdict).iter().collect::<Vec<_>>(), best[..8]);
    assert_eq!(waits.next_moves(1, &verdict).iter().collect::<Vec<_>>(), best[..4]);
    assert!(waits.next_moves(2, &verdict).is_empty());
    // Without repeats, a small lead may be luck.
    assert_eq!(stops.next_moves(0, &verdict).len(), 8);
    assert!(stops.next_moves(1, &verdict).is_empty());
}

#[test]
fn moves_with_equal_scores_are_taken_in_the_order_of_their_numbers() {
    let mut verdict = verdict();
    for one in &mut verdict.estimates {
        one.score = 700;
    }
    let schedule = DebateSchedule { again: vec![3], stop_at: 3 };
    assert_eq!(schedule.next_moves(0, &verdict), ["m1", "m2", "m3"]);
}

#[test]
fn the_most_repeats_are_limited_by_the_number_of_moves() {
    let schedule = DebateSchedule::default();
    assert_eq!((schedule.most_repeats(15), schedule.most_repeats(6)), (16, 14));
}
