//! Keys in a real keychain: GNOME Keyring on a separate session bus.

use std::process::{Command, Stdio};

use crate::fake::Fake;
use crate::world::{Ran, World};

const KEY: &str = "sk-in-the-keychain-c0a94e6e";

/// Runs shell commands next to an unlocked keychain. `$MOOTHALL` is the program.
fn with_keychain(world: &World, script: &str) -> Ran {
    let program = world.command(&[]);
    let unlock = "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null";
    let script = format!("set -e\n{unlock}\n{script}");
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", &script]);
    command.current_dir(world.path("")).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The keychain has its control socket there.
    command.env("XDG_RUNTIME_DIR", world.root());
    command.env("MOOTHALL", program.get_program()).stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("dbus is needed: {error}"));
    world.ran(&["(with a keychain)"], output)
}

#[test]
fn a_key_is_stored_used_and_removed() {
    let fake = Fake::saying("fine");
    let world = World::new();
    fake.configure(&world, "");
    let ask = "\"$MOOTHALL\" ask --config fake.toml --model openai/gpt-4.1-mini hello";
    let ran = with_keychain(
        &world,
        &format!(
            "echo {KEY} | \"$MOOTHALL\" key set openai\n\"$MOOTHALL\" key list | grep openai\n{ask}\n\
             \"$MOOTHALL\" key remove openai\n\"$MOOTHALL\" key list | grep openai"
        ),
    );
    assert_eq!(ran.code, Some(0), "{ran}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "stored the key of openai in the keychain",
            "test it: moothall key test openai",
            "openai           keychain",
            "fine",
            "removed the key of openai from the keychain",
            "openai           none: moothall key set openai",
        ],
        "{ran}"
    );
    assert_eq!(fake.calls()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    let keys_file = world.root().join("home/.config/moothall/keys.toml");
    assert_eq!(fs_err::read_to_string(keys_file).unwrap(), "");
}
