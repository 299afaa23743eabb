//! A workflow with real debates as children, driven together, killed and resumed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use moothall_core::{Conclusion, EffectResult};
use moothall_engine::{RunDriver, RunExit, RunPause};
use moothall_store::{ControlRequest, RunState, Store};

use crate::panel::{CALLS_PER_MOVE, Death, Dying, Left, Panel, Speaking, drive, driver};
use crate::support::{World, world};

const MOVES: usize = 3;

/// What an uninterrupted run stores.
async fn whole_run() -> Left {
    whole_run_of(MOVES).await
}

pub(crate) async fn whole_run_of(moves: usize) -> Left {
    let world = world().await;
    let ended = drive(&world, &Arc::default(), moves).await.unwrap();
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");
    world.left().await
}

/// Journaled effects that were performed again.
async fn asked_again(world: &World, performer: &Speaking) -> BTreeSet<String> {
    let answered = world.store.journal(&world.run_id).await.unwrap();
    let asked: BTreeSet<String> = performer.asked().into_iter().collect();
    answered.keys().map(ToString::to_string).filter(|id| asked.contains(id)).collect()
}

#[tokio::test]
async fn a_workflow_with_children_runs_to_its_end() {
    let world = world().await;
    let performer = Arc::new(Speaking::default());
    let ended = drive(&world, &performer, MOVES).await.unwrap();
    let RunExit::Done(outcome) = ended else { panic!("{ended:?}") };
    let Conclusion::Answered { text, .. } = &outcome.conclusion else { panic!("{outcome:?}") };
    assert!(text.starts_with("m1 ") && text.contains("; m3 "), "{text}");
    assert_eq!(performer.asked().len(), MOVES * CALLS_PER_MOVE + 1);
    let left = world.left().await;
    // Every call, `m2/rewrite`, and the ends of the three debates.
    assert_eq!(left.answers.len(), MOVES * CALLS_PER_MOVE + 1 + MOVES);
    let ends = left.answers.values().filter(|(_, result)| {
        matches!(result, EffectResult::ChildEnded(end) if end.isolation.class.as_str() == "none")
    });
    assert_eq!(ends.count(), MOVES);
    assert_eq!(world.store.run(&world.run_id).await.unwrap().unwrap().state, RunState::Finished);
}

#[tokio::test]
async fn children_do_not_depend_on_the_order_of_answers() {
    let whole = whole_run().await;
    for seed in 0..10 {
        let world = world().await;
        let performer = Arc::new(Speaking { seed: Some(seed), ..Speaking::default() });
        drive(&world, &performer, MOVES).await.unwrap();
        assert_eq!(world.left().await, whole, "seed {seed}");
    }
}

#[tokio::test]
async fn a_run_with_children_killed_in_any_commit_resumes_without_repeats() {
    const MOVES: usize = 2;
    let whole = whole_run_of(MOVES).await;
    for at in 1.. {
        let mut ended = 0;
        for death in [Death::Before(at), Death::After(at)] {
            let world = world().await;
            let first = Arc::new(Speaking { seed: Some(at as u64), ..Speaking::default() });
            let dying = Dying::new(Arc::clone(&world.store), death);
            let run_id = world.run_id.clone();
            let driver = |store: Arc<dyn Store>| RunDriver::new(store, first.clone(), run_id);
            if dying.drive(driver, MOVES).await.is_some() {
                ended += 1;
                continue;
            }
            let second = Arc::new(Speaking::default());
            let kept = world.store.journal(&world.run_id).await.unwrap();
            let before: BTreeSet<String> = kept.keys().map(ToString::to_string).collect();
            let done = drive(&world, &second, MOVES).await.unwrap();
            assert!(matches!(done, RunExit::Done(_)), "{death:?}: {done:?}");
            let again: BTreeSet<String> = second.asked().into_iter().collect();
            assert_eq!(before.intersection(&again).count(), 0, "{death:?}");
            assert_eq!(second.asked().len(), again.len(), "{death:?}: nothing is asked twice");
            assert_eq!(world.left().await, whole, "{death:?}");
        }
        if ended == 2 {
            // Results that arrive during a write share the next transaction.
            assert!(at > 3, "{at}");
            return;
        }
    }
}

#[tokio::test]
async fn a_finished_child_is_not_started_again() {
    let world = world().await;
    let first = Arc::new(Speaking { hang: Some("m3/round-1/critic"), ..Speaking::default() });
    let (first_driver, ends) = (driver(&world, &first), async {
        loop {
            let journal = world.store.journal(&world.run_id).await.unwrap();
            let ends = journal.values();
            let ends = ends.filter(|entry| matches!(entry.result, EffectResult::ChildEnded(_)));
            if ends.count() == 2 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let mut panel = Panel::new(MOVES);
    tokio::select! {
        ended = first_driver.drive(&mut panel) => panic!("{ended:?}"),
        () = ends => {}
    }
    let second = Arc::new(Speaking::default());
    drive(&world, &second, MOVES).await.unwrap();
    assert!(second.asked().iter().all(|id| id.starts_with("m3/")), "{:?}", second.asked());
    assert_eq!(world.left().await, whole_run().await);
}

#[tokio::test]
async fn concurrent_children_are_limited_and_start_in_order() {
    let world = world().await;
    let performer = Arc::new(Speaking::default());
    let driver = driver(&world, &performer).parallel_children(1);
    driver.drive(&mut Panel::new(4)).await.unwrap();
    let mut order: Vec<String> = Vec::new();
    for id in performer.asked().iter().filter(|id| *id != "m2/rewrite") {
        let of = id.split('/').next().unwrap().to_owned();
        if order.last() != Some(&of) {
            order.push(of);
        }
    }
    // `m2` is started after its rewrite, so after the others.
    assert_eq!(order, ["m1", "m3", "m4", "m2"]);
}

#[tokio::test]
async fn other_children_wait_for_the_first_call_of_the_first_child() {
    let world = world().await;
    let performer = Arc::new(Speaking { hang: Some("m1/round-1/critic"), ..Speaking::default() });
    let mut panel = Panel::new(MOVES);
    let driver = driver(&world, &performer);
    tokio::select! {
        ended = driver.drive(&mut panel) => panic!("{ended:?}"),
        () = async {
            performer.hears("m1/round-1/critic").await;
            performer.hears("m2/rewrite").await;
            // Long enough for waiting children to start if they wrongly could.
            tokio::time::sleep(Duration::from_millis(300)).await;
        } => {}
    }
    assert_eq!(
        performer.asked().into_iter().collect::<BTreeSet<String>>(),
        ["m1/round-1/critic", "m2/rewrite"].map(str::to_owned).into()
    );
}

#[tokio::test]
async fn effects_of_all_children_share_one_limit() {
    let world = world().await;
    let latency = Duration::from_millis(2);
    let performer = Arc::new(Speaking { latency, ..Speaking::default() });
    let driver = driver(&world, &performer).at_once(3);
    driver.drive(&mut Panel::new(MOVES)).await.unwrap();
    assert_eq!(performer.most_at_once.load(Ordering::SeqCst), 3);
    assert_eq!(world.left().await, whole_run().await);
}

#[tokio::test]
async fn a_used_up_budget_pauses_all_children_and_more_budget_resumes_them() {
    let world = world().await;
    let refuse = Some("round-2/D1");
    let first = Arc::new(Speaking { refuse, seed: Some(1), ..Speaking::default() });
    let ended = drive(&world, &first, MOVES).await.unwrap();
    assert!(matches!(ended, RunExit::Paused(RunPause::Budget(_))), "{ended:?}");
    assert_eq!(first.at_once.load(Ordering::SeqCst), 0, "everything under way was waited for");
    let refused = first.asked().iter().filter(|id| id.ends_with("round-2/D1")).count();
    assert!(refused > 0);
    let kept = world.store.journal(&world.run_id).await.unwrap();
    assert_eq!(kept.len(), first.asked().len() - refused, "answers are kept, refusals are not");

    let second = Arc::new(Speaking::default());
    assert_eq!(asked_again(&world, &second).await, BTreeSet::new());
    let ended = drive(&world, &second, MOVES).await.unwrap();
    assert!(matches!(ended, RunExit::Done(_)), "{ended:?}");
    let again: BTreeSet<String> = second.asked().into_iter().collect();
    assert!(kept.keys().all(|id| !again.contains(id.as_str())));
    let mut left = world.left().await;
    left.events.remove("run:run_paused:1").unwrap();
    assert_eq!(left, whole_run().await);
}

#[tokio::test]
async fn cancelling_a_run_stops_hanging_children() {
    let world = world().await;
    let performer = Arc::new(Speaking { hang: Some("round-2/D1"), ..Speaking::default() });
    let wish = async {
        performer.hears("m3/round-2/D1").await;
        world.store.request_control(&world.run_id, ControlRequest::Cancel).await.unwrap();
    };
    let (ended, ()) = tokio::join!(drive(&world, &performer, MOVES), wish);
    assert_eq!(ended.unwrap(), RunExit::Cancelled);
    let row = world.store.run(&world.run_id).await.unwrap().unwrap();
    assert_eq!(row.state, RunState::Cancelled);
}
