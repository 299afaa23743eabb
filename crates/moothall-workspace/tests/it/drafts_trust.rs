//! Workspace policies and trust.

use moothall_core::gate::{GateAction, GateRule};
use moothall_workspace::{DraftError, DraftStore, FileRequirement};

use crate::world::{World, drafted, person, submit, worker, write};

const LOOSE: &str = r#"version = 1
[paths]
protect = []
[rules]
"deps.manifest_changed" = "allow"
"path.protected" = "warn"
"path.autorun" = "warn"
[review]
elicitation = "form"
"#;

fn manifest(world: &World) -> GateAction {
    let store = world.open();
    let id = store.request(&worker(), "t1", "package.json", FileRequirement::MayNot).unwrap().0.id;
    write(&store, id, "{\"scripts\": {\"postinstall\": \"x\"}}\n");
    submit(&store, &[id]).judged.verdict.action
}

#[test]
fn a_workspace_policy_only_tightens_until_it_is_trusted() {
    let world = World::new(&[(".moothall/policy.toml", LOOSE)]);
    assert_eq!(manifest(&world), GateAction::Escalate);
    let store = world.open();
    assert_eq!(
        store.policy_notes(),
        [
            "the workspace asks for path.protected = warn; escalate stays in effect",
            "the workspace asks for path.autorun = warn; escalate stays in effect",
            "the workspace asks for deps.manifest_changed = allow; escalate stays in effect",
            "the workspace asks for 8 fewer protected patterns; this is ignored",
            "the workspace asks for answers from clients on behalf of their users (elicitation); this is ignored",
        ]
    );
    store.trust_policy(&person()).unwrap();
    let store = world.open();
    assert_eq!(store.policy().rule(GateRule::DepsManifestChanged), GateAction::Allow);
    assert_eq!(
        store.policy_notes()[2..5],
        [
            "the trusted workspace policy loosens the built-in policy: deps.manifest_changed = allow",
            "the trusted workspace policy loosens the built-in policy: 8 fewer protected patterns",
            "the trusted workspace policy loosens the built-in policy: answers from clients on behalf of their users (elicitation)",
        ]
    );
    assert!(world.journal().contains("policy_trusted"));
}

#[test]
fn trust_ends_when_the_text_of_the_policy_changes() {
    let world = World::new(&[(".moothall/policy.toml", LOOSE)]);
    world.open().trust_policy(&person()).unwrap();
    world.save(".moothall/policy.toml", &format!("{LOOSE}# one more line\n"));
    assert_eq!(world.open().policy().rule(GateRule::DepsManifestChanged), GateAction::Escalate);
}

#[test]
fn trusting_a_missing_policy_is_refused() {
    let world = World::new(&[]);
    let refused = world.open().trust_policy(&person()).unwrap_err();
    assert!(matches!(refused, DraftError::Input(_)), "{refused}");
}

#[test]
fn a_policy_changed_while_the_store_was_closed_is_noted() {
    let world = World::new(&[("a.txt", "a\n"), (".moothall/policy.toml", "version = 1\n")]);
    drafted(&world.open(), "a.txt", "b\n");
    assert_eq!(world.open().policy_notes(), Vec::<String>::new());
    world.save(".moothall/policy.toml", "version = 1\n# another one\n");
    let note = "the policy changed after it judged the last submission";
    assert_eq!(world.open().policy_notes(), [note]);
}

#[test]
fn a_policy_behind_a_symbolic_link_is_refused() {
    let world = World::new(&[("config/policy.toml", "version = 1\n"), (".moothall/keep", "")]);
    let link = world.workspace().join(".moothall/policy.toml");
    std::os::unix::fs::symlink("../config/policy.toml", link).unwrap();
    assert!(DraftStore::open(world.options()).is_err());
}
