#!/usr/bin/env bash
# The folder that tools of the sandbox draft pattern read: created by --handoff, updated by every command, never read back.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada

mkdir -p ws/src ws/.git/info
cd ws
printf 'import sys\n\n\ndef main():\n    print(sys.argv)\n' >src/watchdog.py
printf 'all:\n' >Makefile

run 0 draft request src/watchdog.py --task phase10 --handoff --json
draft=$(field draft_path)
copy=_handoff/drafts/watchdog.py.phase10.draft
is "$(cat src/watchdog.py)" "$(cat "$copy")"
is /_handoff/ "$(cat .git/info/exclude)"

# Later commands update it automatically.
run 0 draft edit "$draft" --old "print(sys.argv)" --new 'print("1.0")'
is 1 "$(grep --count '1.0' "$copy")"
run 0 draft submit "$draft" --summary "prints the version"
[[ ! -e $copy ]] || fail "an applied draft is still shown"
says '"change_summary": "prints the version"' "$(cat _handoff/drafts/phase10.submission.json)"
says '"event":"draft_accepted"' "$(cat _handoff/transition.ndjson)"

# It contains copies: changes to them are not read back.
run 0 draft request Makefile --task build --json
draft=$(field draft_path)
run 0 draft edit "$draft" --old "all:" --new "all: build"
chmod u+w _handoff/drafts/Makefile.build.draft
printf 'all: evil\n' >_handoff/drafts/Makefile.build.draft
run 3 draft submit "$draft"
run 0 review show "$draft" --json
run 0 review approve "$draft" --if-match "$(field seal | head -n 1)"
is "all: build" "$(cat Makefile)"
is 5 "$(grep --count '"event"' _handoff/transition.ndjson)"

# A folder that is a link is refused; turning the handoff off removes the folder.
run 0 draft list --handoff=off
[[ ! -e _handoff ]] || fail "the handoff folder still exists"
mkdir ../elsewhere
ln -s ../elsewhere _handoff
run 2 draft list --handoff
says "path contains a symbolic link" "$err"
is "" "$(ls ../elsewhere)"
