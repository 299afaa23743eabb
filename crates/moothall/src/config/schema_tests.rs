use serde::{Deserialize, Serialize};

use super::*;

/// One field of every kind that a schema can express.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Sample {
    /// Said of the text.
    text: String,
    optional_text: Option<String>,
    count: u16,
    positive: Option<std::num::NonZeroU32>,
    signed: i64,
    ratio: f64,
    switch: bool,
    plain: Option<Plain>,
    documented: Documented,
    optional_documented: Option<Documented>,
    list: Vec<String>,
    inner: Inner,
    named: std::collections::BTreeMap<String, Inner>,
}

/// Not shown, because the field says it better.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Inner {
    leaf: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Plain {
    One,
    Two,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Documented {
    /// First.
    One,
    /// Second.
    Two,
}

#[track_caller]
fn check(path: &str, expected: Option<&str>) {
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    let root = ConfigNode::of::<Sample>();
    assert_eq!(root.leaf(&path).map(|leaf| leaf.kind.to_string()).as_deref(), expected, "{path:?}");
}

#[test]
fn each_kind_of_field_is_recognised() {
    check("text", Some("a string"));
    check("optional_text", Some("a string"));
    check("count", Some("an integer of at least 0"));
    check("positive", Some("an integer of at least 1"));
    check("signed", Some("an integer"));
    check("ratio", Some("a number"));
    check("switch", Some("`true` or `false`"));
    check("plain", Some("one of `One`, `Two`"));
    check("documented", Some("one of `One`, `Two`"));
    check("optional_documented", Some("one of `One`, `Two`"));
    check("list", Some("another type of value"));
}

#[test]
fn the_schema_describes_fields_inside_tables_but_not_tables() {
    check("inner.leaf", Some("`true` or `false`"));
    check("named.anything.leaf", Some("`true` or `false`"));
    check("inner", None);
    check("named", None);
    check("named.anything", None);
    check("text.below", None);
    check("absent", None);
}

#[test]
fn the_doc_of_a_field_is_its_description() {
    let leaf =
        ConfigKeySpec { kind: ConfigValueKind::Text, description: "Said of the text.".to_owned() };
    assert_eq!(ConfigNode::of::<Sample>().child("text"), Some(&ConfigNode::Leaf(leaf)));
}

#[test]
fn every_key_of_the_configuration_has_a_type_and_a_description() {
    for (path, node) in ConfigNode::root().walk() {
        let (kind, description) = match node {
            ConfigNode::Leaf(leaf) => (Some(&leaf.kind), &leaf.description),
            ConfigNode::Section { description, .. } | ConfigNode::Map { description, .. } => {
                (None, description)
            }
        };
        assert_ne!(kind, Some(&ConfigValueKind::Other), "{path:?}");
        assert_ne!(description, "", "{path:?}");
    }
}
