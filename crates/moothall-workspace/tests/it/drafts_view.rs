//! The export of drafts: its content, how it is kept up to date, and what it refuses.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use moothall_core::drafts::ReviewDecision;
use moothall_core::gate::GateAction;
use moothall_workspace::{DraftError, DraftStore, DraftStoreOptions, FileRequirement, HandoffMode};
use serde_json::{Value, json};

use crate::world::{World, drafted, person, request, submit, token, worker, write};

const LOG: &str = "_handoff/transition.ndjson";

fn keeping(world: &World, handoff: HandoffMode) -> Result<DraftStore, DraftError> {
    DraftStore::open(DraftStoreOptions { handoff, ..world.options() })
}

/// The files of the export, without directories.
fn shown(world: &World) -> Vec<String> {
    world.names().into_iter().filter(|name| name.starts_with("_handoff/")).collect()
}

fn events(world: &World) -> Vec<String> {
    let log = world.text(LOG).unwrap();
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap()["event"].clone();
    log.lines().map(|line| event(line).as_str().unwrap().to_owned()).collect()
}

fn refused(world: &World, path: &str) {
    match keeping(world, HandoffMode::Keep) {
        Err(DraftError::File { path: found, .. }) => assert_eq!(found, path),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_view_shows_open_drafts_and_keeps_their_transitions() {
    let world = World::new(&[("src/a.py", "a = 1\n"), ("Makefile", "all:\n")]);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    assert_eq!(shown(&world), [LOG]);

    let id = request(&store, "src/a.py");
    write(&store, id, "a = 2\n");
    let copy = "_handoff/drafts/a.py.t1.draft";
    assert_eq!(world.text(copy).unwrap(), "a = 2\n");
    let mode = fs_err::metadata(world.workspace().join(copy)).unwrap().permissions().mode();
    assert_eq!(mode & 0o222, 0);

    store.submit(&worker(), &[id], "doubles a").unwrap();
    assert_eq!(shown(&world), ["_handoff/drafts/t1.submission.json", LOG]);
    let text = world.text("_handoff/drafts/t1.submission.json").unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    let submission = &read["submissions"][0];
    let told = [&submission["change_summary"], &submission["verdict"]];
    assert_eq!(told, [&json!("doubles a"), &json!("allow")]);
    assert_eq!(submission["drafts"][0]["state"], "applied");
    assert_eq!(events(&world), ["draft_ready", "draft_accepted"]);
}

#[test]
fn every_process_keeps_the_view_up_to_date() {
    let world = World::new(&[("Makefile", "all:\n")]);
    drop(keeping(&world, HandoffMode::Keep).unwrap());
    let (one, other) = (world.open(), world.open());
    let (id, submitted) = drafted(&one, "Makefile", "all: build\n");
    assert_eq!(submitted.judged.verdict.action, GateAction::Escalate);
    let seal = submitted.drafts[0].submission.as_ref().unwrap().seal;
    other.review(&person(), id, seal, ReviewDecision::Reject, "no").unwrap();
    // The first store catches up and appends nothing twice.
    one.status(&worker(), id).unwrap();
    assert_eq!(events(&world), ["draft_ready", "draft_escalated", "draft_rejected"]);
}

#[test]
fn a_modified_view_is_rebuilt_from_the_journal() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    drafted(&store, "a.py", "a = 2\n");
    let before = world.text(LOG).unwrap();
    world.save(LOG, "{\"event\":\"draft_accepted\",\"draft_id\":\"forged\"}\n");
    let id = request(&store, "a.py");
    write(&store, id, "a = 3\n");
    assert_eq!(world.text(LOG).unwrap(), before);

    fs_err::remove_dir_all(world.workspace().join("_handoff")).unwrap();
    write(&store, id, "a = 4\n");
    assert_eq!(world.text(LOG).unwrap(), before);
    assert!(shown(&world).len() > 2, "{:?}", shown(&world));
}

/// The error did not name the file.
#[test]
fn an_invalid_state_file_of_the_view_is_named() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    drop(keeping(&world, HandoffMode::Keep).unwrap());
    let path = world.state().join("handoff.json");
    fs_err::write(&path, "[]").unwrap();
    for mode in [HandoffMode::Keep, HandoffMode::End] {
        let error = keeping(&world, mode).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the state of the `_handoff` directory");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.starts_with(&format!("{} is not valid: ", path.display())), "{cause}");
    }
    fs_err::remove_file(&path).unwrap();
    keeping(&world, HandoffMode::End).unwrap();
}

#[test]
fn files_written_into_the_view_are_never_read() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    let id = request(&store, "a.py");
    write(&store, id, "a = 2\n");
    let copy = world.workspace().join("_handoff/drafts/a.py.t1.draft");
    fs_err::remove_file(&copy).unwrap();
    fs_err::write(&copy, "a = 666\n").unwrap();
    submit(&store, &[id]);
    assert_eq!(world.text("a.py").unwrap(), "a = 2\n");
}

#[test]
fn only_the_contract_of_the_task_is_read_and_it_only_tightens() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let contract = r#"{"gate": {"version": 1, "paths": {"protect": ["**"]}}}"#;
    world.save("_handoff/TASK_CONTRACT.json", contract);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    let (_, submitted) = drafted(&store, "a.py", "a = 2\n");
    assert_eq!(submitted.judged.verdict.action, GateAction::Escalate);
    assert_eq!(world.text("_handoff/TASK_CONTRACT.json").unwrap(), contract);
}

/// Regression test: a file of that name prevented every later command from opening the store.
#[test]
fn a_file_at_the_path_of_the_view_is_not_a_contract() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = world.open();
    for name in ["_handoff", "_HANDOFF", "_handoff/x"] {
        let error = store.request(&worker(), "t1", name, FileRequirement::MayNot).unwrap_err();
        assert!(
            error.to_string().contains("does not allow workers to read or change it"),
            "{name}: {error}"
        );
    }
    drop(store);
    world.save("_handoff", "x");
    let (_, submitted) = drafted(&world.open(), "a.py", "a = 2\n");
    assert_eq!(submitted.judged.verdict.action, GateAction::Allow);
}

#[test]
fn a_contract_behind_a_link_or_a_pipe_is_refused() {
    let world = World::new(&[]);
    fs_err::create_dir(world.workspace().join("_handoff")).unwrap();
    let contract = world.workspace().join("_handoff/TASK_CONTRACT.json");
    symlink("/dev/null", &contract).unwrap();
    refused(&world, "_handoff/TASK_CONTRACT.json");
    fs_err::remove_file(&contract).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &contract, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused(&world, "_handoff/TASK_CONTRACT.json");
}

#[test]
fn a_view_directory_that_is_a_link_is_refused_and_not_written() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let outside = world.folder.path().join("outside");
    fs_err::create_dir(&outside).unwrap();
    let link = world.workspace().join("_handoff");
    symlink(&outside, &link).unwrap();
    refused(&world, "_handoff/TASK_CONTRACT.json");
    fs_err::remove_file(&link).unwrap();
    fs_err::create_dir(&link).unwrap();
    symlink(&outside, link.join("drafts")).unwrap();
    refused(&world, "_handoff/drafts");
    assert_eq!(fs_err::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn the_view_never_overwrites_other_files() {
    let world = World::new(&[("a.py", "a = 1\n"), (LOG, "mine\n")]);
    refused(&world, LOG);
    fs_err::remove_file(world.workspace().join(LOG)).unwrap();

    world.save("_handoff/drafts/a.py.t1.draft", "mine\n");
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    // The draft is created, but not exported.
    let id = request(&store, "a.py");
    assert_eq!(world.text("_handoff/drafts/a.py.t1.draft").unwrap(), "mine\n");
    drop(store);
    refused(&world, "_handoff/drafts/a.py.t1.draft");
    fs_err::remove_file(world.workspace().join("_handoff/drafts/a.py.t1.draft")).unwrap();
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    assert_eq!(store.status(&worker(), id).unwrap().revision, 0);
    assert_eq!(world.text("_handoff/drafts/a.py.t1.draft").unwrap(), "a = 1\n");
}

#[test]
fn links_that_are_put_into_a_view_are_replaced_and_not_followed() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    let id = request(&store, "a.py");
    let victim = world.folder.path().join("victim");
    fs_err::write(&victim, "precious\n").unwrap();
    for name in ["_handoff/drafts/a.py.t1.draft", LOG] {
        let path = world.workspace().join(name);
        fs_err::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
    }
    write(&store, id, "a = 2\n");
    submit(&store, &[id]);
    assert_eq!(fs_err::read_to_string(&victim).unwrap(), "precious\n");
    assert_eq!(events(&world), ["draft_ready", "draft_accepted"]);
}

#[test]
fn a_credential_in_a_draft_is_not_in_its_view() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    let id = request(&store, "a.py");
    write(&store, id, &format!("a = '{}'\n", token()));
    let copy = world.text("_handoff/drafts/a.py.t1.draft").unwrap();
    assert_eq!(copy, "(withheld: may contain a credential)\n");
}

#[test]
fn git_leaves_the_view_out_of_commits() {
    let world = World::new(&[(".git/info/exclude", "*.log")]);
    drop(keeping(&world, HandoffMode::Keep).unwrap());
    drop(keeping(&world, HandoffMode::Keep).unwrap());
    assert_eq!(world.text(".git/info/exclude").unwrap(), "*.log\n/_handoff/\n");
}

#[test]
fn a_git_exclude_file_that_is_a_link_is_refused() {
    let world = World::new(&[(".git/info/x", "")]);
    let victim = world.folder.path().join("victim");
    fs_err::write(&victim, "precious\n").unwrap();
    symlink(&victim, world.workspace().join(".git/info/exclude")).unwrap();
    refused(&world, ".git/info/exclude");
    assert_eq!(fs_err::read_to_string(&victim).unwrap(), "precious\n");
}

#[test]
fn a_removed_view_is_not_created_again() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = keeping(&world, HandoffMode::Keep).unwrap();
    let id = request(&store, "a.py");
    world.save("_handoff/drafts/note.txt", "mine\n");
    let store = keeping(&world, HandoffMode::End).unwrap();
    write(&store, id, "a = 2\n");
    assert_eq!(shown(&world), ["_handoff/drafts/note.txt"]);
}
