use super::*;

#[test]
fn at_most_ten_requests_go_out_in_a_second() {
    const { assert!(PER_SECOND + AT_ONCE <= 10) };
    let limiter = Limiter::new();
    let ready = (0..100).filter(|_| limiter.quota.check().is_ok()).count();
    // All of a hundred are asked in far less than the time that one needs to refill.
    assert!((AT_ONCE as usize..=AT_ONCE as usize + 1).contains(&ready), "{ready}");
}

#[tokio::test]
async fn whoever_comes_too_early_waits_for_the_next_eighth_of_a_second() {
    let limiter = Limiter::new();
    let started = std::time::Instant::now();
    for _ in 0..4 {
        limiter.wait().await;
    }
    // Two at once, then one after each 125 ms.
    assert!(started.elapsed() >= std::time::Duration::from_millis(240));
}
