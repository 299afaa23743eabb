use super::*;

#[test]
fn the_number_of_commands_per_hour_is_limited() {
    let (mut starts, start) = (VecDeque::new(), Instant::now());
    assert!((0..MAX_COMMANDS_PER_HOUR).all(|_| try_start(&mut starts, start)));
    assert!(!try_start(&mut starts, start + HOUR / 2));
    assert!(try_start(&mut starts, start + HOUR));
}
