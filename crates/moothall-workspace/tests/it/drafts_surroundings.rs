//! Workspace context of a draft, as the gate sees it.

use moothall_core::drafts::{ClientInfo, DraftState, Principal};
use moothall_core::gate::{GateAction, GateRule};
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftError, DraftStore, FileRequirement, SubmissionResult,
};

use crate::world::{World, drafted, submit, token, worker, write};

fn rules(submitted: &SubmissionResult) -> Vec<GateRule> {
    submitted.judged.verdict.findings.iter().map(|one| one.rule).collect()
}

fn new_file(store: &DraftStore, name: &str, text: &str) -> SubmissionResult {
    let id = store.request(&worker(), "t1", name, FileRequirement::MayNot).unwrap().0.id;
    write(store, id, text);
    submit(store, &[id])
}

#[test]
fn files_that_git_ignores_are_escalated_and_their_neighbours_are_not() {
    let world = World::new(&[
        (".gitignore", "/out/\n*.log\n!keep.log\n"),
        ("sub/.gitignore", "made/\n"),
        (".git/info/exclude", "private.txt\n"),
    ]);
    let store = world.open();
    for name in ["out/a.txt", "a.log", "sub/made/x/y.txt", "private.txt"] {
        assert_eq!(rules(&new_file(&store, name, "a\n")), [GateRule::PathIgnored], "{name}");
    }
    for name in ["keep.log", "made/y.txt", "sub/a.txt", "sub/out/a.txt"] {
        assert_eq!(rules(&new_file(&store, name, "a\n")), [], "{name}");
    }
}

#[test]
fn a_git_repository_cannot_be_created_file_by_file() {
    let world = World::new(&[("docs/a.md", "a\n")]);
    let store = world.open();
    let head = new_file(&store, "docs/HEAD", "ref: refs/heads/main\n");
    assert_eq!(head.judged.verdict.action, GateAction::Escalate);
    assert_eq!(rules(&new_file(&store, "docs/objects/keep", "x\n")), []);
    // No matter who approved or created it.
    world.save("docs/HEAD", "ref: refs/heads/main\n");
    let pieces = [("docs/refs/keep", "x\n"), ("docs/config", "[a]\n"), ("docs/commondir", "..\n")];
    for (name, text) in pieces {
        let rules = rules(&new_file(&store, name, text));
        assert_eq!(rules, [GateRule::FileGitRepository], "{name}");
    }
}

#[test]
fn deleting_a_file_in_small_steps_is_escalated() {
    let lines = |count: usize| (0..count).map(|at| format!("step {at}\n")).collect::<String>();
    let world = World::new(&[("a.txt", &lines(200))]);
    let store = world.open();
    let mut left = 200;
    let mut accepted = 0;
    for step in 1..=8_u64 {
        world.at(1_000_000 + step);
        let (_, submitted) = drafted(&store, "a.txt", &lines(left / 2));
        if submitted.drafts[0].state != DraftState::Applied {
            assert!(rules(&submitted).contains(&GateRule::DiffDeletionRatio));
            break;
        }
        accepted += 1;
        left /= 2;
    }
    assert_eq!((accepted, left), (1, 100));
}

#[test]
fn a_credential_in_a_path_or_a_task_is_refused_and_recorded_nowhere() {
    let world = World::new(&[("a.txt", "a\n")]);
    let store = world.open();
    let token = token();
    let refused = |task: &str, name: &str| {
        let error = store.request(&worker(), task, name, FileRequirement::MayNot).unwrap_err();
        assert!(matches!(error, DraftError::Input(_)), "{error}");
        assert!(!error.to_string().contains(&token));
    };
    refused("t1", &format!("notes-{token}.md"));
    refused("t1", &format!("{token}/a.md"));
    refused(&token, "b.md");
    let id = store.request(&worker(), "t1", "a.txt", FileRequirement::Must).unwrap().0.id;
    let rename = DraftEdit::Rename(format!("{token}.txt"));
    assert!(store.write(&worker(), id, rename, None).is_err());
    // Names of workers and of their clients are also stored in the journal.
    let named = |who: &str, client: &str| DraftCaller {
        principal: Principal::worker(who),
        client: Some(ClientInfo { name: client.to_owned(), version: "1".to_owned() }),
    };
    assert!(store.request(&named(&token, "x"), "t1", "c.md", FileRequirement::MayNot).is_err());
    store.request(&named("ada/two", &token), "t1", "c.md", FileRequirement::MayNot).unwrap();
    assert!(!world.journal().contains(&token));
}

#[test]
fn deleting_a_file_in_small_steps_by_several_workers_is_escalated() {
    let lines = |count: usize| (0..count).map(|at| format!("step {at}\n")).collect::<String>();
    let world = World::new(&[("a.txt", &lines(200))]);
    let store = world.open();
    drafted(&store, "a.txt", &lines(100));
    let other = DraftCaller::new(Principal::worker("eve/two"));
    let id = store.request(&other, "t2", "a.txt", FileRequirement::Must).unwrap().0.id;
    store.write(&other, id, DraftEdit::Content(lines(50)), None).unwrap();
    let submitted = store.submit(&other, &[id], "why").unwrap();
    assert_eq!(submitted.drafts[0].state, DraftState::Escalated);
}
