//! The reference manual of the configuration, generated from the field docs.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::Config;
use super::environment::variable_of;
use super::schema::{ANY_NAME, Leaf, Node, dotted};

const INTRODUCTION: &str = "\
# Configuration

Settings live in `moothall.toml`. It is looked for in this order, and the first one found is used:

1. the file named by `--config FILE`
2. the file named by the variable `MOOTHALL_CONFIG`
3. `moothall.toml` in the folder where the program is started
4. `moothall/moothall.toml` in `$XDG_CONFIG_HOME` (by default `~/.config`)

A flag beats a `MOOTHALL_*` variable, which beats the same variable in a `.env` file beside `moothall.toml`, which beats
`moothall.toml`, which beats the default. In the name of a variable two underscores stand for the dot of the key, and an empty
variable counts as not set. A key that does not exist is an error.

`moothall config show` prints every value and where it came from, `moothall config check` every mistake, `moothall config path`
every file and folder. `MOOTHALL_DATA_DIR` moves the data folder, and with it cache and state.

API keys are not configuration. They are read from variables such as `ANTHROPIC_API_KEY`, from the `.env` file, or from `keys.toml`
in the config folder, which must be closed to other users (`chmod 600`).

## Before the first section
";

/// The manual as Markdown: each key with its type, default, variable and description.
pub fn reference() -> String {
    // A default that cannot be written would be a bug; the test of the whole text would show it.
    let defaults = Table::try_from(Config::default()).unwrap_or_default();
    let mut text = INTRODUCTION.to_owned();
    for (path, node) in Node::root().walk() {
        match node {
            Node::Leaf(leaf) => key(&mut text, &path, leaf, default(&defaults, &path)),
            // What the names of a map mean and what its elements are stand under one heading.
            Node::Map { description, .. } => {
                let _ = write!(text, "\n## `[{}.{ANY_NAME}]`\n\n{description}\n", dotted(&path));
            }
            Node::Section { description, .. }
                if path.last().is_some_and(|name| name == ANY_NAME) =>
            {
                let _ = write!(text, "\n{description}\n");
            }
            // Writing to a String cannot fail.
            Node::Section { description, .. } => {
                let _ = write!(text, "\n## `[{}]`\n\n{description}\n", dotted(&path));
            }
        }
    }
    text
}

fn key(text: &mut String, path: &[String], leaf: &Leaf, default: Option<&Value>) {
    let (name, variable, kind, description) =
        (dotted(path), variable_of(path), &leaf.kind, &leaf.description);
    let default = default.map_or_else(|| "not set".to_owned(), |value| format!("`{value}`"));
    let _ = write!(
        text,
        "\n### `{name}`\n\n{description}\n\n- Takes {kind}\n- Default: {default}\n- Variable: `{variable}`\n"
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
