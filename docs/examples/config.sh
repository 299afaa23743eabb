#!/usr/bin/env bash
# Configuration: flag beats variable beats .env beats file beats default; mistakes are named with their cure.
# shellcheck disable=SC2016  # the program's own words hold backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

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
shown docs/src/configuration.md "$out"

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

# A key that does not exist is an error, with the nearest name.
cat >wrong.toml <<'TOML'
[budgt]
usd = "1.00"
TOML
run 2 config check --config wrong.toml
says 'wrong.toml:2: unknown key `budgt.usd`' "$out"
says 'hint: did you mean `budget.usd`?' "$out"
shown docs/src/configuration.md "$out"
run 2 --config wrong.toml ask "hello"
says 'error: wrong.toml:2: unknown key `budgt.usd`' "$err"

# So is a model that is none, and a key for a provider that does not exist.
echo 'model = "gpt"' >wrong.toml
run 2 config check --config wrong.toml
says 'wrong.toml:1: `model` cannot be used: `gpt` does not name a model' "$out"
echo 'antropic = "sk-of-the-user"' >"$XDG_CONFIG_HOME/moothall/keys.toml"
chmod 600 "$XDG_CONFIG_HOME/moothall/keys.toml"
run 2 config check
says 'has a key for `antropic`, which is no provider' "$out"
rm "$XDG_CONFIG_HOME/moothall/keys.toml"

# A file that merely lies in the working folder may not send your key to an address of its own.
cat >moothall.toml <<'TOML'
[provider.anthropic]
base_url = "http://127.0.0.1:9/v1"
TOML
rm .env
ANTHROPIC_API_KEY=sk-of-the-user run 2 ask "hello"
says "the moothall.toml in this folder decides where your key for anthropic goes" "$err"
shown docs/src/configuration.md "$err"

# Nor may a catalog that such a file names.
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
says "the moothall.toml in this folder decides where your key for anthropic goes" "$err"
