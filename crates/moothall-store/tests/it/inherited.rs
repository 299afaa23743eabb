//! The journal that a fork inherits when it is created.

use moothall_store::{
    AdmissionDecision, AdmissionTerms, JournalMismatch, MAX_TEXT_BYTES, NewRun, RunCommit,
    StoreError,
};

use crate::support::{
    Place, answered, effect_id, entry, keeps_the_contract, new_run, run_id, the_end,
};

keeps_the_contract! {
    a_fork_has_its_inherited_journal_from_the_start
    an_admitted_fork_has_its_inherited_journal
    a_fork_whose_journal_is_refused_is_not_created
    an_inherited_result_is_kept_like_any_other
    a_fork_outlives_its_parent
}

fn fork(number: u32) -> NewRun {
    let inherited = vec![
        (effect_id("gather"), entry("what is known", "much")),
        (effect_id("F1"), entry("what follows", "little")),
    ];
    NewRun { inherited, ..new_run(&run_id(number)) }
}

async fn a_fork_has_its_inherited_journal_from_the_start(place: &dyn Place) {
    let (store, new) = (place.open().await, fork(1));
    store.create_run(new.clone()).await.unwrap();
    let journal = store.journal(&new.run_id).await.unwrap();
    assert_eq!(journal, new.inherited.into_iter().collect());
    let row = store.run(&new.run_id).await.unwrap().unwrap();
    assert_eq!((row.events, row.spent), (0, None));
}

async fn an_admitted_fork_has_its_inherited_journal(place: &dyn Place) {
    let (store, new) = (place.open().await, fork(1));
    let terms = AdmissionTerms { idempotency_key: None, day_began_at_ms: 0 };
    let admitted = store.admit_run(new.clone(), terms).await.unwrap();
    assert_eq!(admitted, AdmissionDecision::Created);
    assert_eq!(store.journal(&new.run_id).await.unwrap(), new.inherited.into_iter().collect());
}

async fn a_fork_whose_journal_is_refused_is_not_created(place: &dyn Place) {
    let (store, mut new) = (place.open().await, fork(1));
    new.inherited.push((effect_id("F2"), entry("more", &"x".repeat(MAX_TEXT_BYTES))));
    let refused = store.create_run(new.clone()).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
    assert_eq!(store.run(&new.run_id).await.unwrap(), None);
}

async fn an_inherited_result_is_kept_like_any_other(place: &dyn Place) {
    let (store, new) = (place.open().await, fork(1));
    store.create_run(new.clone()).await.unwrap();
    let with = |question, answer| RunCommit {
        results: vec![(effect_id("F1"), entry(question, answer))],
        ..answered("analyst_1")
    };
    store.commit(&new.run_id, with("what follows", "little")).await.unwrap();
    let other = store.commit(&new.run_id, with("what follows", "a lot")).await;
    let is_conflict = |mismatch: &JournalMismatch| *mismatch == JournalMismatch::Result;
    assert!(
        matches!(&other, Err(StoreError::JournalConflict { mismatch, .. }) if is_conflict(mismatch)),
        "{other:?}"
    );
}

async fn a_fork_outlives_its_parent(place: &dyn Place) {
    let (store, parent, new) = (place.open().await, run_id(1), fork(2));
    store.create_run(new_run(&parent)).await.unwrap();
    store.commit(&parent, the_end()).await.unwrap();
    store.create_run(new.clone()).await.unwrap();
    store.delete_runs(&[parent]).await.unwrap();
    assert_eq!(store.journal(&new.run_id).await.unwrap(), new.inherited.into_iter().collect());
}
