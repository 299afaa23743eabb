//! Notifications: a receiver on loopback learns that a run has ended, and nothing about its
//! content.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};

use crate::serve::Server;
use crate::world::{SMALL, World};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One request received by a webhook.
#[derive(Debug)]
pub(crate) struct Told {
    headers: Vec<(String, String)>,
    body: String,
}

impl Told {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        &found.unwrap_or_else(|| panic!("{name} is missing: {self:?}")).1
    }

    /// Verifies the signature like a Standard Webhooks receiver.
    fn is_signed(&self) -> bool {
        let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let (id, time) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let signed = format!("{id}.{time}.{}", self.body);
        let signature = self.header("webhook-signature").strip_prefix("v1,").unwrap();
        hmac::verify(&key, signed.as_bytes(), &STANDARD.decode(signature).unwrap()).is_ok()
    }
}

/// A receiver that answers with these codes in order.
fn receiver(codes: &'static [&'static str]) -> (String, Receiver<Told>) {
    receiver_on(TcpListener::bind("127.0.0.1:0").unwrap(), codes)
}

fn receiver_on(listener: TcpListener, codes: &'static [&'static str]) -> (String, Receiver<Told>) {
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        for code in codes {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut headers = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.trim_end().split_once(": ") {
                    Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                    None if line.trim_end().is_empty() => break,
                    None => {}
                }
            }
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let mut body = vec![0; length.unwrap().1.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer =
                format!("HTTP/1.1 {code}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            tell.send(Told { headers, body: String::from_utf8(body).unwrap() }).unwrap();
        }
    });
    (address, told)
}

fn world(address: &str) -> World {
    let world = World::new().with("HOOK_SECRET", SECRET);
    let config =
        format!("[notify]\nwebhook = \"{address}\"\nwebhook_secret_env = \"HOOK_SECRET\"\n");
    world.write_config("moothall.toml", &config);
    world
}

#[test]
fn a_webhook_gets_signed_notifications_without_content() {
    let (address, told) = receiver(&["204 No Content", "200 OK"]);
    let world = world(&address);
    let paused = world.run(&[&SMALL[..], &["--budget-tokens", "60000"]].concat());
    assert_eq!(paused.code, Some(5), "{paused}");
    let run = world.run(&["runs", "--json"]).json()["runs"][0]["run_id"].clone();
    let resumed = world.run(&["resume", run.as_str().unwrap(), "--budget-tokens", "10000000"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    for (kind, state) in [("run.budget", "paused"), ("run.finished", "finished")] {
        let told = told.recv().unwrap();
        assert!(told.is_signed(), "{told:?}");
        let mut body: Value = serde_json::from_str(&told.body).unwrap();
        assert!(body["at"].take().as_str().unwrap().ends_with('Z'));
        let expected = json!({ "type": kind, "run_id": run, "state": state, "at": null });
        assert_eq!(body, expected);
        assert!(!format!("{told:?}").contains("HLXI"), "{told:?}");
    }
}

#[test]
fn a_failing_webhook_is_retried_with_the_same_id_and_never_fails_a_run() {
    let broken = "500 Internal Server Error";
    let (address, told) = receiver(&["500 Internal Server Error"; 3]);
    let world = world(&address);
    let ran = world.run(&SMALL);
    assert_eq!(ran.code, Some(0), "{ran}");
    let warning = format!("warning: `notify.webhook` failed: status {broken} (3 attempts)");
    assert_eq!(ran.stderr.matches(&warning).count(), 1, "{ran}");
    assert!(!ran.stderr.contains("/hook"), "{ran}");
    let told: Vec<Told> = told.iter().collect();
    let names: Vec<&str> = told.iter().map(|told| told.header("webhook-id")).collect();
    assert_eq!(names, [names[0]; 3]);
}

#[test]
fn notifications_need_a_secret_tls_and_a_trusted_configuration() {
    let nobody = "http://127.0.0.1:9/hook";
    let mut unset = world(nobody);
    unset.set("HOOK_SECRET", "");
    let ran = unset.run(&SMALL);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("`notify.webhook` failed: `HOOK_SECRET` is not set"), "{ran}");

    let ran = world("http://example.com/hook").run(&["runs"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(
        ran.stderr.contains("`notify.webhook` must use https, except on this machine"),
        "{ran}"
    );

    let stray = World::new();
    stray.write("moothall.toml", &format!("[notify]\nwebhook = \"{nobody}\"\n"));
    let ran = stray.run(&SMALL);
    assert_eq!(ran.code, Some(0), "{ran}");
    let warning = "warning: ignored the [notify] settings of the untrusted moothall.toml";
    assert!(ran.stderr.contains(warning), "{ran}");
}

#[test]
fn notify_test_reaches_a_chat_whose_url_is_in_a_variable() {
    for (format, name) in [("slack", "Slack"), ("teams", "Teams"), ("discord", "Discord")] {
        let (address, told) = receiver(&["200 OK", "200 OK"]);
        let world = World::new().with("CHAT_URL", &address);
        let config =
            format!("[notify]\nwebhook_env = \"CHAT_URL\"\nwebhook_format = \"{format}\"\n");
        world.write_config("moothall.toml", &config);
        let tested = world.run(&["notify", "test"]);
        assert_eq!(tested.code, Some(0), "{tested}");
        assert!(tested.stdout.contains(&format!("sent a test message to {name}")), "{tested}");
        let body = told.recv().unwrap().body;
        assert!(body.contains("moothall: this is a test message"), "{body}");
        let ran = world.run(&SMALL);
        assert_eq!(ran.code, Some(0), "{ran}");
        let body = told.recv().unwrap().body;
        assert!(body.contains(" is finished") && !body.contains("HLXI"), "{body}");
    }
}

#[test]
fn notify_test_explains_what_is_wrong() {
    let nothing = World::new().run(&["notify", "test"]);
    assert_eq!(nothing.code, Some(2), "{nothing}");
    assert!(nothing.stderr.contains("no notifications are configured"), "{nothing}");
    for (url, why) in [
        ("", "`CHAT_URL` is not set"),
        ("http://example.com/hook", "`CHAT_URL` must use https, except on this machine"),
        ("http://127.0.0.1:9/hook", "(3 attempts)"),
    ] {
        let world = World::new().with("CHAT_URL", url);
        world.write_config("moothall.toml", "[notify]\nwebhook_env = \"CHAT_URL\"\n");
        let failed = world.run(&["notify", "test"]);
        assert_eq!(failed.code, Some(4), "{failed}");
        assert!(failed.stderr.contains(why) && !failed.stderr.contains("/hook"), "{failed}");
    }
}

#[test]
fn a_message_survives_a_receiver_that_is_down_and_is_delivered_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap();
    drop(listener);
    let world = world(&format!("http://{port}/hook"));
    let ran = world.run(&SMALL);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stderr.contains("`moothall notify resend` try again"), "{ran}");
    let still_down = world.run(&["notify", "resend"]);
    assert_eq!(still_down.code, Some(4), "{still_down}");

    let (_, told) = receiver_on(TcpListener::bind(port).unwrap(), &["204 No Content"]);
    let sent = world.run(&["notify", "resend"]);
    assert_eq!(
        (sent.code, sent.stdout.as_str()),
        (Some(0), "messages sent: 1, left: 0\n"),
        "{sent}"
    );
    let told = told.recv().unwrap();
    assert!(told.is_signed(), "{told:?}");
    let run = world.run(&["runs", "--json"]).json()["runs"][0]["run_id"].clone();
    assert!(told.header("webhook-id").starts_with(run.as_str().unwrap()), "{told:?}");
    let nothing = world.run(&["notify", "resend"]);
    assert_eq!(nothing.stdout, "messages sent: 0, left: 0\n", "{nothing}");
}

/// A workspace with a file that only a person may accept changes of, and two targets.
fn draft_world(url: &str, more: &str) -> World {
    let world = World::new().with("USER", "ada").with("HOOK_SECRET", SECRET);
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/Makefile", "all:\n");
    let config = format!(
        "[notify]\nserver_url = \"https://moothall.example.com\"\n\n[notify.target.own]\n\
         url = \"{url}\"\nsecret_env = \"HOOK_SECRET\"\n{more}"
    );
    world.write_config("moothall.toml", &config);
    world
}

const CONTENT: &str = "all: swordfish\n";

/// Submits a draft of the protected file, and returns its id and what the command wrote.
fn submit(world: &World) -> (String, String) {
    let request = ["draft", "request", "Makefile", "--task", "t1", "--json", "--workspace", "ws"];
    let draft = world.run(&request).json()["draft_id"].as_str().unwrap().to_owned();
    let write = ["draft", "write", &draft, "--file", "-", "--workspace", "ws"];
    assert_eq!(world.run_with_input(&write, CONTENT.as_bytes()).code, Some(0));
    let summary = "Build everything";
    let submit = ["draft", "submit", &draft, "--summary", summary, "--workspace", "ws"];
    let ran = world.run(&submit);
    assert_eq!(ran.code, Some(3), "{ran}");
    (draft, ran.stderr)
}

#[test]
fn a_draft_that_needs_review_is_announced_with_a_link_and_without_content() {
    let (url, told) = receiver(&["200 OK", "200 OK"]);
    let world = draft_world(&url, "");
    let (draft, _) = submit(&world);
    let first = told.recv().unwrap();
    assert!(first.is_signed(), "{first:?}");
    let body: Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(
        (&body["type"], &body["draft_id"], &body["title"], &body["path"], &body["rules"]),
        (
            &json!("draft.needs_review"),
            &json!(draft),
            &json!("Build everything"),
            &json!("Makefile"),
            &json!(["path.protected"])
        )
    );
    let link = body["link"].as_str().unwrap();
    assert!(link.starts_with("https://moothall.example.com/review#"), "{link}");
    assert!(!first.body.contains("swordfish"), "{first:?}");

    let shown = world.run(&["review", "show", &draft, "--json", "--workspace", "ws"]).json();
    let seal = shown["seal"].as_str().unwrap();
    let reject =
        ["review", "reject", &draft, "--seal", seal, "--reason", "no", "--workspace", "ws"];
    let rejected = world.run(&reject);
    assert_eq!(rejected.code, Some(0), "{rejected}");
    let second: Value = serde_json::from_str(&told.recv().unwrap().body).unwrap();
    assert_eq!(
        (&second["type"], &second["decision"], &second["by"], &second["link"]),
        (&json!("draft.decided"), &json!("reject"), &json!("ada"), &Value::Null)
    );
    // Nothing is left, and the token is in no file.
    assert_eq!(world.run(&["notify", "resend"]).stdout, "messages sent: 0, left: 0\n");
    let token = link.split('#').nth(1).unwrap();
    assert!(!contains_text(world.root(), token));
}

fn contains_text(folder: &std::path::Path, text: &str) -> bool {
    fs_err::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => contains_text(&path, text),
            false => String::from_utf8_lossy(&fs_err::read(&path).unwrap()).contains(text),
        }
    })
}

/// The process that escalates ends while the receiver is down; a server delivers later.
#[test]
fn a_notice_about_a_draft_survives_a_process_that_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (chat, chat_told) = receiver(&["200 OK"]);
    let more = format!("[notify.target.chat]\nkind = \"slack\"\nurl = \"{chat}\"\n");
    let world = draft_world(&format!("http://{address}/hook"), &more);
    let (draft, stderr) = submit(&world);
    assert!(stderr.contains("warning: `notify.target.own` failed: "), "{stderr}");
    // The other target is not affected.
    let chat_body = chat_told.recv().unwrap().body;
    assert!(chat_body.contains("a draft needs review"), "{chat_body}");

    let listed = world.run(&["notify", "list", "--json"]).json();
    let row = |name: &str| {
        let rows = listed["targets"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!((&row("own")["waiting"], &row("chat")["waiting"]), (&json!(1), &json!(0)));
    assert!(row("own")["last_error"].is_string() && row("chat")["last_error"].is_null());
    assert!(!listed.to_string().contains(&address.to_string()), "{listed}");

    let (_, told) = receiver_on(TcpListener::bind(address).unwrap(), &["204 No Content"]);
    let server = Server::start(&world, &[]);
    let received = told.recv().unwrap();
    assert!(received.is_signed() && received.body.contains(&draft), "{received:?}");
    server.stop();
    let listed = world.run(&["notify", "list"]);
    assert!(!listed.stdout.contains("waiting: "), "{listed}");
}

#[test]
fn a_target_gets_only_its_events() {
    let (failed, failed_told) = receiver(&["200 OK"]);
    let (url, told) = receiver(&["200 OK", "200 OK"]);
    let more = format!("[notify.target.failures]\nurl = \"{failed}\"\nevents = [\"failed\"]\n");
    let world = draft_world(&url, &more);
    submit(&world);
    assert!(told.recv().unwrap().body.contains("draft.needs_review"));
    let ran = world.run(&SMALL);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(told.recv().unwrap().body.contains("run.finished"));
    let tested = world.run(&["notify", "test", "failures"]);
    assert_eq!(tested.stdout, "sent a test message to failures (the webhook)\n", "{tested}");
    // The first and only message is the test.
    assert!(failed_told.recv().unwrap().body.contains("\"test\""));
    let unknown = world.run(&["notify", "test", "nobody"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(unknown.stderr.contains("configured targets: failures, own"), "{unknown}");
}

#[test]
fn the_old_form_gets_no_notices_about_drafts_unless_it_asks_for_them() {
    let (url, told) = receiver(&["200 OK"]);
    let world = World::new().with("USER", "ada");
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/Makefile", "all:\n");
    world.write_config("moothall.toml", &format!("[notify]\nwebhook = \"{url}\"\n"));
    submit(&world);
    let listed = world.run(&["notify", "list"]);
    assert!(listed.stdout.starts_with("webhook  json  finished, failed, paused, question\n"));
    assert!(listed.stdout.contains("not used yet"), "{listed}");
    assert!(told.try_recv().is_err());
    let config = format!("[notify]\nwebhook = \"{url}\"\nevents = [\"needs-review\"]\n");
    world.write_config("moothall.toml", &config);
    world.write("ws/Makefile", "all: other\n");
    submit(&world);
    assert!(told.recv().unwrap().body.contains("draft.needs_review"));
}

#[test]
fn settings_list_targets_without_secrets() {
    let (url, told) = receiver(&["200 OK"]);
    let world = draft_world(&url, "");
    assert_eq!(world.run(&["notify", "test"]).code, Some(0));
    told.recv().unwrap();
    let server = Server::start(&world, &[]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut settings = runtime.block_on(server.json("/api/settings"));
    let target = &mut settings["notify_targets"][0];
    assert!(target["last_at"].take().is_string(), "{target}");
    let events = ["finished", "failed", "paused", "question", "needs-review", "decided"];
    let expected = json!({
        "name": "own", "kind": "json", "events": events, "waiting": 0, "last_at": null,
        "last_error": null,
    });
    assert_eq!(*target, expected);
    assert!(!settings.to_string().contains(&url), "{settings}");
    server.stop();
}
