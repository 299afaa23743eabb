use super::*;

#[test]
fn ids_are_found_by_any_beginning_that_an_id_can_have() {
    let range =
        |prefix: &str| ids_that_begin(prefix).map(|(first, last)| format!("{first} {last}"));
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
fn workers_that_lost_the_same_server_come_back_at_different_moments() {
    let pauses_of = |_| pauses().take(12).collect::<Vec<Duration>>();
    let workers: Vec<Vec<Duration>> = (0..8).map(pauses_of).collect();
    for (at, others) in (0..8).flat_map(|one| (0..one).map(move |other| (one, other))) {
        assert_ne!(workers[at], workers[others]);
    }
    for (step, pause) in workers.iter().flat_map(|pauses| pauses.iter().enumerate()) {
        let shortest = (FIRST_PAUSE * (1 << step)).min(LONGEST_PAUSE);
        assert!((shortest..=shortest * 2).contains(pause), "{step}: {pause:?}");
    }
}
