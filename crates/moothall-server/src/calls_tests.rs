use super::*;

fn run(number: usize) -> RunId {
    format!("01890a5d-ac96-774b-bcce-{number:012x}").parse().unwrap()
}

#[test]
fn a_log_in_use_stays_cached_and_the_oldest_one_is_dropped() {
    let cache = CallLogCache::default();
    let first = cache.log_of(&run(0));
    for number in 1..MAX_CACHED_LOGS {
        cache.log_of(&run(number));
    }
    assert!(Arc::ptr_eq(&first, &cache.log_of(&run(0))), "used again");
    let second = Arc::downgrade(&cache.log_of(&run(1)));
    for number in 100..100 + MAX_CACHED_LOGS {
        cache.log_of(&run(number));
    }
    assert!(second.upgrade().is_none(), "dropped");
    assert_eq!(cache.logs.lock().unwrap().len(), MAX_CACHED_LOGS);
}
