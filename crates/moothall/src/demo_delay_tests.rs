use super::*;

#[test]
fn answer_takes_about_as_long_as_was_said_and_always_the_same() {
    let pace = DemoDelay::of(Duration::from_secs(2));
    let ids = ["m1/round-1/critic", "m1/round-1/D1", "m7/round-3/critic/D2", "F1"];
    for id in ids.map(|id| id.parse::<EffectId>().unwrap()) {
        let wait = pace.wait(&id);
        assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&wait), "{id}: {wait:?}");
        assert_eq!(wait, pace.wait(&id));
    }
}
