//! Contract tests for stores, run on every implementation.
//!
//! To add an implementation, add a [`Place`] for it and a line in `keeps_the_contract!`. A function
//! missing from the list below is dead code, which the gate rejects.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use moothall_core::Sha256Hex;
use moothall_core::consult::{MoveApproval, ReviewAction, ReviewChange, RunOutcomes};
use moothall_core::evidence::CalendarDay;
use moothall_core::money::{MicroUsd, SpendTotals};
use moothall_core::receipt::EffectTiming;
use moothall_core::verdict::MoveNote;
use moothall_store::{
    ControlRequest, JournalMismatch, MAX_ARTIFACT_BYTES, MAX_TEXT_BYTES, NewRun, RunCommit,
    RunFilter, RunMatch, RunOrder, RunQuery, RunRow, RunState, StoreError, StoredEvent, TeamFilter,
};

use crate::support::{
    Kept, Place, answered, effect_id, entry, event, finished, keeps_the_contract, new_run, numbers,
    outcome, run_id, snapshot, spent, the_end,
};

keeps_the_contract! {
    a_run_is_read_as_it_was_created
    a_run_is_created_once
    runs_are_listed_newest_first
    a_page_of_runs_is_searched_filtered_and_sorted
    a_prefix_of_an_id_finds_its_run
    a_commit_is_atomic
    events_are_read_from_any_number_on
    heads_of_existing_runs_are_returned
    waiting_for_a_change_ends_when_a_run_changes
    a_repeated_commit_changes_nothing
    the_first_event_under_a_key_stays
    another_answer_under_the_same_id_changes_nothing
    many_answers_are_written_together_or_not_at_all
    answers_of_some_effects_are_found_without_the_others
    numbers_have_no_gaps_under_many_writers
    concurrent_commits_are_answered_separately
    a_finished_run_accepts_only_repetitions
    a_commit_that_contradicts_itself_is_refused
    a_value_that_is_too_large_is_refused
    a_text_with_any_character_is_stored_unchanged_or_refused
    artifacts_are_stored_once_and_found_by_their_hash
    an_artifact_that_is_too_large_is_refused
    spending_stays_until_it_is_updated
    control_requests_are_stored_once_and_cleared
    runs_with_a_control_request_are_found
    the_first_approval_of_a_move_is_kept_even_after_the_end
    changes_keep_their_order_until_they_are_deleted
    outcomes_of_forecasts_are_replaced_and_deleted_with_their_run
    a_deleted_run_is_gone_and_its_id_is_free
    deleting_several_runs_leaves_the_others_unchanged
    the_size_of_a_run_is_the_size_of_its_content
    space_of_deleted_runs_is_reclaimed
    every_request_about_an_unknown_run_is_refused
    a_dropped_commit_has_all_of_its_effect_or_none
}

const ALL: RunFilter = RunFilter { teams: TeamFilter::All, state: None, limit: 100 };

async fn run_in_store(place: &dyn Place) -> (std::sync::Arc<dyn Kept>, moothall_core::RunId) {
    let (store, id) = (place.open().await, run_id(1));
    store.create_run(new_run(&id)).await.unwrap();
    (store, id)
}

async fn a_run_is_read_as_it_was_created(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let NewRun { run_id, owner, cap, spec, title, model, build, created_at_ms, inherited: _ } =
        new_run(&id);
    let expected = RunRow {
        run_id,
        owner,
        cap,
        spec,
        title,
        model,
        build,
        created_at_ms,
        state: RunState::Running,
        updated_at_ms: created_at_ms,
        events: 0,
        outcome: None,
        spent: None,
    };
    assert_eq!(store.run(&id).await.unwrap(), Some(expected));
    assert_eq!(store.run(&crate::support::run_id(2)).await.unwrap(), None);
}

async fn a_run_is_created_once(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let before = snapshot(&*store, &id).await;
    let other = NewRun { title: "another".to_owned(), ..new_run(&id) };
    let refused = store.create_run(other).await;
    assert!(matches!(refused, Err(StoreError::RunExists(there)) if there == id));
    assert_eq!(snapshot(&*store, &id).await, before);
}

async fn runs_are_listed_newest_first(place: &dyn Place) {
    let store = place.open().await;
    for (number, created_at_ms) in [(1, 30), (2, 10), (3, 20), (4, 20)] {
        let id = run_id(number);
        store.create_run(NewRun { created_at_ms, ..new_run(&id) }).await.unwrap();
    }
    store.commit(&run_id(3), the_end()).await.unwrap();
    let list = async |filter| {
        let rows = store.runs(filter).await.unwrap();
        rows.into_iter().map(|row| row.run_id).collect::<Vec<_>>()
    };
    assert_eq!(list(ALL).await, [1, 4, 3, 2].map(run_id));
    assert_eq!(list(RunFilter { limit: 2, ..ALL }).await, [1, 4].map(run_id));
    let ended = RunFilter { state: Some(RunState::Finished), ..ALL };
    assert_eq!(list(ended).await, [3].map(run_id));
    assert_eq!(store.count_runs(RunState::Finished).await.unwrap(), 1);
    assert_eq!(store.count_runs(RunState::Running).await.unwrap(), 3);
}

async fn a_page_of_runs_is_searched_filtered_and_sorted(place: &dyn Place) {
    let store = place.open().await;
    let titles = ["HLXI: 3 moves", "AAPL: 15 moves", "hlxi: again", "100% of_it"];
    for ((number, created_at_ms), title) in (1..).zip([10, 20, 30, 40]).zip(titles) {
        let (id, title) = (run_id(number), title.to_owned());
        store.create_run(NewRun { created_at_ms, title, ..new_run(&id) }).await.unwrap();
    }
    let cost = |usd| SpendTotals { usd: MicroUsd::new(usd), ..SpendTotals::default() };
    for (number, usd) in [(2, 9), (3, 10)] {
        let commit = RunCommit { spent: Some(cost(usd)), ..the_end() };
        store.commit(&run_id(number), commit).await.unwrap();
    }
    let all = RunQuery {
        teams: TeamFilter::All,
        state: None,
        workflow: None,
        text: None,
        order: RunOrder::Newest,
        offset: 0,
        limit: 10,
    };
    let check = async |query: RunQuery, total: u64, expected: &[u32]| {
        let page = store.run_page(query.clone()).await.unwrap();
        let ids: Vec<_> = page.rows.into_iter().map(|row| row.run_id).collect();
        let expected: Vec<_> = expected.iter().map(|number| run_id(*number)).collect();
        assert_eq!((ids, page.total), (expected, total), "{query:?}");
    };
    let text = |text: &str| RunQuery { text: Some(text.to_owned()), ..all.clone() };
    check(all.clone(), 4, &[4, 3, 2, 1]).await;
    check(RunQuery { offset: 1, limit: 2, ..all.clone() }, 4, &[3, 2]).await;
    check(RunQuery { offset: 9, ..all.clone() }, 4, &[]).await;
    check(RunQuery { order: RunOrder::Oldest, ..all.clone() }, 4, &[1, 2, 3, 4]).await;
    check(RunQuery { order: RunOrder::Title, ..all.clone() }, 4, &[4, 2, 1, 3]).await;
    check(RunQuery { order: RunOrder::Model, ..all.clone() }, 4, &[4, 3, 2, 1]).await;
    check(RunQuery { order: RunOrder::Cost, ..all.clone() }, 4, &[3, 2, 4, 1]).await;
    check(RunQuery { state: Some(RunState::Finished), ..all.clone() }, 2, &[3, 2]).await;
    check(RunQuery { workflow: Some("other".to_owned()), ..all.clone() }, 0, &[]).await;
    check(text("HLXI"), 2, &[3, 1]).await;
    // Characters that are special in patterns are searched for as they are.
    check(text("0% of_"), 1, &[4]).await;
    check(text("%"), 1, &[4]).await;
    check(text("' OR 1=1 --"), 0, &[]).await;
    check(text(run_id(2).as_str()), 1, &[2]).await;
}

async fn a_prefix_of_an_id_finds_its_run(place: &dyn Place) {
    let store = place.open().await;
    let check = async |prefix: &str, expected| {
        assert_eq!(store.find_runs(prefix, TeamFilter::All).await.unwrap(), expected, "{prefix:?}");
    };
    check("", RunMatch::None).await;
    let ids @ [first, second, third] = &[0xaf00_0001, 0xaf00_0002, 0xb000_0000].map(run_id);
    for (id, created_at_ms) in ids.iter().zip(1..) {
        store.create_run(NewRun { created_at_ms, ..new_run(id) }).await.unwrap();
    }
    check("b", RunMatch::One(third.clone())).await;
    check("af000001-", RunMatch::One(first.clone())).await;
    check(second.as_str(), RunMatch::One(second.clone())).await;
    check("af", RunMatch::Several(vec![second.clone(), first.clone()])).await;
    for nothing in ["c", "afg", "%", "af00000_", "AF000001", "'", &format!("{first}0")] {
        check(nothing, RunMatch::None).await;
    }
}

async fn a_commit_is_atomic(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let first = store.commit(&id, answered("ask-1")).await.unwrap();
    let last = store.commit(&id, the_end()).await.unwrap();
    let expected = [
        StoredEvent { seq: 1, at_ms: 2_000, event: event("ask-1", "happened") },
        StoredEvent { seq: 2, at_ms: 3_000, event: finished() },
    ];
    assert_eq!([first, last].concat(), expected);
    // Read through another handle.
    let other = place.open().await;
    assert_eq!(other.events(&id, 0, 100).await.unwrap(), expected);
    let journal = BTreeMap::from([(effect_id("ask-1"), entry("question", "answer"))]);
    assert_eq!(other.journal(&id).await.unwrap(), journal);
    let row = other.run(&id).await.unwrap().unwrap();
    let expected = (RunState::Finished, 3_000, 2, Some(outcome()));
    assert_eq!((row.state, row.updated_at_ms, row.events, row.outcome), expected);
}

async fn events_are_read_from_any_number_on(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let events = (0..10).map(|n| event(&format!("e-{n}"), "happened")).collect();
    store.commit(&id, RunCommit { events, ..RunCommit::default() }).await.unwrap();
    let read = async |after, limit| numbers(&store.events(&id, after, limit).await.unwrap());
    let nothing: [u64; 0] = [];
    assert_eq!(read(0, 3).await, [1, 2, 3]);
    assert_eq!(read(7, 100).await, [8, 9, 10]);
    assert_eq!(read(10, 100).await, nothing);
    assert_eq!(read(u64::MAX, u32::MAX).await, nothing);
}

async fn heads_of_existing_runs_are_returned(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.commit(&id, answered("ask-1")).await.unwrap();
    store.create_run(new_run(&run_id(2))).await.unwrap();
    let heads = store.heads(&[1, 2, 3].map(run_id)).await.unwrap();
    assert_eq!(heads, BTreeMap::from([(run_id(1), 1), (run_id(2), 0)]));
    assert_eq!(store.heads(&[]).await.unwrap(), BTreeMap::new());
}

async fn waiting_for_a_change_ends_when_a_run_changes(place: &dyn Place) {
    let (writer, id) = run_in_store(place).await;
    let reader = place.open().await;
    let (mut seen, look_again) = (0, Duration::from_millis(10));
    for round in 1..=5 {
        writer.commit(&id, answered(&format!("e-{round}"))).await.unwrap();
        // The wait may return early; it must only lead to what another handle wrote.
        while reader.heads(std::slice::from_ref(&id)).await.unwrap()[&id] < round {
            seen = reader.wait_for_change(seen, look_again).await;
        }
    }
}

async fn a_repeated_commit_changes_nothing(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.commit(&id, answered("ask-1")).await.unwrap();
    let before = snapshot(&*store, &id).await;
    let mut again = answered("ask-1");
    again.at_ms = 9_000;
    // The same result with different timing.
    again.results[0].1.timing = EffectTiming { latency_ms: 99, tries: 3 };
    assert_eq!(store.commit(&id, again).await.unwrap(), []);
    assert_eq!(snapshot(&*store, &id).await, before);
}

async fn the_first_event_under_a_key_stays(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let events = vec![event("a", "first"), event("b", "first"), event("a", "second")];
    store.commit(&id, RunCommit { events, ..RunCommit::default() }).await.unwrap();
    let events = vec![event("b", "third"), event("c", "first")];
    let new = store.commit(&id, RunCommit { events, ..RunCommit::default() }).await.unwrap();
    assert_eq!(numbers(&new), [3]);
    let all = store.events(&id, 0, 100).await.unwrap();
    let all: Vec<_> = all.into_iter().map(|stored| stored.event).collect();
    assert_eq!(all, ["a", "b", "c"].map(|name| event(name, "first")));
}

async fn another_answer_under_the_same_id_changes_nothing(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.commit(&id, answered("ask-1")).await.unwrap();
    let before = snapshot(&*store, &id).await;
    let question = entry("another question", "answer");
    let request = JournalMismatch::Request {
        stored: entry("question", "answer").request_sha256,
        offered: question.request_sha256,
    };
    for (other, expected) in
        [(question, request), (entry("question", "another answer"), JournalMismatch::Result)]
    {
        let commit = RunCommit {
            results: vec![(effect_id("ask-1"), other)],
            // Written before the conflict is detected, and must be rolled back.
            events: vec![event("ask-2", "happened")],
            state: Some(RunState::Paused),
            ..RunCommit::default()
        };
        match store.commit(&id, commit).await.unwrap_err() {
            StoreError::JournalConflict { run_id, effect_id: effect, mismatch } => {
                assert_eq!((run_id, effect, mismatch), (id.clone(), effect_id("ask-1"), expected));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(snapshot(&*store, &id).await, before);
    }
}

async fn many_answers_are_written_together_or_not_at_all(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let together = |answer: &str| RunCommit {
        results: vec![
            (effect_id("ask-1"), entry("question", "answer")),
            (effect_id("ask-2"), entry("question", answer)),
        ],
        ..answered("ask-1")
    };
    store.commit(&id, together("two")).await.unwrap();
    assert_eq!(store.journal(&id).await.unwrap().len(), 2);
    let before = snapshot(&*store, &id).await;
    let mut other = together("another");
    other.results.push((effect_id("ask-3"), entry("question", "three")));
    other.events.push(event("ask-3", "news"));
    let refused = store.commit(&id, other).await;
    assert!(matches!(refused, Err(StoreError::JournalConflict { .. })), "{refused:?}");
    assert_eq!(snapshot(&*store, &id).await, before);
}

async fn answers_of_some_effects_are_found_without_the_others(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    for asked in ["ask-1", "ask-2", "m1/ask"] {
        store.commit(&id, answered(asked)).await.unwrap();
    }
    let wanted = [effect_id("ask-2"), effect_id("m1/ask"), effect_id("never-asked")];
    let found = store.journal_entries(&id, &wanted).await.unwrap();
    let journal = store.journal(&id).await.unwrap();
    let expected = wanted.iter().filter_map(|id| journal.get_key_value(id));
    let expected = expected.map(|(id, entry)| (id.clone(), entry.clone())).collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 2);
    assert_eq!(store.journal_entries(&id, &[]).await.unwrap(), BTreeMap::new());
    let timings = store.timings(&id, &wanted).await.unwrap();
    let expected = found.iter().map(|(id, entry)| (id.clone(), entry.timing)).collect();
    assert_eq!(timings, expected);
    assert_eq!(store.timings(&id, &[]).await.unwrap(), BTreeMap::new());
}

async fn numbers_have_no_gaps_under_many_writers(place: &dyn Place) {
    const TASKS: u64 = 8;
    const COMMITS: u64 = 50;
    let (first, id) = run_in_store(place).await;
    let second = place.open().await;
    let tasks = (0..TASKS).map(|task| {
        let store = if task % 2 == 0 { first.clone() } else { second.clone() };
        let id = id.clone();
        tokio::spawn(async move {
            let mut told = Vec::new();
            for commit in 0..COMMITS {
                // Half of the commits repeat what another task also writes.
                let own = answered(&format!("t-{task}/c-{commit}"));
                let shared = RunCommit {
                    events: vec![event(&format!("shared/c-{commit}"), "happened")],
                    ..RunCommit::default()
                };
                for commit in [own, shared] {
                    told.extend(numbers(&store.commit(&id, commit).await.unwrap()));
                }
            }
            told
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut told = Vec::new();
    for task in tasks {
        told.extend(task.await.unwrap());
    }
    told.sort_unstable();
    let expected: Vec<u64> = (1..=TASKS * COMMITS + COMMITS).collect();
    assert_eq!(told, expected);
    assert_eq!(numbers(&first.events(&id, 0, u32::MAX).await.unwrap()), expected);
    assert_eq!(first.run(&id).await.unwrap().unwrap().events, TASKS * COMMITS + COMMITS);
}

async fn concurrent_commits_are_answered_separately(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.commit(&id, answered("ask")).await.unwrap();
    let sent = (0..200).map(|number| {
        let (store, id, name) = (store.clone(), id.clone(), format!("c-{number}"));
        let mut commit = answered(&name);
        // One in ten conflicts with the journal.
        let is_wrong = number % 10 == 7;
        if is_wrong {
            commit.results.push((effect_id("ask"), entry("another question", "answer")));
        }
        tokio::spawn(async move { (name, is_wrong, store.commit(&id, commit).await) })
    });
    let sent: Vec<_> = sent.collect();
    let mut told = BTreeMap::new();
    for sent in sent {
        let (name, is_wrong, answer) = sent.await.unwrap();
        match answer {
            Ok(stored) if !is_wrong => {
                let [stored] = <[_; 1]>::try_from(stored).unwrap();
                assert_eq!(stored.event, event(&name, "happened"));
                told.insert(stored.seq, stored);
            }
            Err(StoreError::JournalConflict { effect_id: found, .. }) if is_wrong => {
                assert_eq!(found, effect_id("ask"));
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let kept = store.events(&id, 1, u32::MAX).await.unwrap();
    assert_eq!(numbers(&kept), (2..=181).collect::<Vec<u64>>());
    assert_eq!(kept, told.into_values().collect::<Vec<_>>());
    assert_eq!(store.journal(&id).await.unwrap().len(), 181);
}

async fn a_finished_run_accepts_only_repetitions(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.commit(&id, answered("ask-1")).await.unwrap();
    store.commit(&id, the_end()).await.unwrap();
    let before = snapshot(&*store, &id).await;
    for repetition in [the_end(), answered("ask-1"), RunCommit::default()] {
        assert_eq!(store.commit(&id, repetition).await.unwrap(), []);
    }
    let other_words = RunCommit { events: vec![event("ask-1", "differs")], ..answered("ask-1") };
    let other_outcome = RunCommit { outcome: Some(failed_outcome()), ..the_end() };
    let other_end = RunCommit { state: Some(RunState::Failed), ..the_end() };
    let goes_on = RunCommit { state: Some(RunState::Running), ..RunCommit::default() };
    for late in [answered("ask-2"), other_words, other_outcome, other_end, goes_on] {
        match store.commit(&id, late).await.unwrap_err() {
            StoreError::RunEnded { run_id, state: RunState::Finished } => assert_eq!(run_id, id),
            other => panic!("{other:?}"),
        }
    }
    let late = store.request_control(&id, ControlRequest::Cancel).await;
    assert!(matches!(late, Err(StoreError::RunEnded { .. })));
    let chart = store.keep_artifact(&id, b"late").await;
    assert!(matches!(chart, Err(StoreError::RunEnded { .. })));
    assert_eq!(snapshot(&*store, &id).await, before);
}

fn failed_outcome() -> moothall_core::Outcome {
    let conclusion = moothall_core::Conclusion::Unusable { text: "Hm.".to_owned() };
    moothall_core::Outcome::new(Vec::new(), conclusion)
}

async fn a_commit_that_contradicts_itself_is_refused(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let before = snapshot(&*store, &id).await;
    let follows = RunCommit { events: vec![finished(), event("a", "late")], ..the_end() };
    let no_state = RunCommit { state: None, outcome: None, ..the_end() };
    let pauses = RunCommit { state: Some(RunState::Paused), outcome: None, ..the_end() };
    let no_end = RunCommit { outcome: Some(outcome()), ..RunCommit::default() };
    let no_time = RunCommit { at_ms: u64::MAX, ..answered("ask-1") };
    for commit in [follows, no_state, pauses, no_end, no_time] {
        let refused = store.commit(&id, commit).await;
        assert!(matches!(refused, Err(StoreError::Misfit(_))), "{refused:?}");
    }
    assert_eq!(snapshot(&*store, &id).await, before);
}

async fn a_value_that_is_too_large_is_refused(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    // The rest of the JSON needs less than 1,000 bytes.
    let fits = "x".repeat(MAX_TEXT_BYTES - 1_000);
    let commit = |answer: &str| RunCommit {
        results: vec![(effect_id("ask-1"), entry("question", answer))],
        ..answered("ask-1")
    };
    let refused = store.commit(&id, commit(&"x".repeat(MAX_TEXT_BYTES))).await.unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { what: "a result", .. }), "{refused:?}");
    assert_eq!(store.events(&id, 0, 100).await.unwrap(), []);
    store.commit(&id, commit(&fits)).await.unwrap();
    assert_eq!(store.journal(&id).await.unwrap()[&effect_id("ask-1")], entry("question", &fits));
}

async fn a_text_with_any_character_is_stored_unchanged_or_refused(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    // Any text from a model must be stored unchanged.
    let wild = "nul \0, quote ', backslash \\, line\nbreak, \u{1f600}, \u{feff}, \u{fffd}";
    let commit = RunCommit {
        results: vec![(effect_id("ask-1"), entry("question", wild))],
        events: vec![event("ask-1", wild)],
        ..RunCommit::default()
    };
    store.commit(&id, commit).await.unwrap();
    assert_eq!(store.journal(&id).await.unwrap()[&effect_id("ask-1")], entry("question", wild));
    let events = store.events(&id, 0, 100).await.unwrap();
    assert_eq!(events[0].event, event("ask-1", wild));
    // Titles are plain text from people, and not every database supports NUL.
    let run = NewRun { title: wild.to_owned(), ..new_run(&run_id(2)) };
    match store.create_run(run).await {
        Ok(()) => assert_eq!(store.run(&run_id(2)).await.unwrap().unwrap().title, wild),
        Err(error) => {
            assert!(matches!(error, StoreError::Misfit(_)), "{error:?}");
            assert_eq!(store.run(&run_id(2)).await.unwrap(), None);
        }
    }
}

async fn artifacts_are_stored_once_and_found_by_their_hash(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let bytes: &[u8] = b"\x89PNG\0\xff";
    let sha256 = store.keep_artifact(&id, bytes).await.unwrap();
    assert_eq!(sha256, Sha256Hex::of(bytes));
    let empty = store.keep_artifact(&id, b"").await.unwrap();
    let other = place.open().await;
    assert_eq!(other.artifact(&id, &sha256).await.unwrap().as_deref(), Some(bytes));
    assert_eq!(other.artifact(&id, &empty).await.unwrap().as_deref(), Some(&b""[..]));
    // Artifacts are separate for each run.
    other.create_run(new_run(&run_id(2))).await.unwrap();
    assert_eq!(other.artifact(&run_id(2), &sha256).await.unwrap(), None);
    // Storing it again is allowed even after the end.
    store.commit(&id, the_end()).await.unwrap();
    assert_eq!(store.keep_artifact(&id, bytes).await.unwrap(), sha256);
    store.delete_runs(std::slice::from_ref(&id)).await.unwrap();
    store.create_run(new_run(&id)).await.unwrap();
    assert_eq!(store.artifact(&id, &sha256).await.unwrap(), None);
}

async fn an_artifact_that_is_too_large_is_refused(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let mut bytes = vec![7; MAX_ARTIFACT_BYTES];
    let sha256 = store.keep_artifact(&id, &bytes).await.unwrap();
    assert!(store.artifact(&id, &sha256).await.unwrap() == Some(bytes.clone()));
    bytes.push(7);
    let refused = store.keep_artifact(&id, &bytes).await.unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { what: "an artefact", .. }), "{refused:?}");
}

async fn spending_stays_until_it_is_updated(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let read = async || {
        let row = store.run(&id).await.unwrap().unwrap();
        (row.spent, row.updated_at_ms)
    };
    let say = async |spent, at_ms| {
        store.commit(&id, RunCommit { spent, at_ms, ..RunCommit::default() }).await.unwrap();
    };
    say(None, 1_500).await;
    assert_eq!(read().await, (None, 1_000));
    store.commit(&id, answered("ask-1")).await.unwrap();
    assert_eq!(read().await, (Some(spent(7)), 2_000));
    say(Some(spent(7)), 2_500).await;
    assert_eq!(read().await, (Some(spent(7)), 2_000));
    say(Some(spent(9)), 3_000).await;
    store.commit(&id, RunCommit { spent: None, ..the_end() }).await.unwrap();
    assert_eq!(read().await, (Some(spent(9)), 3_000));
}

async fn control_requests_are_stored_once_and_cleared(place: &dyn Place) {
    let (driver, id) = run_in_store(place).await;
    let other = place.open().await;
    assert_eq!(driver.control_requests(&id).await.unwrap(), BTreeSet::new());
    for request in [ControlRequest::Pause, ControlRequest::Cancel, ControlRequest::Pause] {
        other.request_control(&id, request).await.unwrap();
    }
    assert_eq!(
        driver.control_requests(&id).await.unwrap(),
        BTreeSet::from([ControlRequest::Cancel, ControlRequest::Pause])
    );
    for _ in 0..2 {
        driver.clear_control(&id, ControlRequest::Pause).await.unwrap();
        assert_eq!(
            other.control_requests(&id).await.unwrap(),
            BTreeSet::from([ControlRequest::Cancel])
        );
    }
}

fn approval(move_id: &str, by: &str) -> MoveApproval {
    MoveApproval {
        move_id: move_id.to_owned(),
        by: by.to_owned(),
        note: "checked against the filing".to_owned(),
        at_ms: 4_000,
    }
}

async fn runs_with_a_control_request_are_found(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.create_run(new_run(&run_id(2))).await.unwrap();
    store.create_run(new_run(&run_id(4))).await.unwrap();
    store.request_control(&id, ControlRequest::Cancel).await.unwrap();
    store.request_control(&run_id(2), ControlRequest::Pause).await.unwrap();
    store.request_control(&run_id(4), ControlRequest::Cancel).await.unwrap();
    let asked = [1, 2, 3].map(run_id);
    assert_eq!(
        store.runs_with_control_request(&asked, ControlRequest::Cancel).await.unwrap(),
        BTreeSet::from([run_id(1)])
    );
    assert_eq!(
        store.runs_with_control_request(&asked, ControlRequest::Pause).await.unwrap(),
        BTreeSet::from([run_id(2)])
    );
    assert_eq!(
        store.runs_with_control_request(&[], ControlRequest::Pause).await.unwrap(),
        BTreeSet::new()
    );
}

async fn the_first_approval_of_a_move_is_kept_even_after_the_end(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.commit(&id, the_end()).await.unwrap();
    for approval in [approval("m7", "ada"), approval("m3", "ada"), approval("m7", "bob")] {
        store.approve(&id, approval).await.unwrap();
    }
    let kept = place.open().await.approvals(&id).await.unwrap();
    assert_eq!(kept, [approval("m3", "ada"), approval("m7", "ada")]);
}

fn veto(move_id: &str, by: &str) -> ReviewChange {
    let what = ReviewAction::Veto { move_id: move_id.to_owned(), why: "too dear".to_owned() };
    ReviewChange { by: by.to_owned(), at_ms: 4_000, what }
}

async fn changes_keep_their_order_until_they_are_deleted(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    store.add_changes(&id, vec![veto("m7", "ada"), veto("m3", "ada")]).await.unwrap();
    store.add_changes(&id, vec![veto("m7", "bob")]).await.unwrap();
    let other = place.open().await;
    let kept = other.changes(&id).await.unwrap();
    assert_eq!(kept, [veto("m7", "ada"), veto("m3", "ada"), veto("m7", "bob")]);
    for _ in 0..2 {
        other.forget_changes(&id).await.unwrap();
        assert_eq!(store.changes(&id).await.unwrap(), []);
    }
}

async fn outcomes_of_forecasts_are_replaced_and_deleted_with_their_run(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    assert_eq!(store.later_outcomes(&id).await.unwrap(), None);
    store.commit(&id, the_end()).await.unwrap();
    let other = place.open().await;
    for day in ["2026-03-01", "2026-04-02"] {
        let mut outcomes = RunOutcomes::default();
        outcomes.note("m7", MoveNote::Taken(CalendarDay::parse(day).unwrap()), None);
        store.set_later_outcomes(&id, &outcomes).await.unwrap();
        assert_eq!(other.later_outcomes(&id).await.unwrap(), Some(outcomes));
    }
    store.create_run(new_run(&run_id(2))).await.unwrap();
    assert_eq!(other.runs_with_later_outcomes().await.unwrap(), std::slice::from_ref(&id));
    store.delete_runs(std::slice::from_ref(&id)).await.unwrap();
    assert_eq!(other.runs_with_later_outcomes().await.unwrap(), []);
}

async fn a_deleted_run_is_gone_and_its_id_is_free(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let fresh = snapshot(&*store, &id).await;
    let other = run_id(2);
    store.create_run(new_run(&other)).await.unwrap();
    for id in [&id, &other] {
        store.commit(id, answered("ask-1")).await.unwrap();
        store.request_control(id, ControlRequest::Pause).await.unwrap();
    }
    let untouched = snapshot(&*store, &other).await;
    for _ in 0..2 {
        store.delete_runs(std::slice::from_ref(&id)).await.unwrap();
        assert_eq!(store.run(&id).await.unwrap(), None);
    }
    assert_eq!(snapshot(&*store, &other).await, untouched);
    store.create_run(new_run(&id)).await.unwrap();
    assert_eq!(snapshot(&*store, &id).await, fresh);
}

async fn deleting_several_runs_leaves_the_others_unchanged(place: &dyn Place) {
    let (store, first) = run_in_store(place).await;
    let other = place.open().await;
    let [second, third] = [run_id(2), run_id(3)];
    for id in [&second, &third] {
        store.create_run(new_run(id)).await.unwrap();
    }
    // Each run has its own copy of the same bytes.
    for id in [&first, &second, &third] {
        store.keep_artifact(id, b"chart").await.unwrap();
        store.commit(id, answered("ask-1")).await.unwrap();
        store.approve(id, approval("m1", "ada")).await.unwrap();
    }
    let untouched = snapshot(&*store, &second).await;
    store.delete_runs(&[first.clone(), third.clone(), run_id(9)]).await.unwrap();
    let left = other.runs(ALL).await.unwrap();
    let left: Vec<_> = left.iter().map(|row| &row.run_id).collect();
    assert_eq!(left, [&second]);
    assert_eq!(snapshot(&*other, &second).await, untouched);
    let kept = other.artifact(&second, &Sha256Hex::of(b"chart")).await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"chart"[..]));
    assert_eq!(other.approvals(&second).await.unwrap(), [approval("m1", "ada")]);
}

async fn the_size_of_a_run_is_the_size_of_its_content(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    let empty = store.run_bytes(&id).await.unwrap();
    assert_eq!(empty, serde_json::to_string(&new_run(&id).spec).unwrap().len() as u64);
    store.keep_artifact(&id, &[7; 1_000]).await.unwrap();
    assert_eq!(store.run_bytes(&id).await.unwrap(), empty + 1_000);
    let mut commit = answered("ask-1");
    // Counts bytes, not characters.
    commit.results[0].1 = entry("question", &"é".repeat(5_000));
    store.commit(&id, commit).await.unwrap();
    let bytes = store.run_bytes(&id).await.unwrap();
    assert!((empty + 11_000..empty + 13_000).contains(&bytes), "{bytes}");
}

async fn space_of_deleted_runs_is_reclaimed(place: &dyn Place) {
    const BYTES: usize = 3 << 20;
    let (store, id) = run_in_store(place).await;
    let other = run_id(2);
    store.create_run(new_run(&other)).await.unwrap();
    for id in [&id, &other] {
        store.keep_artifact(id, &[7; BYTES]).await.unwrap();
    }
    let untouched = snapshot(&*store, &other).await;
    assert_eq!(store.reclaim_space().await.unwrap(), 0);
    store.delete_runs(std::slice::from_ref(&id)).await.unwrap();
    // Where the space goes depends on the store; see `sqlite.rs` and `postgres.rs`.
    store.reclaim_space().await.unwrap();
    assert_eq!(store.reclaim_space().await.unwrap(), 0);
    assert_eq!(snapshot(&*store, &other).await, untouched);
    let kept = store.artifact(&other, &Sha256Hex::of(&[7; BYTES])).await.unwrap();
    assert!(kept == Some(vec![7; BYTES]));
}

async fn every_request_about_an_unknown_run_is_refused(place: &dyn Place) {
    let (store, _) = run_in_store(place).await;
    let id = run_id(2);
    let answers = [
        store.commit(&id, answered("ask-1")).await.err(),
        store.journal(&id).await.err(),
        store.journal_entries(&id, &[effect_id("ask-1")]).await.err(),
        store.timings(&id, &[effect_id("ask-1")]).await.err(),
        store.events(&id, 0, 100).await.err(),
        store.request_control(&id, ControlRequest::Pause).await.err(),
        store.clear_control(&id, ControlRequest::Pause).await.err(),
        store.control_requests(&id).await.err(),
        store.approve(&id, approval("m1", "ada")).await.err(),
        store.approvals(&id).await.err(),
        store.add_changes(&id, vec![veto("m1", "ada")]).await.err(),
        store.changes(&id).await.err(),
        store.forget_changes(&id).await.err(),
        store.set_later_outcomes(&id, &RunOutcomes::default()).await.err(),
        store.later_outcomes(&id).await.err(),
        store.run_bytes(&id).await.err(),
        store.keep_artifact(&id, b"chart").await.err(),
        store.artifact(&id, &Sha256Hex::of(b"chart")).await.err(),
    ];
    for answer in answers {
        assert!(matches!(answer, Some(StoreError::UnknownRun(run)) if run == id));
    }
}

async fn a_dropped_commit_has_all_of_its_effect_or_none(place: &dyn Place) {
    let (store, id) = run_in_store(place).await;
    for round in 0..100 {
        let mut commit = pin!(store.commit(&id, answered(&format!("e-{round}"))));
        // Dropped after this many polls, at a different point each time.
        for _ in 0..round * 4 {
            if commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    // After the next commit, all earlier requests have completed.
    store.commit(&id, answered("last")).await.unwrap();
    let events = store.events(&id, 0, u32::MAX).await.unwrap();
    let journal = store.journal(&id).await.unwrap();
    let told: BTreeSet<_> = events.iter().map(|stored| stored.event.key.clone()).collect();
    let answered: BTreeSet<_> = journal.keys().map(|id| event(id.as_str(), "").key).collect();
    assert_eq!(told, answered);
    assert_eq!(numbers(&events), (1..=events.len() as u64).collect::<Vec<_>>());
}
