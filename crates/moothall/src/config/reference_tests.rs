use super::*;

#[track_caller]
fn check(expected: &str) {
    let text = reference();
    assert!(text.contains(expected), "{expected}\n--- is not in ---\n{text}");
}

#[test]
fn a_key_has_description_type_default_and_variable() {
    check(
        "
### `retry.first_delay`

Wait before the first retry; each further one waits about twice as long.

- Takes a duration such as \"30s\"
- Default: `\"500ms\"`
- Variable: `MOOTHALL_RETRY__FIRST_DELAY`
",
    );
    check(
        "
### `provider.NAME.wire`

Language that the provider speaks. A provider that is not built in speaks `openai-chat` unless told otherwise.

- Takes one of `openai-chat`, `anthropic-messages`, `ollama-chat`
- Default: not set
- Variable: `MOOTHALL_PROVIDER__NAME__WIRE`
",
    );
}

#[test]
fn a_section_has_a_heading_and_a_description() {
    check(
        "\n## `[budget]`\n\nWhat a run may spend. It stops before a call that could go beyond.\n\n### `budget.usd`\n",
    );
    check("\n## `[provider.NAME]`\n\nProviders by name: ");
    check("\n## Before the first section\n\n### `model`\n");
}

#[test]
fn every_key_is_in_the_manual() {
    for (path, _) in Node::root().walk() {
        check(&dotted(&path));
    }
}
