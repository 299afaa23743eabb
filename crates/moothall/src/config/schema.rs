//! The known keys, derived from the JSON schema of [`Config`], so a new field
//! needs no second list.

use std::fmt;
use std::fmt::Write as _;
use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Config;

/// A key or table of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigNode {
    Leaf(ConfigKeySpec),
    /// A table with known keys, in declaration order.
    Section {
        description: String,
        children: Vec<(String, Self)>,
    },
    /// A table with user-defined keys, such as `[provider.NAME]`.
    Map {
        description: String,
        element: Box<Self>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigKeySpec {
    pub(crate) kind: ConfigValueKind,
    pub(crate) description: String,
}

/// The type of a value. `Display` is for people and fits after "expects".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigValueKind {
    Text,
    Path,
    Duration,
    Dollars,
    /// One or several, in a variable separated by commas.
    Models,
    /// Several strings, in a variable separated by commas.
    List,
    Integer {
        minimum: Option<i64>,
    },
    Number,
    Boolean,
    Choice(Vec<String>),
    /// Cannot be set by a variable, such as a list.
    Other,
}

impl fmt::Display for ConfigValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Path => f.write_str("a path"),
            Self::Duration => f.write_str("a duration such as \"30s\""),
            Self::Dollars => f.write_str("an amount of US dollars such as \"2.50\""),
            Self::Models => f.write_str("a model or a list of models"),
            Self::List => f.write_str("a list of strings"),
            Self::Integer { minimum: Some(minimum) } => {
                write!(f, "an integer of at least {minimum}")
            }
            Self::Integer { minimum: None } => f.write_str("an integer"),
            Self::Number => f.write_str("a number"),
            Self::Boolean => f.write_str("`true` or `false`"),
            Self::Choice(choices) => {
                f.write_str("one of ")?;
                for (index, choice) in choices.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "`{choice}`")?;
                }
                Ok(())
            }
            Self::Other => f.write_str("another type of value"),
        }
    }
}

/// Placeholder for the user-defined name in the path of a key inside a [`ConfigNode::Map`].
pub(crate) const ANY_NAME: &str = "NAME";

impl ConfigNode {
    /// The schema of the whole configuration.
    pub(crate) fn root() -> &'static Self {
        static ROOT: LazyLock<ConfigNode> = LazyLock::new(ConfigNode::of::<Config>);
        &ROOT
    }

    pub(crate) fn of<T: JsonSchema>() -> Self {
        let settings =
            SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        Self::from_schema(settings.into_generator().into_root_schema_for::<T>().as_value())
    }

    fn from_schema(schema: &Value) -> Self {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let description = unwrapped(description);
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let children = properties
                .iter()
                .map(|(name, child)| (name.clone(), Self::from_schema(child)))
                .collect();
            return Self::Section { description, children };
        }
        match schema.get("additionalProperties") {
            Some(element @ Value::Object(_)) => {
                let mut element = Self::from_schema(element);
                // The values of a table of strings are described by the table.
                if let Self::Leaf(leaf) = &mut element {
                    leaf.description.clone_from(&description);
                }
                Self::Map { description, element: Box::new(element) }
            }
            _ => Self::Leaf(ConfigKeySpec {
                kind: ConfigValueKind::from_schema(schema),
                description,
            }),
        }
    }

    /// The key at `path`, if it is not a table.
    pub(crate) fn leaf(&self, path: &[String]) -> Option<&ConfigKeySpec> {
        match (self, path) {
            (Self::Leaf(leaf), []) => Some(leaf),
            (_, [first, rest @ ..]) => self.child(first)?.leaf(rest),
            (Self::Section { .. } | Self::Map { .. }, []) => None,
        }
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Leaf(_) => None,
            Self::Section { children, .. } => {
                children.iter().find(|(child, _)| child == name).map(|(_, node)| node)
            }
            Self::Map { element, .. } => Some(element),
        }
    }

    /// All nodes below this one with their paths, parents first, in declaration order.
    pub(crate) fn walk(&self) -> Vec<(Vec<String>, &Self)> {
        let mut found = Vec::new();
        self.walk_below(&mut Vec::new(), &mut found);
        found
    }

    fn walk_below<'a>(&'a self, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, &'a Self)>) {
        let children: Vec<(&str, &Self)> = match self {
            Self::Leaf(_) => Vec::new(),
            Self::Section { children, .. } => {
                children.iter().map(|(name, node)| (name.as_str(), node)).collect()
            }
            Self::Map { element, .. } => vec![(ANY_NAME, element)],
        };
        for (name, node) in children {
            path.push(name.to_owned());
            found.push((path.clone(), node));
            node.walk_below(path, found);
            path.pop();
        }
    }
}

impl ConfigValueKind {
    fn from_schema(schema: &Value) -> Self {
        match schema.get("x-type").and_then(Value::as_str) {
            Some("path") => return Self::Path,
            Some("duration") => return Self::Duration,
            Some("dollars") => return Self::Dollars,
            Some("models") => return Self::Models,
            Some("list") => return Self::List,
            _ => {}
        }
        let choices = choices(schema);
        if !choices.is_empty() {
            return Self::Choice(choices);
        }
        let is = |name: &str| match schema.get("type") {
            Some(Value::String(only)) => only == name,
            Some(Value::Array(several)) => several.iter().any(|one| one == name),
            _ => false,
        };
        if is("string") {
            Self::Text
        } else if is("integer") {
            Self::Integer { minimum: schema.get("minimum").and_then(Value::as_i64) }
        } else if is("number") {
            Self::Number
        } else if is("boolean") {
            Self::Boolean
        } else {
            Self::Other
        }
    }
}

/// The values of a unit enum. Schemas represent it as plain, with documented variants, or optional.
fn choices(schema: &Value) -> Vec<String> {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let constant = schema.get("const").into_iter();
    let texts = list("enum").chain(constant).filter_map(Value::as_str).map(str::to_owned);
    texts.chain(list("oneOf").chain(list("anyOf")).flat_map(choices)).collect()
}

/// A path as written in TOML. Names that need quotes are quoted, with control characters escaped.
pub(crate) fn dotted<Segment: AsRef<str>>(path: &[Segment]) -> String {
    let mut text = String::new();
    for (index, segment) in path.iter().map(AsRef::as_ref).enumerate() {
        if index > 0 {
            text.push('.');
        }
        let bare = !segment.is_empty()
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if bare {
            text.push_str(segment);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "{segment:?}");
        }
    }
    text
}

/// Joins the lines of a doc comment, keeping paragraphs.
fn unwrapped(text: &str) -> String {
    let paragraph = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
