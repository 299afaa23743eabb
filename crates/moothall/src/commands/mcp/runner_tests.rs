use super::*;

#[test]
fn so_many_commands_are_begun_within_an_hour_and_then_none() {
    let (mut begun, start) = (VecDeque::new(), Instant::now());
    assert!((0..MOST_PER_HOUR).all(|_| begin(&mut begun, start)));
    assert!(!begin(&mut begun, start + HOUR / 2));
    assert!(begin(&mut begun, start + HOUR));
}
