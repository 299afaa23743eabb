#!/usr/bin/env bash
# Configuration precedence: flag, variable, .env, file, default. Errors come with a fix.
# shellcheck disable=SC2016  # expected texts contain backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
unset MOOTHALL_ISOLATION__BUILD

cat >moothall.toml <<'TOML'
# moothall.toml
model = "demo"

[budget]
tokens = 8000
TOML
run 0 config check
is ok "$out"
run 0 config show
says 'tokens = 8000  # from moothall.toml:5' "$out"
says 'retries = 3  # default' "$out"
shown docs/src/operations/configuration.md "$out"

echo 'MOOTHALL_BUDGET__TOKENS=7000' >.env
run 0 config show
says 'tokens = 7000  # from .env MOOTHALL_BUDGET__TOKENS' "$out"

export MOOTHALL_BUDGET__TOKENS=600
run 0 config show
says 'tokens = 600  # from MOOTHALL_BUDGET__TOKENS' "$out"

run 5 ask "hello"
says "only 600 of the run's 600 are left" "$err"
run 5 ask --budget-tokens 500 "hello"
says "only 500 of the run's 500 are left" "$err"
unset MOOTHALL_BUDGET__TOKENS

# An unknown key is an error that suggests the nearest name.
cat >wrong.toml <<'TOML'
[budgt]
usd = "1.00"
TOML
run 2 config check --config wrong.toml
says 'wrong.toml:2: unknown key `budgt.usd`' "$out"
says 'hint: did you mean `budget.usd`?' "$out"
shown docs/src/operations/configuration.md "$out"
run 2 --config wrong.toml ask "hello"
says 'error: wrong.toml:2: unknown key `budgt.usd`' "$err"

# So are an invalid model, and a key for an unknown provider.
echo 'model = "gpt"' >wrong.toml
run 2 config check --config wrong.toml
says 'wrong.toml:1: `model` is invalid: `gpt` is not a model name' "$out"
echo 'antropic = "sk-of-the-user"' >"$XDG_CONFIG_HOME/moothall/keys.toml"
chmod 600 "$XDG_CONFIG_HOME/moothall/keys.toml"
run 2 config check
says 'has a key for the unknown provider `antropic`' "$out"
rm "$XDG_CONFIG_HOME/moothall/keys.toml"

# A file in the working directory cannot send your key to another address.
cat >moothall.toml <<'TOML'
[provider.anthropic]
base_url = "http://127.0.0.1:9/v1"
TOML
rm .env
ANTHROPIC_API_KEY=sk-of-the-user run 2 ask "hello"
says "the untrusted moothall.toml in the working directory redirects your API key for anthropic: ANTHROPIC_API_KEY to http://127.0.0.1:9/v1" "$err"
shown docs/src/operations/configuration.md "$err"

# Neither can a catalog that such a file names.
cat >moothall.toml <<'TOML'
catalog = "catalog.toml"
TOML
cat >catalog.toml <<'TOML'
[provider.anthropic]
wire = "anthropic-messages"
base_url = "http://127.0.0.1:9/v1"
key_env = ["ANTHROPIC_API_KEY"]
default_model = "claude-haiku-5-5"
TOML
ANTHROPIC_API_KEY=sk-of-the-user run 2 ask "hello"
says "the untrusted moothall.toml in the working directory redirects your API key for anthropic: ANTHROPIC_API_KEY to http://127.0.0.1:9/v1" "$err"
