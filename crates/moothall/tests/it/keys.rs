//! `moothall key`: keys are stored privately, used, and never shown.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use moothall_testkit::{ProviderBehaviour, ProviderFault};
use serde_json::json;

use crate::fake::Fake;
use crate::init::Person;
use crate::world::{Ran, World};

const KEY: &str = "sk-planted-5b1bd1f7c0a94e6e";
const ASK: [&str; 6] = ["ask", "--config", "fake.toml", "--model", "openai/gpt-4.1-mini", "hello"];

fn keys_file(world: &World) -> PathBuf {
    world.root().join("home/.config/moothall/keys.toml")
}

#[track_caller]
fn check_ok(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran}");
}

#[test]
fn a_key_from_standard_input_is_stored_privately_used_and_removed() {
    let fake = Fake::saying("fine");
    let world = World::new();
    fake.configure(&world, "");
    let set = world.run_with_input(&["key", "set", "openai"], format!(" {KEY}\n").as_bytes());
    check_ok(&set);
    let path = keys_file(&world).display().to_string();
    let expected = format!(
        "stored the key of openai in {path} (only you can read it)\ntest it: moothall key test openai\n"
    );
    assert_eq!((set.stdout.as_str(), set.stderr.as_str()), (expected.as_str(), ""));
    let metadata = fs_err::metadata(keys_file(&world)).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    check_ok(&world.run(&ASK));
    assert_eq!(fake.calls()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    let list = world.run(&["key", "list"]);
    check_ok(&list);
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert_eq!(lines.len(), 14, "{list}");
    assert_eq!(
        lines[..3],
        [
            "provider         key",
            "anthropic        none: moothall key set anthropic",
            "azure            none: moothall key set azure"
        ]
    );
    assert!(lines.contains(&&*format!("openai           file {path}")), "{list}");
    assert!(lines.contains(&"vllm             not needed"), "{list}");
    check_ok(&world.run(&["key", "remove", "openai"]));
    assert_eq!(fs_err::read_to_string(keys_file(&world)).unwrap(), "");
    let again = world.run(&["key", "remove", "openai"]);
    let expected = "error: no key of openai is stored\nhint: `moothall key list` shows all keys\n";
    assert_eq!((again.code, again.stderr.as_str()), (Some(2), expected));
}

#[test]
fn a_keychain_that_does_not_answer_leads_to_the_file() {
    let world = World::new().with("DBUS_SESSION_BUS_ADDRESS", "unix:path=/no/such/bus");
    let set = world.run_with_input(&["key", "set", "openai"], KEY.as_bytes());
    check_ok(&set);
    assert!(set.stdout.contains("keys.toml (only you can read it)\n"), "{set}");
    assert!(set.stdout.contains("the keychain does not answer: "), "{set}");
    let stored = fs_err::read_to_string(keys_file(&world)).unwrap();
    assert_eq!(stored, format!("openai = \"{KEY}\"\n"));
    // A key that should be there is missed with a hint.
    world.write_config("keys.toml", "openai = { keychain = true }\n");
    let ran = world.run(&["ask", "--model", "openai/gpt-4.1-mini", "hello"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("the keychain does not answer: "), "{ran}");
}

#[test]
fn a_typed_key_is_not_shown_by_the_terminal() {
    let world = World::new();
    let mut person = Person::start(world.command(&["key", "set", "openai", "--color", "never"]));
    person.answer("API key of openai (not shown): ", &format!("{KEY}\n"));
    let (shown, code) = person.leave();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("sk-planted"), "{shown}");
    let stored = fs_err::read_to_string(keys_file(&world)).unwrap();
    assert_eq!(stored, format!("openai = \"{KEY}\"\n"));
    // Ctrl-C stores nothing.
    let mut person = Person::start(world.command(&["key", "set", "groq", "--color", "never"]));
    person.answer("API key of groq (not shown): ", &format!("{KEY}\u{3}"));
    let (shown, code) = person.leave();
    assert_eq!(code, Some(130), "{shown}");
    assert_eq!(fs_err::read_to_string(keys_file(&world)).unwrap(), stored);
}

#[test]
fn a_key_on_the_command_line_is_refused_and_not_quoted() {
    let world = World::new();
    let ran = world.run(&["key", "set", "openai", KEY]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("does not belong on the command line"), "{ran}");
    assert!(!ran.stderr.contains(KEY) && !ran.stdout.contains(KEY), "{ran}");
    assert!(!keys_file(&world).exists());
}

#[test]
fn an_unusable_key_is_refused_and_not_quoted() {
    let world = World::new();
    for input in ["", "  \n", "two words", &format!("{KEY}\n{KEY}\n"), &"a".repeat(70_000)] {
        let ran = world.run_with_input(&["key", "set", "openai", "-"], input.as_bytes());
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(!ran.stderr.contains("words") && !ran.stderr.contains(KEY), "{ran}");
    }
    let ran = world.run_with_input(&["key", "set", "opnai"], KEY.as_bytes());
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("unknown provider `opnai`"), "{ran}");
    assert!(!keys_file(&world).exists());
}

#[test]
fn a_stored_key_does_not_hide_a_variable() {
    let world = World::new().with("OPENAI_API_KEY", "sk-of-the-variable");
    let set = world.run_with_input(&["key", "set", "openai", "--file"], KEY.as_bytes());
    check_ok(&set);
    assert!(set.stdout.contains("the variable OPENAI_API_KEY comes first"), "{set}");
    let list = world.run(&["key", "list", "--json"]).json();
    let rows = list["keys"].as_array().unwrap();
    let openai = rows.iter().find(|row| row["provider"] == "openai").unwrap();
    assert_eq!(
        *openai,
        json!({
            "provider": "openai",
            "needed": true,
            "present": true,
            "source": "environment",
            "detail": "OPENAI_API_KEY",
        })
    );
}

/// Writes `lab.toml`: a provider at the fake one whose key is printed by a command.
fn with_command(fake: &Fake, world: &World, command: &str) {
    let url = fake.url();
    let file = format!(
        "[provider.lab]\nbase_url = \"{url}\"\nkey_command = \"{command}\"\nkey_command_timeout = \"20s\"\n"
    );
    world.write("lab.toml", &file);
}

const ASK_LAB: [&str; 6] = ["ask", "--config", "lab.toml", "--model", "lab/m", "hello"];

#[test]
fn a_key_command_provides_the_key() {
    let fake = Fake::saying("fine");
    let world = World::new();
    with_command(&fake, &world, &format!("echo {KEY}"));
    check_ok(&world.run(&ASK_LAB));
    assert_eq!(fake.calls()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    let list = world.run(&["key", "list", "--config", "lab.toml"]);
    assert!(list.stdout.contains("lab              key_command\n"), "{list}");
}

#[test]
fn a_failing_key_command_fails_the_call_with_a_short_reason() {
    let fake = Fake::saying("fine");
    let world = World::new();
    with_command(&fake, &world, "false");
    let ran = world.run(&ASK_LAB);
    let expected = "error: lab/m did not answer (auth: `provider.lab.key_command` failed with exit code 1)\n\
                    hint: run the command yourself to see its complete output\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(4), expected));
    with_command(&fake, &world, "yes sk-1");
    let ran = world.run(&ASK_LAB);
    assert_eq!(ran.code, Some(4), "{ran}");
    assert!(ran.stderr.contains("printed more than 64 KiB"), "{ran}");
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn an_untrusted_directory_cannot_start_a_key_command() {
    let fake = Fake::saying("fine");
    let world = World::new();
    let proof = world.path("started");
    let file = format!(
        "[provider.lab]\nbase_url = \"{}\"\nkey_command = \"touch {}\"\n",
        fake.url(),
        proof.display()
    );
    world.write("moothall.toml", &file);
    for arguments in [
        &["ask", "--model", "lab/m", "hello"][..],
        &["key", "test", "lab"],
        &["models", "--check", "lab/m"],
    ] {
        let ran = world.run(arguments);
        assert_eq!(ran.code, Some(2), "{ran}");
        let words =
            "the untrusted moothall.toml in the working directory sets `provider.lab.key_command`";
        assert!(ran.stderr.contains(words), "{ran}");
    }
    for arguments in [&["key", "list"][..], &["models"], &["config", "check"]] {
        world.run(arguments);
    }
    assert!(!proof.exists() && fake.stats().received == 0);
    // A file that the user names is trusted.
    world.run(&["ask", "--config", "moothall.toml", "--model", "lab/m", "hello"]);
    assert!(proof.exists());
}

#[test]
fn a_secret_in_a_plain_header_or_query_is_refused_and_not_quoted() {
    let world = World::new();
    for lines in [
        "headers = { Authorization = \"KEY\" }",
        "headers = { x-api-key = \"KEY\" }",
        "headers = { x-gateway_token = \"KEY\" }",
        "headers = { host = \"evil.example\" }",
        "header_env = { x-token = \"KEY\" }",
        "query = { api_key = \"KEY\" }",
        "query = { key = \"KEY\" }",
        "proxy = \"http://me:KEY@proxy.example\"",
    ] {
        let section = format!("[provider.openai]\n{}\n", lines.replace("KEY", KEY));
        world.write("moothall.toml", &section);
        for arguments in [&["config", "check"][..], &["ask", "--model", "openai/m", "hello"]] {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(2), "{lines}\n{ran}");
            assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran}");
        }
    }
}

#[test]
fn a_key_test_falls_back_to_one_small_call() {
    // The fake provider has no list of models.
    let fake = Fake::saying("ok");
    let world = World::new().with("OPENAI_API_KEY", KEY);
    fake.configure(&world, "");
    let ran = world.run(&["key", "test", "openai", "--config", "fake.toml"]);
    check_ok(&ran);
    let start = "ok  openai answered with the key from OPENAI_API_KEY: openai/gpt-6-luna answered";
    assert!(ran.stdout.starts_with(start), "{ran}");
    let json = world.run(&["key", "test", "openai", "--json", "--config", "fake.toml"]).json();
    assert_eq!((&json["accepted"], &json["source"]), (&json!(true), &json!("environment")));
    assert_eq!(fake.calls().len(), 2);
}

#[test]
fn a_rejected_key_fails_its_test_with_a_hint() {
    let fake = Fake::start();
    fake.always(ProviderBehaviour::from(ProviderFault::Unauthorized));
    let world = World::new().with("OPENAI_API_KEY", KEY);
    fake.configure(&world, "");
    let ran = world.run(&["key", "test", "openai", "--config", "fake.toml"]);
    assert_eq!(ran.code, Some(4), "{ran}");
    let start = "error: openai rejected the key from OPENAI_API_KEY (auth: ";
    assert!(ran.stderr.starts_with(start), "{ran}");
    let hint = "hint: check the key, or replace it with `moothall key set openai`\n";
    assert!(ran.stderr.ends_with(hint) && !ran.stderr.contains(KEY), "{ran}");
    let missing = world.run(&["key", "test", "groq"]);
    assert_eq!(missing.code, Some(2), "{missing}");
    let hint = "hint: run `moothall key set groq`, or set `GROQ_API_KEY`";
    assert!(missing.stderr.contains(hint), "{missing}");
}

#[test]
fn connection_settings_reach_the_provider() {
    let fake = Fake::saying("fine");
    let world = World::new().with("GATEWAY_TOKEN", KEY);
    let file = format!(
        "[provider.lab]\nbase_url = \"{}\"\nheaders = {{ x-team = \"research\" }}\n\
         header_env = {{ x-gateway = \"GATEWAY_TOKEN\" }}\nquery = {{ api-version = \"1\" }}\n",
        fake.url()
    );
    world.write("lab.toml", &file);
    check_ok(&world.run(&ASK_LAB));
    let calls = fake.calls();
    assert_eq!(calls[0].path(), "/v1/chat/completions?api-version=1");
    assert_eq!(calls[0].header("x-team"), Some("research"));
    assert_eq!(calls[0].header("x-gateway"), Some(KEY));
    let show = world.run(&["config", "show", "--config", "lab.toml"]);
    check_ok(&show);
    // The output is a valid configuration file.
    world.write("shown.toml", &show.stdout);
    let again = world.run(&["config", "show", "--config", "shown.toml"]);
    check_ok(&again);
    assert!(again.stdout.contains("[provider.lab.header_env]\nx-gateway = \"GATEWAY_TOKEN\""));
    let without = World::new();
    without.write("lab.toml", &file);
    let ran = without.run(&ASK_LAB);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("`GATEWAY_TOKEN` is not set"), "{ran}");
}
