//! Files written by `ask`: recordings, receipts, events.

use insta::assert_snapshot;
use moothall_testkit::{ProviderBehaviour, ProviderFault, ReplyUsage};
use serde_json::Value;

use crate::fake::Fake;
use crate::world::{Ran, World};

const ASK: [&str; 4] = ["ask", "--config", "fake.toml", "--model"];

fn ask(world: &World, more: &[&str]) -> Ran {
    world.run(&[&ASK[..], &["openai/gpt-4.1-mini"], more].concat())
}

/// A world with a provider that answers, and the provider.
fn answering() -> (World, Fake) {
    let fake = Fake::start();
    let usage = ReplyUsage { input: 12, output: 3, ..ReplyUsage::ZERO };
    fake.always(ProviderBehaviour::text("Two: Phobos and Deimos.").with_usage(usage));
    let world = World::new();
    fake.configure(&world, "");
    (world, fake)
}

#[test]
fn a_recorded_answer_is_replayed_verbatim_without_a_call() {
    let (world, fake) = answering();
    let recorded = ask(&world, &["--record", "kept", "--json", "How many moons has Mars?"]).json();
    drop(fake);
    let ran = ask(&world, &["--replay", "kept", "--json", "How many moons has Mars?"]);
    assert_eq!(ran.code, Some(0), "{ran}");
    let repeated = ran.json();
    for field in ["text", "usage", "cost_usd", "answered_by", "stop", "spent", "verdict"] {
        assert_eq!(repeated[field], recorded[field], "{field}");
    }
}

#[test]
fn repetition_needs_no_key() {
    let world = World::new();
    let recorded = {
        let fake = Fake::saying("fine");
        let url = fake.url();
        let asked = ["ask", "--model", "openai/m", "--base-url", &url, "--record", "kept", "hello"];
        world.run(&asked)
    };
    assert_eq!(recorded.code, Some(0), "{recorded}");
    let ran = world.run(&["ask", "--model", "openai/m", "--replay", "kept", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "fine\n"), "{ran}");
}

#[test]
fn request_without_a_recording_fails_and_names_the_nearest() {
    let (world, fake) = answering();
    ask(&world, &["--record", "kept", "How many moons has Mars?"]);
    assert_snapshot!(ask(&world, &["--replay", "kept", "How many moons has Saturn?"]));
    assert_eq!(fake.stats().received, 1);
}

#[test]
fn repetition_from_an_empty_folder_fails() {
    let (world, fake) = answering();
    assert_snapshot!(ask(&world, &["--replay", "missing", "How many moons has Mars?"]));
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn recording_and_replaying_together_is_a_usage_error() {
    let world = World::new();
    assert_snapshot!(
        world.run(&["ask", "--model", "demo", "--record", "a", "--replay", "b", "hello"])
    );
}

#[test]
fn an_unusable_recording_directory_is_reported_before_any_call() {
    // Regression: the reply was paid for and lost, and the error suggested recording it.
    let (world, fake) = answering();
    world.write("taken", "a file");
    assert_snapshot!(ask(&world, &["--record", "taken", "hello"]));
    assert_eq!(fake.stats().received, 0);
}

#[test]
fn an_answer_is_printed_even_if_its_receipt_cannot_be_written() {
    // Regression: the reply was paid for and lost.
    let (world, _fake) = answering();
    assert_snapshot!(ask(&world, &["--receipt", "no/such/folder/receipt", "hello"]));
}

#[test]
fn a_failure_is_reported_even_if_the_events_cannot_be_written() {
    let (world, fake) = answering();
    fake.always(ProviderFault::Unauthorized);
    assert_snapshot!(ask(&world, &["--events", "no/such/folder/events", "hello"]));
}

#[test]
fn the_receipt_of_an_answer_is_valid() {
    let (world, _fake) = answering();
    assert_eq!(ask(&world, &["--receipt", "receipt", "How many moons?"]).code, Some(0));
    assert_snapshot!(world.run(&["verify", "receipt"]));
}

#[test]
fn the_receipt_of_the_demo_model_is_marked() {
    let world = World::new();
    world.run(&["ask", "--model", "demo", "--receipt", "receipt", "hello"]);
    assert_snapshot!(world.run(&["verify", "receipt"]));
}

#[test]
fn equal_runs_have_receipts_with_the_same_head() {
    let world = World::new();
    let head = |name: &str, question: &str| {
        world.run(&["ask", "--model", "demo", "--receipt", name, question]);
        world.run(&["verify", "--json", name]).json()["head"].clone()
    };
    let first = head("a", "hello");
    assert_eq!(first, head("b", "hello"));
    assert_ne!(first, head("c", "goodbye"));
    assert_ne!(world.read("a"), world.read("b"), "run ids and times differ");
}

#[test]
fn a_receipt_contains_the_answer_but_not_the_prompt() {
    let (world, _fake) = answering();
    ask(&world, &["--receipt", "receipt", "A question that nobody else may read."]);
    let receipt = world.read("receipt");
    assert!(receipt.contains("Phobos"), "{receipt}");
    assert!(!receipt.contains("nobody else may read"), "{receipt}");
    for line in receipt.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}
