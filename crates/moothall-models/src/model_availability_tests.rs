use super::*;

const INTERVAL: Duration = Duration::from_secs(30);

#[test]
fn one_call_per_interval_tries_an_unavailable_model_again() {
    let availability = ModelAvailability::default();
    let start = Instant::now();
    let state = |after: Duration| availability.state("a", start + after, INTERVAL);
    assert_eq!(state(Duration::ZERO), ModelState::Available);
    availability.note_failed("a", FailureKind::Auth, start, INTERVAL);
    let unavailable = ModelState::Unavailable(FailureKind::Auth);
    assert_eq!(state(INTERVAL / 2), unavailable);
    assert_eq!(state(INTERVAL), ModelState::Recheck);
    assert_eq!(state(INTERVAL), unavailable);
    assert_eq!(state(INTERVAL * 2), ModelState::Recheck);
    assert_eq!(availability.state("b", start, INTERVAL), ModelState::Available);
    availability.note_answered("a");
    assert_eq!(state(INTERVAL * 2), ModelState::Available);
}
