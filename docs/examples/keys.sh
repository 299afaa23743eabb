#!/usr/bin/env bash
# API keys: store, list, test, remove; a command that prints one; and who may set that command. Needs no network.
# shellcheck disable=SC2016  # expected texts contain backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
# Never the keychain of the person who runs this.
unset DBUS_SESSION_BUS_ADDRESS

key=sk-example-5b1bd1f7c0a94e6e
secret_free() {
    [[ $out$err != *sk-example* ]] || fail "the output contains the key"
}

# From a file or a pipe; at a terminal, `moothall key set` asks and shows nothing.
printf '%s\n' "$key" >openai.key
run 0 key set openai <openai.key
says "stored the key of openai in $XDG_CONFIG_HOME/moothall/keys.toml (only you can read it)" "$out"
secret_free
is 600 "$(stat --format %a "$XDG_CONFIG_HOME/moothall/keys.toml")"

run 0 key list
says "openai           file $XDG_CONFIG_HOME/moothall/keys.toml" "$out"
says "azure            none: moothall key set azure" "$out"
secret_free

# A variable comes first.
OPENAI_API_KEY=sk-other run 0 key list
says "openai           environment variable OPENAI_API_KEY" "$out"

# A key on the command line would be visible to other users.
run 2 key set groq "$key"
says "an API key does not belong on the command line" "$err"
secret_free

# A command prints the key when a call needs it. Nothing listens on port 9 of this machine.
cat >lab.toml <<'TOML'
[provider.lab]
base_url = "http://127.0.0.1:9/v1"
key_command = "cat openai.key"
TOML
run 0 key list --config lab.toml
says "lab              key_command" "$out"
run 4 key test lab --config lab.toml
says "check that http://127.0.0.1:9/v1 is reachable" "$err"
secret_free

# A command that fails is reported with one line of its errors.
sed -i 's/cat openai.key/cat missing.key/' lab.toml
run 4 key test lab --config lab.toml
says '`provider.lab.key_command` failed with exit code 1: cat: missing.key: No such file or directory' "$err"

# A file in the working directory cannot start a command.
cp lab.toml moothall.toml
run 2 key test lab
says 'the untrusted moothall.toml in the working directory sets `provider.lab.key_command`' "$err"
rm moothall.toml

# Azure needs the name of your resource.
AZURE_OPENAI_API_KEY=sk-other run 2 ask --model azure/my-deployment "hello"
says "the address of azure is incomplete" "$err"

run 0 key remove openai
run 2 key remove openai
says "no key of openai is stored" "$err"
