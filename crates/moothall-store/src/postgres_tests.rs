use super::*;

#[test]
fn run_ids_are_found_by_any_valid_prefix() {
    let range = |prefix: &str| id_range(prefix).map(|(first, last)| format!("{first} {last}"));
    for (prefix, first, last) in [
        ("", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        ("af", "af000000-0000-0000-0000-000000000000", "afffffff-ffff-ffff-ffff-ffffffffffff"),
        (
            "af000001-",
            "af000001-0000-0000-0000-000000000000",
            "af000001-ffff-ffff-ffff-ffffffffffff",
        ),
    ] {
        assert_eq!(range(prefix), Some(format!("{first} {last}")), "{prefix}");
    }
    let whole = "af000001-0000-7000-8000-000000000000";
    assert_eq!(range(whole), Some(format!("{whole} {whole}")));
    for nothing in ["g", "AF", "af000001a", "é", "\0", &format!("{whole}0"), "af000001000070008"] {
        assert_eq!(range(nothing), None, "{nothing:?}");
    }
}

/// Regression test: all workers once reconnected in step and overloaded a server that had just
/// started.
#[test]
fn workers_that_lost_a_server_reconnect_at_different_times() {
    let pauses_of = |_| retry_delays().take(12).collect::<Vec<Duration>>();
    let workers: Vec<Vec<Duration>> = (0..8).map(pauses_of).collect();
    for (at, others) in (0..8).flat_map(|one| (0..one).map(move |other| (one, other))) {
        assert_ne!(workers[at], workers[others]);
    }
    for (step, pause) in workers.iter().flat_map(|retry_delays| retry_delays.iter().enumerate()) {
        let shortest = (MIN_RETRY_DELAY * (1 << step)).min(MAX_RETRY_DELAY);
        assert!((shortest..=shortest * 2).contains(pause), "{step}: {pause:?}");
    }
}
