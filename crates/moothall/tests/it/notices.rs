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

use crate::world::World;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One request received by a webhook.
#[derive(Debug)]
struct Told {
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

const SMALL: [&str; 9] =
    ["consult", "HLXI", "--model", "demo", "--moves", "5", "--rounds", "1", "--yes"];

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
