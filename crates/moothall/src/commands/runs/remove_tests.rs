use moothall_core::access::RunOwner;
use moothall_store::RunState;

use super::*;

fn row(number: u32, updated_at_ms: u64) -> RunRow {
    RunRow {
        run_id: format!("{number:08x}-0000-7000-8000-000000000000").parse().unwrap(),
        owner: RunOwner::local(),
        cap: None,
        spec: moothall_core::StoredSpec::from_columns("run", Value::Null),
        title: String::new(),
        model: "demo".to_owned(),
        build: String::new(),
        created_at_ms: 0,
        state: RunState::Finished,
        updated_at_ms,
        events: 0,
        outcome: None,
        spent: None,
    }
}

/// Runs that changed at these times, newest first, and which of them are deleted.
#[track_caller]
fn check(now_ms: u64, older_than_ms: u64, keep: usize, changed: &[u64], gone: &[u64]) {
    let rows = (0..).zip(changed).map(|(number, at)| row(number, *at)).collect();
    let left = outdated(rows, now_ms, Duration::from_millis(older_than_ms), keep);
    assert_eq!(left.iter().map(|row| row.updated_at_ms).collect::<Vec<_>>(), gone);
}

#[test]
fn runs_unchanged_for_the_given_time_are_pruned_except_the_newest() {
    let changed = [1_000, 900, 500, 100];
    check(1_000, 500, 0, &changed, &[500, 100]);
    check(1_000, 501, 0, &changed, &[100]);
    check(1_000, 0, 0, &changed, &changed);
    check(1_000, 0, 3, &changed, &[100]);
    check(1_000, 0, 9, &changed, &[]);
}

#[test]
fn an_age_before_the_epoch_prunes_nothing() {
    check(1_000, 1_001, 0, &[0, 1_000], &[]);
    check(1_000, u64::MAX, 0, &[0], &[]);
}
