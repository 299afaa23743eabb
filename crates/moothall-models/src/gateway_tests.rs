use super::*;

#[test]
fn pauses_grow_stay_below_the_longest_and_differ_between_callers() {
    let retry = RetrySettings {
        retries: 6,
        first_delay: Duration::from_millis(100),
        max_delay: Duration::from_millis(1000),
    };
    let sequences: Vec<Vec<Duration>> = (0..8).map(|_| delays(&retry).collect()).collect();
    for pauses in &sequences {
        assert_eq!(pauses.len(), 6);
        assert!(pauses[0] >= Duration::from_millis(100) && pauses[1] >= Duration::from_millis(200));
        assert!(pauses.iter().all(|pause| *pause <= retry.max_delay), "{pauses:?}");
    }
    // Regression: the jitter had a fixed seed, so all callers retried at the same time.
    assert!(sequences.iter().any(|pauses| pauses != &sequences[0]), "{sequences:?}");
}
