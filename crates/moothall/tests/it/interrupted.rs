//! Ctrl-C while waiting for a provider.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use insta::assert_snapshot;

use crate::fake::Fake;
use crate::world::{Ran, World, signal};

/// Starts the program and sends SIGINT when its call arrives.
fn interrupt(world: &World, arguments: &[&str], arrivals: &Receiver<()>) -> Ran {
    let child = world.command(arguments).spawn().unwrap();
    arrivals.recv_timeout(Duration::from_secs(20)).unwrap();
    signal(&child, "INT");
    world.ran(arguments, child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_question_is_recorded_as_cancelled() {
    let (fake, arrivals) = Fake::hanging();
    let world = World::new();
    fake.configure(&world, "");
    let asked = [
        "ask",
        "--config",
        "fake.toml",
        "--model",
        "openai/m",
        "--events",
        "events.ndjson",
        "hello",
    ];
    assert_snapshot!(interrupt(&world, &asked, &arrivals));
    assert_snapshot!(crate::world::filtered(&world.read("events.ndjson")));
}

#[test]
fn interrupted_check_ends_as_cancelled() {
    let (fake, arrivals) = Fake::hanging();
    let world = World::new();
    fake.configure(&world, "");
    let asked = ["models", "--config", "fake.toml", "--check", "openai/m"];
    assert_snapshot!(interrupt(&world, &asked, &arrivals));
}
