use proptest::prelude::*;

use super::*;

fn list(text: &str) -> ModelList {
    text.parse().unwrap()
}

#[test]
fn single_model_is_stored_as_plain_text() {
    let one = list("openai/gpt-5-mini");
    assert_eq!(serde_json::to_string(&one).unwrap(), r#""openai/gpt-5-mini""#);
    assert_eq!(serde_json::from_str::<ModelList>(r#""openai/gpt-5-mini""#).unwrap(), one);
    assert_eq!(serde_json::from_str::<ModelList>(r#"["openai/gpt-5-mini"]"#).unwrap(), one);
}

#[test]
fn list_keeps_its_order() {
    let models = list("openai/b, anthropic/a,groq/c");
    assert_eq!(models.first().to_string(), "openai/b");
    assert_eq!(models.to_string(), "openai/b or anthropic/a or groq/c");
    let stored = serde_json::to_string(&models).unwrap();
    assert_eq!(stored, r#"["openai/b","anthropic/a","groq/c"]"#);
    assert_eq!(serde_json::from_str::<ModelList>(&stored).unwrap(), models);
}

#[test]
fn invalid_lists_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", "`` is not a model name"),
        ("openai/a,", "`` is not a model name"),
        ("openai/a,,openai/b", "`` is not a model name"),
        ("openai/a,openai/a", "`openai/a` is in the list twice"),
        ("o/a,o/b,o/c,o/d,o/e", "too many models in one list: 5 (limit: 4)"),
        ("openai/a,demo", "the demo model and `openai/a` cannot replace each other"),
        ("demo,openai/a", "the demo model and `openai/a` cannot replace each other"),
    ] {
        let error = text.parse::<ModelList>().unwrap_err().to_string();
        assert!(error.starts_with(reason), "{text}: {error}");
    }
    assert!(serde_json::from_str::<ModelList>("[]").is_err());
    assert!(list("demo,demo/second").fallbacks().iter().all(ModelName::is_demo));
}

proptest! {
    #[test]
    fn text_of_any_form_is_parsed_or_refused(text in "[a-z/,. ]{0,60}|.{0,200}") {
        if let Ok(models) = text.parse::<ModelList>() {
            prop_assert!((1..=ModelList::MAX_MODELS).contains(&models.iter().count()));
            let stored = serde_json::to_string(&models).unwrap();
            prop_assert_eq!(serde_json::from_str::<ModelList>(&stored).unwrap(), models);
        }
    }
}
