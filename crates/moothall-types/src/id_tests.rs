use super::*;

#[track_caller]
fn check_effect_id(text: &str, accepted: bool) {
    assert_eq!(text.parse::<EffectId>().is_ok(), accepted, "{text:?}");
}

#[test]
fn effect_ids_are_paths_of_plain_segments() {
    check_effect_id("answer", true);
    check_effect_id("m7/round-3/critic/D2", true);
    check_effect_id("answer/ask-2", true);
    check_effect_id("", false);
    check_effect_id("/m7", false);
    check_effect_id("m7/", false);
    check_effect_id("m7//x", false);
    check_effect_id("../journal", false);
    check_effect_id("m7/ö", false);
    check_effect_id(&"x".repeat(MAX_EFFECT_ID_BYTES), true);
    check_effect_id(&"x".repeat(MAX_EFFECT_ID_BYTES + 1), false);
}

#[test]
fn a_child_of_an_effect_id_is_checked_like_any_other() {
    let parent: EffectId = "m7".parse().unwrap();
    assert_eq!(parent.child("ask-2").unwrap().as_str(), "m7/ask-2");
    assert!(parent.child("..").is_err());
}

#[test]
fn run_ids_are_lower_case_uuids() {
    let text = "019a85c0-2f6e-7cc1-a5a0-3b0a4f1d2e3c";
    assert_eq!(text.parse::<RunId>().unwrap().to_string(), text);
    assert!(text.to_uppercase().parse::<RunId>().is_err());
    assert!("019a85c02f6e7cc1a5a03b0a4f1d2e3c".parse::<RunId>().is_err());
    assert!("../../../../etc/passwd-and-some-more".parse::<RunId>().is_err());
}

#[test]
fn an_invalid_id_cannot_be_deserialized() {
    assert!(serde_json::from_str::<EffectId>(r#""a/../b""#).is_err());
    assert!(serde_json::from_str::<RunId>(r#""nope""#).is_err());
}
