//! Generates the configuration reference from the field docs.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::Config;
use super::environment::variable_of;
use super::schema::{ANY_NAME, ConfigKeySpec, ConfigNode, dotted};

const INTRODUCTION: &str = "\
# Configuration

Settings are read from `moothall.toml`. The first of these files that exists is used:

1. the file given by `--config FILE`
2. the file given by the variable `MOOTHALL_CONFIG`
3. `moothall.toml` in the working directory
4. `moothall/moothall.toml` in `$XDG_CONFIG_HOME` (by default `~/.config`)

A flag overrides a `MOOTHALL_*` variable, which overrides the same variable in a `.env` file next to `moothall.toml`, which overrides
`moothall.toml`, which overrides the default. In the name of a variable, two underscores represent the dot of the key. An empty
variable counts as not set. Unknown keys are errors.

`moothall config show` prints every value and its origin, `moothall config check` reports all problems, and `moothall config path`
lists all files and directories. `MOOTHALL_DATA_DIR` changes the data directory, including cache and state.

API keys are not part of the configuration. `moothall key set PROVIDER` stores one in the keychain of the system, or in `keys.toml` in
the configuration directory, which must not be accessible to other users (`chmod 600`). Variables such as `ANTHROPIC_API_KEY`, also in
the `.env` file, come first, then `key_command` and `key_file` of the provider.

## Top-level keys
";

/// The reference as Markdown: each key with its type, default, variable and description.
pub fn reference() -> String {
    // Defaults always serialize; a test of the whole text would fail otherwise.
    let defaults = Table::try_from(Config::default()).unwrap_or_default();
    let mut text = INTRODUCTION.to_owned();
    for (path, node) in ConfigNode::root().walk() {
        match node {
            ConfigNode::Leaf(leaf) => key(&mut text, &path, leaf, default(&defaults, &path)),
            // A table of strings is described by the key of its values.
            ConfigNode::Map { element, .. } if matches!(**element, ConfigNode::Leaf(_)) => {}
            // The description of a map and of its elements share one heading.
            ConfigNode::Map { description, .. } => {
                let _ = write!(text, "\n## `[{}.{ANY_NAME}]`\n\n{description}\n", dotted(&path));
            }
            ConfigNode::Section { description, .. }
                if path.last().is_some_and(|name| name == ANY_NAME) =>
            {
                let _ = write!(text, "\n{description}\n");
            }
            // Writing to a String cannot fail.
            ConfigNode::Section { description, .. } => {
                let _ = write!(text, "\n## `[{}]`\n\n{description}\n", dotted(&path));
            }
        }
    }
    text
}

fn key(text: &mut String, path: &[String], leaf: &ConfigKeySpec, default: Option<&Value>) {
    let (name, variable, kind, description) =
        (dotted(path), variable_of(path), &leaf.kind, &leaf.description);
    let default = default.map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"));
    let _ = write!(
        text,
        "\n### `{name}`\n\n{description}\n\n- Type: {kind}\n- Default: {default}\n- Variable: `{variable}`\n"
    );
}

fn default<'a>(defaults: &'a Table, path: &[String]) -> Option<&'a Value> {
    match path {
        [] => None,
        [last] => defaults.get(last),
        [first, rest @ ..] => default(defaults.get(first)?.as_table()?, rest),
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
