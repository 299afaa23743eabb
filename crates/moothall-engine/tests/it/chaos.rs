//! Kills runs repeatedly, in commits chosen by a seed, and checks that they end like uninterrupted
//! ones. `cargo xtask chaos` kills the whole program instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use moothall_engine::{RunDriver, RunExit};
use moothall_store::Store;
use tokio::task::JoinSet;

use crate::children::whole_run_of;
use crate::panel::{Death, Dice, Dying, Left, Speaking};
use crate::support::world;

const SEEDS: u64 = 100;
const MOVES: usize = 2;

/// Kills a run until it ends; returns the number of kills.
async fn survive(seed: u64, whole: &Left) -> u32 {
    let world = world().await;
    let mut dice = Dice::new(seed);
    let mut answered: BTreeSet<String> = BTreeSet::new();
    for kills in 0.. {
        let at = 1 + dice.below(8) as usize;
        let death = if dice.below(2) == 0 { Death::Before(at) } else { Death::After(at) };
        let performer =
            Arc::new(Speaking { seed: Some(dice.below(1 << 20)), ..Speaking::default() });
        let dying = Dying::new(Arc::clone(&world.store), death);
        let run_id = world.run_id.clone();
        let driver = |store: Arc<dyn Store>| RunDriver::new(store, performer.clone(), run_id);
        let ended = dying.drive(driver, MOVES).await;
        let asked: BTreeSet<String> = performer.asked().into_iter().collect();
        let again: Vec<_> = answered.intersection(&asked).collect();
        assert!(again.is_empty(), "seed {seed}, after {kills} kills: {again:?} were asked again");
        let journal = world.store.journal(&world.run_id).await.unwrap();
        answered = journal.keys().map(ToString::to_string).collect();
        match ended {
            None => {}
            Some(RunExit::Done(_)) => {
                assert_eq!(world.left().await, *whole, "seed {seed}, after {kills} kills");
                return kills;
            }
            Some(other) => panic!("seed {seed}: {other:?}"),
        }
    }
    unreachable!("it is killed until it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_killed_repeatedly_ends_like_an_undisturbed_one() {
    let whole = Arc::new(whole_run_of(MOVES).await);
    let mut seeds = JoinSet::new();
    for seed in 0..SEEDS {
        let whole = Arc::clone(&whole);
        seeds.spawn(async move { survive(seed, &whole).await });
    }
    let mut kills = 0;
    while let Some(survived) = seeds.join_next().await {
        kills += survived.unwrap();
    }
    assert!(u64::from(kills) > SEEDS, "{kills} kills are too few to say anything");
}
