//! Random sequences of commits, compared with a minimal model of a store.

use std::cell::Cell;
use std::collections::BTreeMap;

use moothall_core::RunEvent;
use moothall_store::{JournalEntry, RunCommit, RunState, Store, StoreError};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Place, SqlitePlace, effect_id, entry, event, finished, new_run, run_id};

/// A run without a database.
#[derive(Debug, Default)]
struct Model {
    events: Vec<RunEvent>,
    journal: BTreeMap<String, JournalEntry>,
    state: Option<RunState>,
}

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Conflict,
    Ended,
}

impl Model {
    fn commit(&mut self, commit: &RunCommit) -> Result<Vec<u64>, Refusal> {
        let known = |event: &RunEvent| self.events.iter().any(|there| there.key == event.key);
        let result = commit.results.first().map(|(id, entry)| (id.to_string(), entry.clone()));
        let stored = result.as_ref().map(|(id, entry)| (self.journal.get(id), entry));
        let conflict = matches!(stored, Some((Some(stored), offered)) if stored != offered);
        if self.state.is_some_and(RunState::is_terminal) {
            let repeats = commit.state.is_none_or(|state| Some(state) == self.state)
                && commit.events.iter().all(|event| self.events.contains(event));
            return match stored {
                _ if !repeats => Err(Refusal::Ended),
                _ if conflict => Err(Refusal::Conflict),
                Some((None, _)) => Err(Refusal::Ended),
                _ => Ok(Vec::new()),
            };
        }
        if conflict {
            return Err(Refusal::Conflict);
        }
        let mut new: Vec<RunEvent> = Vec::new();
        for event in &commit.events {
            if !known(event) && new.iter().all(|there| there.key != event.key) {
                new.push(event.clone());
            }
        }
        let from = self.events.len() as u64 + 1;
        let numbers = (from..from + new.len() as u64).collect();
        self.events.extend(new);
        self.journal.extend(result);
        self.state = commit.state.or(self.state);
        Ok(numbers)
    }
}

/// Few keys and few texts, so they collide.
fn any_commit() -> impl Strategy<Value = RunCommit> {
    let words = prop_oneof![4 => Just("one"), 1 => Just("two")];
    let events = vec((0..6_u8, words.clone()), 0..4);
    let result = proptest::option::of((0..4_u8, words.clone(), words));
    let state = prop_oneof![
        6 => Just(None),
        1 => Just(Some(RunState::Running)),
        1 => Just(Some(RunState::Paused)),
        1 => Just(Some(RunState::Finished)),
    ];
    (events, result, state, 0..1_000_u64).prop_map(|(events, result, state, at_ms)| {
        let mut events: Vec<_> =
            events.iter().map(|(name, says)| event(&format!("e-{name}"), says)).collect();
        events.extend((state == Some(RunState::Finished)).then(finished));
        let result = result.map(|(name, question, answer)| {
            (effect_id(&format!("e-{name}")), entry(question, answer))
        });
        RunCommit {
            results: result.into_iter().collect(),
            events,
            state,
            at_ms,
            ..RunCommit::default()
        }
    })
}

#[test]
fn any_sequence_of_commits_ends_as_in_the_model() {
    any_sequence_ends_as_in_the_model(&SqlitePlace::new());
}

mod real_postgres {
    #[test]
    fn any_sequence_of_commits_ends_as_in_the_model() {
        super::any_sequence_ends_as_in_the_model(&crate::support::PgPlace::new());
    }
}

fn any_sequence_ends_as_in_the_model(place: &dyn Place) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(place.open());
    let cases = Cell::new(0);
    proptest!(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() },
        |(commits in vec(any_commit(), 1..16))| {
        cases.set(cases.get() + 1);
        runtime.block_on(check(&*store, cases.get(), commits))?;
    });
}

async fn check(store: &dyn Store, case: u32, commits: Vec<RunCommit>) -> Result<(), TestCaseError> {
    let id = run_id(case);
    store.create_run(new_run(&id)).await.unwrap();
    let mut model = Model::default();
    for commit in commits {
        let expected = model.commit(&commit);
        let told = match store.commit(&id, commit).await {
            Ok(events) => Ok(events.iter().map(|event| event.seq).collect()),
            Err(StoreError::JournalConflict { .. }) => Err(Refusal::Conflict),
            Err(StoreError::RunEnded { .. }) => Err(Refusal::Ended),
            Err(other) => panic!("{other:?}"),
        };
        prop_assert_eq!(told, expected);
    }
    let row = store.run(&id).await.unwrap().unwrap();
    prop_assert_eq!(row.events, model.events.len() as u64);
    prop_assert_eq!(row.state, model.state.unwrap_or(RunState::Running));
    let events = store.events(&id, 0, u32::MAX).await.unwrap();
    let events: Vec<_> = events.into_iter().map(|stored| (stored.seq, stored.event)).collect();
    prop_assert_eq!(events, (1..).zip(model.events).collect::<Vec<_>>());
    let journal = store.journal(&id).await.unwrap();
    let journal: BTreeMap<_, _> =
        journal.into_iter().map(|(id, entry)| (id.to_string(), entry)).collect();
    prop_assert_eq!(journal, model.journal);
    Ok(())
}
