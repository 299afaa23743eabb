#!/usr/bin/env bash
# Drafts from request to workspace: the calls of the sandbox draft pattern, a review, a rejected secret, and the audit log.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada

mkdir -p ws/src
cd ws
printf 'import sys\n\n\ndef main():\n    print(sys.argv)\n' >src/watchdog.py
printf 'all:\n' >Makefile

# "Add --version to watchdog.py": request, write, read, submit.
run 0 draft request src/watchdog.py --task phase10_version_flag --json
draft=$(field draft_path)
is 5 "$(field line_count)"
printf 'import sys\n\n\ndef main():\n    if "--version" in sys.argv:\n        print("1.0")\n    print(sys.argv)\n' >../new.py
run 0 draft write "$draft" --file ../new.py --json
is true "$(field success)"
run 0 draft read "$draft"
says '--version' "$out"
is 0 "$(grep --count version src/watchdog.py || true)"
run 0 draft submit "$draft" --summary "Added --version handling in main()" --json
is true "$(field submitted)"
is 1 "$(grep --count version src/watchdog.py)"

# Actions that agents cannot perform.
for path in ../outside /etc/passwd .git/hooks/pre-commit .moothall/policy.toml; do
    run 2 draft request "$path" --task t1 --new
done
ln -s /etc/passwd link
run 2 draft request link --task t1
says "symbolic link" "$err"

# A protected file needs review; the approval covers the version that was shown.
run 0 draft request Makefile --task build --json
draft=$(field draft_id)
run 0 draft edit "$draft" --old "all:" --new "all: build"
run 3 draft submit "$draft" --summary "builds by default"
run 0 review
says "path.protected" "$out"
run 0 review show "$draft" --json
seal=$(field seal | head -n 1)
run 0 review approve "$draft" --if-match "$seal"
is "all: build" "$(cat Makefile)"
run 0 draft undo "$draft"
is "all:" "$(cat Makefile)"

# A part of a submission: hunk 1 is applied, hunk 2 is not; the worker reads a comment on a line.
seq 1 30 | sed 's/^/# line /' >Makefile
run 0 draft request Makefile --task part --json
draft=$(field draft_id)
sed -e 's/^# line 2$/all: build/' -e 's/^# line 25$/install: sudo/' Makefile >../new.mk
run 0 draft write "$draft" --file ../new.mk
run 3 draft submit "$draft"
run 0 review show "$draft" --json
seal=$(field seal | head -n 1)
run 0 review comment "$draft" --if-match "$seal" --line 25 --text "not as root"
run 0 draft status "$draft"
says "Makefile:25" "$out"
run 0 review approve "$draft" --if-match "$seal" --hunks 1
is "all: build" "$(sed -n 2p Makefile)"
is "# line 25" "$(sed -n 25p Makefile)"
run 0 audit show --draft "$draft"
says "hunks 1 of 2" "$out"
run 0 draft undo "$draft"
printf 'all:\n' >Makefile

# A long line can be approved only after it was shown in full; a removed final line break is shown.
run 0 draft request Makefile --task long --json
draft=$(field draft_id)
printf 'all:\n# %s && echo hidden' "$(printf 'x%.0s' {1..500})" >../new.mk
run 0 draft write "$draft" --file ../new.mk
run 3 draft submit "$draft"
run 0 review show "$draft"
says "--full shows them completely, with the seal" "$out"
[[ $out != *"echo hidden"* && $out != *"--if-match"* ]] || fail "a seal was printed for content that was not shown"
run 0 review show "$draft" --full
says "echo hidden" "$out"
says "No newline at end of file" "$out"
says "seal " "$out"
run 0 draft discard "$draft"

# Denied files cannot be read.
mkdir -p secrets .moothall
printf 'one\n' >secrets/key.txt
printf 'version = 1\n[paths]\ndeny = ["secrets/**"]\n' >.moothall/policy.toml
run 2 draft request secrets/key.txt --task t1
says "the policy does not allow workers to read or change it" "$err"

# Omitted code and a key are rejected with a reason.
run 0 draft request src/watchdog.py --task lazy --json
draft=$(field draft_id)
printf 'import sys\n# ... rest of the code unchanged ...\n' >../new.py
run 0 draft write "$draft" --file ../new.py
run 1 draft submit "$draft"
says "content.placeholder" "$out"
key="ghp_$(printf 'nobody' | sha256sum | cut -c 1-36)"
printf 'import sys\nKEY = "%s"\n' "$key" >../new.py
run 0 draft write "$draft" --file ../new.py
run 1 draft submit "$draft"
says "secret.specific" "$out"
[[ $out != *"$key"* ]] || fail "the key is printed"
run 0 draft discard "$draft"

# Import a plain answer from a model without tools.
printf 'Here it is:\n\n```python src/hello.py\nprint("hello")\n```\n' >../answer.md
run 0 draft import ../answer.md --task hello --submit
is 'print("hello")' "$(cat src/hello.py)"

# A policy in the workspace can only tighten until a person trusts it.
printf '[rules]\n"path.tmp" = "allow"\n' >>.moothall/policy.toml
run 0 policy check
says "the workspace asks for path.tmp = allow; warn stays in effect" "$out"
says "files that run automatically" "$out"
run 2 policy trust
says "not trusted yet" "$err"
run 0 policy trust --yes
run 0 policy check
says "the workspace policy loosens the built-in policy: path.tmp = allow" "$out"

# The policy and the audit log.
run 0 policy explain Makefile
says "protect **/Makefile" "$out"
run 0 audit verify
says "audit log verified: " "$out"
anchor=$(sed -n 's/^anchor //p' <<<"$out")
run 0 audit verify --anchor "$anchor"
run 0 audit export -
[[ $out != *"$key"* ]] || fail "the key is in the audit log"
