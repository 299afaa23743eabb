use super::*;

#[test]
fn retry_delays_grow_up_to_the_maximum_and_differ_between_callers() {
    let retry = RetrySettings {
        retries: 6,
        first_delay: Duration::from_millis(100),
        max_delay: Duration::from_millis(1000),
        ..RetrySettings::default()
    };
    let sequences: Vec<Vec<Duration>> = (0..8).map(|_| delays(&retry).take(6).collect()).collect();
    for pauses in &sequences {
        assert!(pauses[0] >= Duration::from_millis(100) && pauses[1] >= Duration::from_millis(200));
        assert!(pauses.iter().all(|pause| *pause <= retry.max_delay), "{pauses:?}");
    }
    // Regression: the jitter had a fixed seed, so all callers retried at the same time.
    assert!(sequences.iter().any(|pauses| pauses != &sequences[0]), "{sequences:?}");
}
