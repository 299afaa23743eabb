use proptest::prelude::*;

use super::*;

fn entry() -> Value {
    json!({ "command": "moothall", "args": ["mcp", "--workspace", "."] })
}

fn hook() -> JsonHook {
    JsonHook {
        event: "PreToolUse",
        matcher: "Write|Edit",
        command: "moothall hook claude-code".to_owned(),
        timeout: 30,
        name: None,
    }
}

/// Adds the entry, adds it again, and removes it.
#[track_caller]
fn check(before: &str, after: &str) {
    let added = set(before, "mcpServers", "moothall", &entry()).unwrap();
    assert_eq!(added, after);
    assert_eq!(set(&added, "mcpServers", "moothall", &entry()).unwrap(), added);
    assert_eq!(remove(&added, "mcpServers", "moothall").unwrap(), before);
    assert_eq!(remove(before, "mcpServers", "moothall").unwrap(), before);
}

#[test]
fn a_server_is_added_and_removed_without_other_changes() {
    check(
        "{\n  // mine\n  \"theme\": \"dark\", /* kept */\n\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" } // last\n  }\n}\n",
        "{\n  // mine\n  \"theme\": \"dark\", /* kept */\n\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }, // last\n    \"moothall\": {\n      \"command\": \"moothall\",\n      \"args\": [\"mcp\", \"--workspace\", \".\"]\n    }\n  }\n}\n",
    );
    check(
        "{\n\t\"theme\": \"dark\",\n}",
        "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"moothall\": {\n\t\t\t\"command\": \"moothall\",\n\t\t\t\"args\": [\"mcp\", \"--workspace\", \".\"],\n\t\t},\n\t},\n}",
    );
    check(
        "{\r\n    \"a\": 1\r\n}\r\n",
        "{\r\n    \"a\": 1,\r\n    \"mcpServers\": {\r\n        \"moothall\": {\r\n            \"command\": \"moothall\",\r\n            \"args\": [\"mcp\", \"--workspace\", \".\"]\r\n        }\r\n    }\r\n}\r\n",
    );
}

#[test]
fn an_empty_file_becomes_an_object() {
    let added = set("", "mcpServers", "moothall", &entry()).unwrap();
    assert_eq!(
        added,
        "{\n  \"mcpServers\": {\n    \"moothall\": {\n      \"command\": \"moothall\",\n      \"args\": [\"mcp\", \"--workspace\", \".\"]\n    }\n  }\n}\n"
    );
    assert_eq!(remove(&added, "mcpServers", "moothall").unwrap(), "{}\n");
}

#[test]
fn an_existing_entry_keeps_fields_of_the_user() {
    let before = r#"{ "mcpServers": { "moothall": { "command": "/old/moothall", "args": ["mcp"], "env": { "A": "1" } } } }"#;
    let after = set(before, "mcpServers", "moothall", &entry()).unwrap();
    let value: Value = serde_json::from_str(&after).unwrap();
    let expected =
        json!({ "command": "moothall", "args": ["mcp", "--workspace", "."], "env": { "A": "1" } });
    assert_eq!(value["mcpServers"]["moothall"], expected, "{after}");
}

#[test]
fn a_hook_is_added_and_removed_without_other_changes() {
    let before = "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [{ \"type\": \"command\", \"command\": \"./lint.sh\" }]\n      }\n    ]\n  }\n}\n";
    let after = "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [{ \"type\": \"command\", \"command\": \"./lint.sh\" }]\n      },\n      {\n        \"matcher\": \"Write|Edit\",\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"moothall hook claude-code\",\n            \"timeout\": 30\n          }\n        ]\n      }\n    ]\n  }\n}\n";
    let added = hook().add(before).unwrap();
    assert_eq!(added, after);
    assert_eq!(hook().add(&added).unwrap(), added);
    assert_eq!(hook().remove(&added).unwrap(), before);

    let alone = "{\n  \"model\": \"x\"\n}\n";
    let added = hook().add(alone).unwrap();
    assert_eq!(hook().add(&added).unwrap(), added);
    assert_eq!(hook().remove(&added).unwrap(), alone);
}

#[test]
fn an_earlier_version_of_the_hook_is_replaced() {
    let old = JsonHook { command: "/old/bin/moothall hook claude-code".to_owned(), ..hook() };
    let added = old.add("{}\n").unwrap();
    let replaced = hook().add(&added).unwrap();
    let value: Value = serde_json::from_str(&replaced).unwrap();
    assert_eq!(value, json!({ "hooks": { "PreToolUse": [hook().group()] } }), "{replaced}");
    assert!(!replaced.contains("/old/bin"), "{replaced}");
}

#[test]
fn files_that_cannot_be_edited_safely_are_refused() {
    for (text, why) in [
        ("{ \"a\": ", "it is not valid JSON"),
        ("[]", "it is not a JSON object"),
        ("{ a: 1 }", "it is not valid JSON"),
        ("{ \"mcpServers\": [] }", "`mcpServers` is not an object"),
        ("{ \"mcpServers\": {}, \"mcpServers\": {} }", "it has two values for `mcpServers`"),
        ("{} {}", "it is not valid JSON"),
    ] {
        let refused = set(text, "mcpServers", "moothall", &entry()).unwrap_err();
        assert!(refused.starts_with(why), "{text}: {refused}");
    }
    let refused = hook().add("{ \"hooks\": { \"PreToolUse\": {} } }").unwrap_err();
    assert_eq!(refused, "`hooks.PreToolUse` is not an array");
}

proptest! {
    /// Whatever is in a file, adding and removing the entry changes nothing else.
    #[test]
    fn other_values_survive(keys in prop::collection::btree_map("[a-z\" é]{0,6}", "[^\u{0}]{0,8}", 0..5), pretty in any::<bool>()) {
        let value: Value = serde_json::to_value(&keys).unwrap();
        let text = match pretty {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        let added = set(&text, "mcpServers", "moothall", &entry()).unwrap();
        let mut read: Value = serde_json::from_str(&added).unwrap();
        prop_assert_eq!(&read["mcpServers"]["moothall"], &entry());
        read.as_object_mut().unwrap().remove("mcpServers");
        prop_assert_eq!(&read, &value);
        let removed: Value = serde_json::from_str(&remove(&added, "mcpServers", "moothall").unwrap()).unwrap();
        prop_assert_eq!(&removed, &value);
    }
}
