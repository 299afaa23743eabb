use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(value: Value, expected: Result<&str, CanonicalJsonError>) {
    assert_eq!(canonical_json(&value), expected.map(str::to_owned));
}

#[test]
fn canonical_json_sorts_keys_and_removes_white_space() {
    check(
        json!({"b": [1, {"z": null, "a": true}], "a": "x y"}),
        Ok(r#"{"a":"x y","b":[1,{"a":true,"z":null}]}"#),
    );
}

#[test]
fn values_without_a_canonical_form_are_refused() {
    check(json!({"a": 1.5}), Err(CanonicalJsonError::Float));
    check(json!({"ä": 1}), Err(CanonicalJsonError::NonAsciiKey));
}

fn json_without_floats() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-z]{0,4}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_json_is_equivalent_and_idempotent(value in json_without_floats()) {
        let text = canonical_json(&value).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(canonical_json(&read).unwrap(), text);
    }
}
