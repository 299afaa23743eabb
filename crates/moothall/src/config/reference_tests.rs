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

Delay before the first retry; it about doubles with each further one.

- Type: a duration such as \"30s\"
- Default: `\"500ms\"`
- Variable: `MOOTHALL_RETRY__FIRST_DELAY`
",
    );
    check(
        "
### `provider.NAME.wire`

API format of the provider. Defaults to `openai-chat` for providers that are not built in.

- Type: one of `openai-chat`, `anthropic-messages`, `ollama-chat`
- Default: not set
- Variable: `MOOTHALL_PROVIDER__NAME__WIRE`
",
    );
}

#[test]
fn a_section_has_a_heading_and_a_description() {
    check(
        "\n## `[budget]`\n\nSpend limits of a run. A run stops before a call that could exceed them.\n\n### `budget.usd`\n",
    );
    check("\n## `[provider.NAME]`\n\nProviders by name: ");
    check("\n## Top-level keys\n\n### `model`\n");
}

#[test]
fn every_key_is_in_the_manual() {
    for (path, _) in ConfigNode::root().walk() {
        check(&dotted(&path));
    }
}
