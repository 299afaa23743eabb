//! Every command that prints data supports JSON.

use moothall_testkit::ProviderFault;

use crate::fake::Fake;
use crate::world::World;

#[test]
fn every_command_that_prints_data_has_a_json_form() {
    let world = World::new();
    world.run(&["ask", "--model", "demo", "--receipt", "receipt", "hello"]);
    for arguments in [
        &["ask", "--model", "demo", "hello"][..],
        &["models"],
        &["models", "openai"],
        &["models", "--check", "demo"],
        &["verify", "receipt"],
        &["config", "show"],
        &["config", "path"],
        &["config", "check"],
        &["runs"],
    ] {
        let ran = world.run(&[arguments, &["--json"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
        assert!(ran.json().is_object() || ran.json().is_array(), "{ran}");
        assert!(ran.stdout.ends_with('\n'), "{ran}");
    }
}

#[test]
fn json_output_is_valid_even_on_failure() {
    let fake = Fake::start();
    fake.always(ProviderFault::Unauthorized);
    let world = World::new();
    fake.configure(&world, "");
    world.write("no-receipt", "{}\n");
    world.write("broken.toml", "modle = 1\n");
    for (arguments, code) in [
        (&["ask", "--config", "fake.toml", "--model", "openai/m", "hello"][..], 4),
        (&["models", "--config", "fake.toml", "--check", "openai/m"], 4),
        (&["verify", "no-receipt"], 4),
        (&["config", "check", "--config", "broken.toml"], 2),
    ] {
        let ran = world.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code, Some(code), "{ran}");
        assert!(ran.json().is_object(), "{ran}");
    }
}

/// Only two commands have no JSON output: they print a script and a manual page.
#[test]
fn help_names_the_json_form_of_every_command_but_two() {
    let world = World::new();
    let without: Vec<&str> = [
        "run",
        "runs",
        "show",
        "events",
        "cancel",
        "resume",
        "ask",
        "models",
        "verify",
        "config show",
        "config path",
        "config check",
        "completions",
        "man",
    ]
    .into_iter()
    .filter(|command| {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        !world.run(&words).stdout.contains("--json")
    })
    .collect();
    assert_eq!(without, ["completions", "man"]);
}
