use super::*;

#[test]
fn the_demo_delay_is_near_the_setting_and_deterministic() {
    let delay = DemoDelay::of(Duration::from_secs(2));
    let ids = ["m1/round-1/critic", "m1/round-1/D1", "m7/round-3/critic/D2", "F1"];
    for id in ids.map(|id| id.parse::<EffectId>().unwrap()) {
        let wait = delay.wait(&id);
        assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&wait), "{id}: {wait:?}");
        assert_eq!(wait, delay.wait(&id));
    }
}
