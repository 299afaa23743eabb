use super::super::world::{SimulatedCompany, SimulatedPanel, SimulatedRun, SplitMix64, WORLD};
use super::*;
use crate::verdict::MovePair;

fn verdicts(count: usize) -> Vec<TierList> {
    let panel = SimulatedPanel::new(5, 1);
    let mut rng = SplitMix64::new(3);
    let company = SimulatedCompany::new(WORLD, &panel, &mut rng);
    (0..count).map(|_| SimulatedRun::new(&company, &panel, &mut rng).verdict).collect()
}

#[test]
fn tau_counts_pairs_in_the_same_order() {
    assert_eq!(kendall_tau(&[(1, 1), (2, 2), (3, 3), (4, 4)]), 1.0);
    assert_eq!(kendall_tau(&[(1, 4), (2, 3), (3, 2), (4, 1)]), -1.0);
    assert_eq!(kendall_tau(&[(1, 2), (2, 1), (3, 3)]), 1.0 / 3.0);
    assert_eq!(kendall_tau(&[(1, 1), (1, 1), (3, 3)]), 1.0);
    assert_eq!(kendall_tau(&[(1, 1), (1, 2)]), 0.0);
}

#[test]
fn a_verdict_agrees_with_itself_and_contradicts_its_reverse() {
    let one = verdicts(1).remove(0);
    let same = StabilityReport::of(&[&one, &one, &one]).unwrap();
    let StabilityReport { verdicts, top3_overlap, tau, lead_overlap, winner_in_lead, .. } = same;
    assert_eq!((verdicts, top3_overlap, tau, lead_overlap), (3, 1_000, 1_000, 1_000));
    assert_eq!((winner_in_lead, same.contradictions, same.text()), (1_000, 0, "repeatable"));

    let mut reverse = one.clone();
    for estimate in &mut reverse.estimates {
        estimate.score = -estimate.score;
        estimate.tier = match estimate.tier {
            Some(VerdictTier::Lead) => Some(VerdictTier::Behind),
            _ => Some(VerdictTier::Lead),
        };
    }
    for MovePair { better, worse } in &mut reverse.told_apart {
        std::mem::swap(better, worse);
    }
    let opposite = StabilityReport::of(&[&one, &reverse]).unwrap();
    assert_eq!((opposite.tau, opposite.lead_overlap, opposite.winner_in_lead), (-1_000, 0, 0));
    assert_eq!(opposite.contradictions as usize, one.told_apart.len());
    assert_eq!((opposite.top3_overlap, opposite.text()), (0, "not repeatable"));
}

#[test]
fn stability_needs_two_verdicts_with_common_moves() {
    let two = verdicts(2);
    assert!(StabilityReport::of(&[&two[0]]).is_none());
    assert!(StabilityReport::of(&[&two[0], &two[1]]).is_some());
    let mut other = two[1].clone();
    for (number, estimate) in (101..).zip(&mut other.estimates) {
        estimate.move_id = format!("m{number}");
    }
    assert!(StabilityReport::of(&[&two[0], &other]).is_none());
}
