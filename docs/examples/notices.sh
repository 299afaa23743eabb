#!/usr/bin/env bash
# Notify a local receiver that a run has ended, with a signature and without content.
# shellcheck disable=SC2016  # expected texts contain backquotes
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

cat >receiver.py <<'PYTHON'
import base64, hashlib, hmac, http.server, os

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        right = hmac.new(os.environ["HOOK_SECRET"].encode(), signed, hashlib.sha256).digest()
        sent = base64.b64decode(self.headers["webhook-signature"].removeprefix("v1,"))
        with open("told", "w") as told:
            told.write(f"{hmac.compare_digest(right, sent)} {body.decode()}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
with open("port.new", "w") as port:
    port.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PYTHON
export HOOK_SECRET=only-for-this-example
python3 receiver.py &
receiver=$!
trap 'kill "$receiver"; rm -rf "$scratch"' EXIT
until [[ -e port ]]; do
    kill -0 "$receiver" || fail "the receiver did not start"
    sleep 0.02
done

cat >"$XDG_CONFIG_HOME/moothall/moothall.toml" <<TOML
[notify]
webhook = "http://127.0.0.1:$(<port)/hook"
webhook_secret_env = "HOOK_SECRET"
TOML
run 0 consult HLXI --model demo --verdict off --moves 5 --rounds 1 --yes --json
says 'True {"type":"run.finished","run_id":"'"$(field run_id)"'","state":"finished"' "$(<told)"

run 0 notify test
is 'sent a test message to the webhook' "$out"
says 'True {"type":"test"' "$(<told)"

# A draft that needs review, for a target of its own.
cat >>"$XDG_CONFIG_HOME/moothall/moothall.toml" <<TOML
server_url = "https://moothall.example.com"

[notify.target.reviewers]
url = "http://127.0.0.1:$(<port)/hook"
secret_env = "HOOK_SECRET"
events = ["needs-review"]
TOML
mkdir ws
printf 'all:\n' >ws/Makefile
run 0 draft request Makefile --task build --workspace ws --json
draft=$(field draft_id)
run 0 draft edit "$draft" --old "all:" --new "all: build" --workspace ws
run 3 draft submit "$draft" --summary "builds by default" --workspace ws
says 'True {"type":"draft.needs_review"' "$(<told)"
says '"path":"Makefile","more_files":0,"rules":["path.protected"],"link":"https://moothall.example.com/review#' "$(<told)"
run 0 notify list
says 'reviewers  json  needs-review' "$out"

# The receiver is gone: a warning, the run is unaffected, and the message is kept.
kill "$receiver"
wait "$receiver" || true
trap 'rm -rf "$scratch"' EXIT
run 0 consult HLXI --model demo --verdict off --moves 5 --rounds 1 --yes
says 'warning: `notify.webhook` failed: ' "$err"
run 4 notify resend
says 'hint: test the settings with `moothall notify test`' "$err"
