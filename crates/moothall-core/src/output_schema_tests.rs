//! Generates answers that conform to a schema, for the tests of their parsers.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::model::OutputSchema;

/// The JSON texts of answers that a server with constrained decoding can give.
pub(crate) fn conforming(schema: &OutputSchema) -> impl Strategy<Value = String> + use<> {
    let schema: Value = serde_json::from_str(schema.text()).unwrap();
    value(&schema).prop_map(|value| value.to_string())
}

fn value(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(choices) = schema["enum"].as_array() {
        return proptest::sample::select(choices.clone()).boxed();
    }
    let bound = |name: &str, default: u64| {
        usize::try_from(schema[name].as_u64().unwrap_or(default)).unwrap()
    };
    match schema["type"].as_str() {
        Some("object") => {
            let field = |(name, schema): (&String, &Value)| (Just(name.clone()), value(schema));
            let fields: Vec<_> =
                schema["properties"].as_object().unwrap().iter().map(field).collect();
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())).boxed()
        }
        Some("array") => {
            let count = bound("minItems", 0)..=bound("maxItems", 8);
            vec(value(&schema["items"]), count).prop_map(Value::from).boxed()
        }
        Some("string") => {
            assert_eq!(schema["minLength"], 1, "{schema}");
            let longest = bound("maxLength", 100);
            // Schemas cannot exclude texts of spaces.
            let text =
                format!("[A-Za-z][A-Za-z0-9 .,:;%$()\\[\\]\"\n-]{{0,{}}}", longest.min(100) - 1);
            let text = proptest::string::string_regex(&text).unwrap().prop_map(Value::from);
            prop_oneof![9 => text, 1 => Just(Value::from("x".repeat(longest)))].boxed()
        }
        Some("integer") => {
            let number = bound("minimum", 0)..=bound("maximum", 100);
            number.prop_map(Value::from).boxed()
        }
        Some("number") => (0.0..=1.0_f64).prop_map(Value::from).boxed(),
        _ => panic!("{schema}"),
    }
}
