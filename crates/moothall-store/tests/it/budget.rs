//! Batches of calls by several workers: their events and their budget reservations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use moothall_core::budget::{Budget, ReserveDecision, ReserveRequest, Settlement};
use moothall_core::{MicroUsd, RunId};
use moothall_store::{BatchAdmission, BatchStart, ControlRequest, RunCommit, StoreError};

use crate::support::{
    Kept, Place, effect_id, entry, event, keeps_the_contract, new_run, numbers, run_id, spent,
    the_end,
};

keeps_the_contract! {
    calls_begin_with_their_events_and_their_room
    nothing_is_reserved_for_what_is_answered_or_where_somebody_has_a_wish
    workers_that_begin_at_once_never_have_more_than_the_budget
    bill_is_written_with_its_answers_and_counts_once
    what_a_dead_worker_had_reserved_counts_as_spent
    run_that_has_ended_begins_nothing
}

/// The budget of every run here.
const CAP: u64 = 100;

async fn run_in_store(place: &dyn Place) -> (Arc<dyn Kept>, RunId) {
    let (store, id) = (place.open().await, run_id(1));
    store.create_run(new_run(&id)).await.unwrap();
    (store, id)
}

fn batch_start(wave: &str, attempt: &str, usd: u64) -> BatchStart {
    let budget = Budget { usd: Some(MicroUsd::new(CAP)), tokens: None };
    let (attempt, usd) = (attempt.to_owned(), MicroUsd::new(usd));
    BatchStart {
        commit: RunCommit {
            events: vec![event(wave, "begins")],
            at_ms: 2_000,
            ..RunCommit::default()
        },
        effects: vec![effect_id(wave)],
        reserve: ReserveRequest { wave: wave.to_owned(), attempt, usd, tokens: 1, budget },
    }
}

fn bill(wave: &str, attempt: &str, usd: u64) -> RunCommit {
    let (wave_name, attempt) = (wave.to_owned(), attempt.to_owned());
    RunCommit {
        results: vec![(effect_id(wave), entry("question", "answer"))],
        settlement: Some(Settlement::Settle { wave: wave_name, attempt, used: spent(usd) }),
        at_ms: 3_000,
        ..RunCommit::default()
    }
}

async fn calls_begin_with_their_events_and_their_room(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    for _ in 0..2 {
        // Starting again, because the response was lost, has no further effect.
        let admission = store.begin(&id, batch_start("m1", "a", 60)).await.unwrap();
        assert_eq!(
            admission,
            BatchAdmission {
                reservation: Some(ReserveDecision::Granted),
                ..BatchAdmission::default()
            }
        );
    }
    assert_eq!(numbers(&store.events(&id, 0, 9).await.unwrap()), [1]);
    let admission = store.begin(&id, batch_start("m2", "b", 60)).await.unwrap();
    assert_eq!(
        admission,
        BatchAdmission { reservation: Some(ReserveDecision::Wait), ..BatchAdmission::default() }
    );
    assert_eq!(numbers(&store.events(&id, 0, 9).await.unwrap()), [1, 2]);
}

async fn nothing_is_reserved_for_what_is_answered_or_where_somebody_has_a_wish(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let answer = entry("question", "answer");
    let results = vec![(effect_id("m1"), answer.clone())];
    store.commit(&id, RunCommit { results, at_ms: 1, ..RunCommit::default() }).await.unwrap();
    let admission = store.begin(&id, batch_start("m1", "a", CAP)).await.unwrap();
    let entries = BTreeMap::from([(effect_id("m1"), answer)]);
    assert_eq!(admission, BatchAdmission { entries, ..BatchAdmission::default() });
    store.request_control(&id, ControlRequest::Pause).await.unwrap();
    let admission = store.begin(&id, batch_start("m2", "b", CAP)).await.unwrap();
    assert_eq!(
        admission,
        BatchAdmission {
            control_requests: BTreeSet::from([ControlRequest::Pause]),
            ..BatchAdmission::default()
        }
    );
    store.clear_control(&id, ControlRequest::Pause).await.unwrap();
    // Nothing is reserved any more.
    let admission = store.begin(&id, batch_start("m3", "c", CAP)).await.unwrap();
    assert_eq!(admission.reservation, Some(ReserveDecision::Granted));
}

async fn workers_that_begin_at_once_never_have_more_than_the_budget(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let begin = async |number: usize| {
        let store = place.open().await;
        let admission =
            store.begin(&id, batch_start(&format!("m{number}"), "a", 15)).await.unwrap();
        admission.reservation == Some(ReserveDecision::Granted)
    };
    let (a, b, c, d) =
        tokio::join!(all(0..4, &begin), all(4..8, &begin), all(8..12, &begin), all(12..16, &begin));
    assert_eq!(a + b + c + d, 6, "each of them wants 15 of 100");
    assert_eq!(store.run(&id).await.unwrap().unwrap().events, 16);
}

async fn all(numbers: std::ops::Range<usize>, begin: &impl AsyncFn(usize) -> bool) -> usize {
    let mut granted = 0;
    for number in numbers {
        granted += usize::from(begin(number).await);
    }
    granted
}

async fn bill_is_written_with_its_answers_and_counts_once(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.begin(&id, batch_start("m1", "a", 60)).await.unwrap();
    assert_eq!(store.run(&id).await.unwrap().unwrap().spent, None);
    for _ in 0..2 {
        store.commit(&id, bill("m1", "a", 30)).await.unwrap();
        assert_eq!(store.run(&id).await.unwrap().unwrap().spent, Some(spent(30)));
    }
    assert_eq!(store.journal(&id).await.unwrap().len(), 1);
    // Reserved but unused budget is available to others.
    let admission = store.begin(&id, batch_start("m2", "b", 70)).await.unwrap();
    assert_eq!(admission.reservation, Some(ReserveDecision::Granted));
}

async fn what_a_dead_worker_had_reserved_counts_as_spent(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.begin(&id, batch_start("m1", "dead", 60)).await.unwrap();
    let BatchAdmission { reservation, .. } =
        store.begin(&id, batch_start("m1", "alive", 60)).await.unwrap();
    assert!(matches!(reservation, Some(ReserveDecision::Refused(_))), "{reservation:?}");
    let admission = store.begin(&id, batch_start("m1", "alive", 40)).await.unwrap();
    assert_eq!(admission.reservation, Some(ReserveDecision::Granted));
    store.commit(&id, bill("m1", "alive", 5)).await.unwrap();
    let spent = store.run(&id).await.unwrap().unwrap().spent.unwrap();
    assert_eq!((spent.usd, spent.uncertain_usd), (MicroUsd::new(65), MicroUsd::new(60)));
}

async fn run_that_has_ended_begins_nothing(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.begin(&id, batch_start("m1", "a", 60)).await.unwrap();
    store.commit(&id, the_end()).await.unwrap();
    let refused = store.begin(&id, batch_start("m1", "a", 60)).await;
    assert!(matches!(refused, Err(StoreError::RunEnded { .. })), "{refused:?}");
    let refused = store.begin(&run_id(2), batch_start("m1", "a", 60)).await;
    assert!(matches!(refused, Err(StoreError::UnknownRun(_))), "{refused:?}");
}
