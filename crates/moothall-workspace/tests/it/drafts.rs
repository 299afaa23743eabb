//! Drafts from request to workspace, by a worker and a reviewer.

use std::path::{Path, PathBuf};

use moothall_core::ErrorCode;
use moothall_core::Sha256Hex;
use moothall_core::drafts::{DraftId, DraftState, Principal, ReviewDecision};
use moothall_core::gate::{GateAction, GateRule};
use moothall_workspace::{
    DraftCaller, DraftEdit, DraftError, DraftStore, FileRequirement, OldTextFault,
    SubmissionResult, verify,
};

use crate::world::{World, drafted, person, request, submit, token, worker, write};

fn states(submitted: &SubmissionResult) -> Vec<DraftState> {
    submitted.drafts.iter().map(|draft| draft.state).collect()
}

fn seal(store: &DraftStore, id: DraftId) -> Sha256Hex {
    store.status(&person(), id).unwrap().submission.unwrap().seal
}

#[test]
fn an_edit_goes_from_request_to_the_workspace() {
    let world = World::new(&[("src/watchdog.py", "import sys\n")]);
    let store = world.open();
    let (draft, text) =
        store.request(&worker(), "phase10", "src/watchdog.py", FileRequirement::Must).unwrap();
    assert_eq!(text, "import sys\n");
    assert_eq!(draft.base.unwrap().sha256, Sha256Hex::of(b"import sys\n"));
    let edit =
        DraftEdit::Replace { old: "import sys\n".into(), new: "import sys\nVERSION = 1\n".into() };
    store.write(&worker(), draft.id, edit, None).unwrap();
    assert_eq!(world.text("src/watchdog.py").unwrap(), "import sys\n");
    let submitted = submit(&store, &[draft.id]);
    assert_eq!(submitted.judged.verdict.action, GateAction::Allow);
    assert_eq!(states(&submitted), [DraftState::Applied]);
    assert_eq!(world.text("src/watchdog.py").unwrap(), "import sys\nVERSION = 1\n");
    assert_eq!(world.names(), ["src/watchdog.py"]);
}

#[test]
fn several_files_are_applied_together_or_not_at_all() {
    let world = World::new(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    let store = world.open();
    let ids: Vec<_> = ["a", "b", "c"].iter().map(|name| request(&store, name)).collect();
    for id in &ids {
        write(&store, *id, "new\n");
    }
    world.save("c", "somebody was here\n");
    let submitted = submit(&store, &ids);
    assert_eq!(states(&submitted), [DraftState::Conflict; 3]);
    let texts = ["a", "b", "c"].map(|name| world.text(name).unwrap());
    assert_eq!(texts, ["a\n", "b\n", "somebody was here\n"]);
    assert_eq!(world.names(), ["a", "b", "c"]);
    world.save("c", "c\n");
    assert_eq!(states(&submit(&store, &ids)), [DraftState::Applied; 3]);
    assert_eq!(["a", "b", "c"].map(|name| world.text(name).unwrap()), ["new\n"; 3]);
}

#[test]
fn new_deleted_renamed_and_chmodded_files_need_review_and_can_be_undone() {
    let world = World::new(&[("old.py", "a = 1\n"), ("gone.py", "b = 1\n"), ("run.py", "c = 1\n")]);
    let store = world.open();
    let new =
        store.request(&worker(), "t1", "deep/er/new.py", FileRequirement::MayNot).unwrap().0.id;
    write(&store, new, "d = 1\n");
    let (moved, gone, run) =
        (request(&store, "old.py"), request(&store, "gone.py"), request(&store, "run.py"));
    let edit = |id, edit| store.write(&worker(), id, edit, None).unwrap();
    edit(moved, DraftEdit::Rename("new-name.py".into()));
    edit(gone, DraftEdit::Delete);
    edit(run, DraftEdit::Executable(true));
    let ids = [new, moved, gone, run];
    let submitted = submit(&store, &ids);
    assert_eq!(submitted.judged.verdict.action, GateAction::Escalate);
    assert_eq!(world.names(), ["gone.py", "old.py", "run.py"]);
    let applied =
        store.review(&person(), new, seal(&store, new), ReviewDecision::Approve, "fine").unwrap();
    assert!(applied.iter().all(|draft| draft.state == DraftState::Applied));
    assert_eq!(world.names(), ["deep/er/new.py", "new-name.py", "run.py"]);
    assert_eq!(mode(&world, "run.py") & 0o111, 0o111);
    assert_eq!(mode(&world, "deep/er/new.py"), 0o644);
    let undone = store.undo(&person(), gone).unwrap();
    assert!(undone.iter().all(|draft| draft.state == DraftState::Reverted));
    assert_eq!(world.names(), ["gone.py", "old.py", "run.py"]);
    assert_eq!(mode(&world, "run.py") & 0o111, 0);
}

fn mode(world: &World, name: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::metadata(world.workspace().join(name)).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_mode_of_a_file_is_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new(&[("a.sh", "#!/bin/sh\necho\n")]);
    let path = world.workspace().join("a.sh");
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let store = world.open();
    let (_, submitted) = drafted(&store, "a.sh", "#!/bin/sh\necho hello\n");
    assert_eq!(states(&submitted), [DraftState::Applied]);
    assert_eq!(mode(&world, "a.sh"), 0o750);
}

#[test]
fn a_new_script_is_not_executable() {
    let world = World::new(&[]);
    let store = world.open();
    let id = store.request(&worker(), "t1", "run.sh", FileRequirement::MayNot).unwrap().0.id;
    write(&store, id, "#!/bin/sh\necho\n");
    let submitted = submit(&store, &[id]);
    assert_eq!(submitted.judged.verdict.action, GateAction::Warn);
    assert_eq!(mode(&world, "run.sh"), 0o644);
}

#[test]
fn undo_does_not_touch_a_file_changed_since() {
    let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
    let store = world.open();
    let ids = [request(&store, "a"), request(&store, "b")];
    for id in ids {
        write(&store, id, "new\n");
    }
    submit(&store, &ids);
    world.save("a", "mine\n");
    let left = store.undo(&person(), ids[0]).unwrap();
    assert!(left.iter().all(|draft| draft.state == DraftState::Applied));
    assert_eq!(["a", "b"].map(|name| world.text(name).unwrap()), ["mine\n", "new\n"]);
    assert!(matches!(store.undo(&worker(), ids[0]), Err(DraftError::Refused(_))));
}

#[test]
fn a_rejected_secret_is_removed_from_the_store_immediately() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = world.open();
    let token = token();
    let (id, submitted) = drafted(&store, "a.py", &format!("a = 1\nkey = \"{token}\"\n"));
    assert_eq!(submitted.judged.verdict.action, GateAction::Reject);
    assert_eq!(states(&submitted), [DraftState::Editing]);
    assert!(store.read(&worker(), id).is_err());
    store.submit(&worker(), &[id], "again").unwrap_err();
    let mut found = Vec::new();
    files_with(&world.state(), &token, &mut found);
    assert_eq!(found, Vec::<PathBuf>::new());
    write(&store, id, "a = 2\n");
    assert_eq!(states(&submit(&store, &[id])), [DraftState::Applied]);
}

#[test]
fn a_credential_in_a_summary_or_a_reason_is_not_written_down() {
    let world = World::new(&[("Makefile", "a:\n")]);
    let store = world.open();
    let id = request(&store, "Makefile");
    write(&store, id, "b:\n");
    let token = token();
    store.submit(&worker(), &[id], &format!("use {token}")).unwrap();
    store
        .review(&person(), id, seal(&store, id), ReviewDecision::Reject, &format!("not {token}"))
        .unwrap();
    assert!(!world.journal().contains(&token));
}

fn files_with(folder: &Path, text: &str, found: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_with(&path, text, found);
        } else if String::from_utf8_lossy(&fs_err::read(&path).unwrap()).contains(text) {
            found.push(path);
        }
    }
}

#[test]
fn foreign_and_invalid_draft_ids_get_the_same_error() {
    let world = World::new(&[("a", "a\n")]);
    let store = world.open();
    let id = request(&store, "a");
    let stranger = DraftCaller::new(Principal::worker("ada/two"));
    let words = |id| store.read(&stranger, id).unwrap_err().to_string();
    assert_eq!(words(id), words(DraftId::new([9; 16])));
    assert_eq!(store.list(&stranger).unwrap(), []);
}

#[test]
fn the_first_of_two_drafts_of_a_file_wins_and_the_other_can_be_rebased() {
    let world = World::new(&[("a", "1\n2\n3\n4\n5\n")]);
    let store = world.open();
    let first = request(&store, "a");
    let other = DraftCaller::new(Principal::worker("ada/two"));
    let second = store.request(&other, "t2", "a", FileRequirement::Must).unwrap().0.id;
    write(&store, first, "one\n2\n3\n4\n5\n");
    let edit = DraftEdit::Content("1\n2\n3\n4\nfive\n".into());
    store.write(&other, second, edit, None).unwrap();
    assert_eq!(states(&submit(&store, &[first])), [DraftState::Applied]);
    let late = store.submit(&other, &[second], "").unwrap();
    assert_eq!(states(&late), [DraftState::Conflict]);
    assert_eq!(world.text("a").unwrap(), "one\n2\n3\n4\n5\n");
    let (draft, clean) = store.rebase(&other, second).unwrap();
    assert_eq!((draft.state, clean), (DraftState::Editing, true));
    assert_eq!(states(&store.submit(&other, &[second], "").unwrap()), [DraftState::Applied]);
    assert_eq!(world.text("a").unwrap(), "one\n2\n3\n4\nfive\n");
}

#[test]
fn a_rebase_that_is_not_clean_is_rejected_by_the_gate() {
    let world = World::new(&[("a", "1\n")]);
    let store = world.open();
    let id = request(&store, "a");
    write(&store, id, "draft\n");
    world.save("a", "person\n");
    assert_eq!(states(&submit(&store, &[id])), [DraftState::Conflict]);
    assert!(!store.rebase(&worker(), id).unwrap().1);
    let submitted = submit(&store, &[id]);
    let rules: Vec<_> = submitted.judged.verdict.findings.iter().map(|one| one.rule).collect();
    assert_eq!(rules, [GateRule::ContentConflictMarkers]);
    assert_eq!(world.text("a").unwrap(), "person\n");
}

#[test]
fn a_deleted_original_is_a_conflict_and_is_not_brought_back() {
    let world = World::new(&[("a", "a\n")]);
    let store = world.open();
    let id = request(&store, "a");
    write(&store, id, "b\n");
    fs_err::remove_file(world.workspace().join("a")).unwrap();
    assert_eq!(states(&submit(&store, &[id])), [DraftState::Conflict]);
    assert!(store.rebase(&worker(), id).is_err());
    assert_eq!(world.names(), Vec::<String>::new());
}

#[test]
fn a_new_file_that_already_exists_is_a_conflict() {
    let world = World::new(&[]);
    let store = world.open();
    let id = store.request(&worker(), "t1", "a", FileRequirement::MayNot).unwrap().0.id;
    write(&store, id, "draft\n");
    world.save("a", "person\n");
    assert_eq!(states(&submit(&store, &[id])), [DraftState::Conflict]);
    assert_eq!(world.text("a").unwrap(), "person\n");
}

#[test]
fn an_approval_of_an_outdated_version_is_refused() {
    let world = World::new(&[("Makefile", "a:\n")]);
    let store = world.open();
    let (id, submitted) = drafted(&store, "Makefile", "b:\n");
    assert_eq!(states(&submitted), [DraftState::Escalated]);
    let shown = seal(&store, id);
    write(&store, id, "evil:\n");
    submit(&store, &[id]);
    assert!(store.review(&person(), id, shown, ReviewDecision::Approve, "").is_err());
    assert_eq!(world.text("Makefile").unwrap(), "a:\n");
    store.review(&person(), id, seal(&store, id), ReviewDecision::SendBack, "smaller").unwrap();
    assert_eq!(store.status(&worker(), id).unwrap().state, DraftState::Editing);
}

#[test]
fn files_over_the_size_limit_of_the_policy_are_refused() {
    let world = World::new(&[("big", &"x".repeat((1 << 20) + 1)), ("a", "a\n")]);
    let store = world.open();
    assert!(store.request(&worker(), "t1", "big", FileRequirement::Must).is_err());
    let id = request(&store, "a");
    let big = DraftEdit::Content("x".repeat((1 << 20) + 1));
    assert!(store.write(&worker(), id, big, None).is_err());
}

#[test]
fn the_old_text_of_an_edit_must_occur_exactly_once() {
    let world = World::new(&[("a", "aaa\nb\n")]);
    let store = world.open();
    let id = request(&store, "a");
    for (old, expected) in
        [("aa", OldTextFault::Repeated), ("x", OldTextFault::Missing), ("", OldTextFault::Empty)]
    {
        let edit = DraftEdit::Replace { old: old.into(), new: "y".into() };
        let error = store.write(&worker(), id, edit, None).unwrap_err();
        assert!(matches!(error, DraftError::OldText(fault) if fault == expected), "{error:?}");
        assert_eq!(error.code(), ErrorCode::OldText);
    }
}

#[test]
fn a_new_name_that_resembles_an_existing_one_is_escalated() {
    let world = World::new(&[("Main.py", "a\n")]);
    let store = world.open();
    let id = store.request(&worker(), "t1", "main.py", FileRequirement::MayNot).unwrap().0.id;
    write(&store, id, "b\n");
    let submitted = submit(&store, &[id]);
    let rules: Vec<_> = submitted.judged.verdict.findings.iter().map(|one| one.rule).collect();
    assert_eq!(
        (states(&submitted), rules),
        (vec![DraftState::Escalated], vec![GateRule::PathTwin])
    );
    assert!(store.request(&worker(), "t1", "u\u{308}.py", FileRequirement::MayNot).is_err());
}

#[test]
fn a_policy_changed_at_run_time_is_ignored_and_noted_once() {
    let world = World::new(&[("a.py", "a\n"), (".moothall/policy.toml", "version = 1\n")]);
    let store = world.open();
    world.save(".moothall/policy.toml", "version = 1\n[rules]\n\"path.home\" = \"allow\"\n");
    let home = format!("p = '/{}/ada/x'\n", "home");
    let (_, submitted) = drafted(&store, "a.py", &home);
    assert_eq!(submitted.judged.verdict.action, GateAction::Reject);
    drafted(&store, "a.py", "b\n");
    assert_eq!(world.journal().matches("policy_differs").count(), 1);
}

#[test]
fn viewing_a_draft_under_an_older_policy_does_not_accept_it() {
    let world = World::new(&[("deploy/a.py", "a\n"), (".moothall/policy.toml", "version = 1\n")]);
    let older = world.open();
    let guarded = "version = 1\n[paths]\nprotect = [\"deploy/**\"]\n";
    world.save(".moothall/policy.toml", guarded);
    let (id, submitted) = drafted(&world.open(), "deploy/a.py", "b\n");
    assert_eq!(states(&submitted), [DraftState::Escalated]);
    let shown = older.shown(&DraftCaller::new(Principal::gate()), id).unwrap();
    assert_eq!(shown[0].draft.state, DraftState::Escalated);
    assert_eq!(world.text("deploy/a.py").unwrap(), "a\n");
}

#[test]
fn a_policy_with_an_unknown_key_prevents_opening_the_store() {
    let world = World::new(&[(".moothall/policy.toml", "version = 1\nmax = 1\n")]);
    assert!(matches!(DraftStore::open(world.options()), Err(DraftError::Policy(_))));
}

#[test]
fn purging_empties_the_store_and_keeps_the_journal() {
    let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
    let store = world.open();
    drafted(&store, "a", "new\n");
    let open = request(&store, "b");
    assert!(store.purge(&person()).unwrap() >= 3);
    assert_eq!(store.status(&worker(), open).unwrap().state, DraftState::Withdrawn);
    let kinds: Vec<_> = world.journal().lines().map(|line| line.contains("purged")).collect();
    assert_eq!(kinds.last(), Some(&true));
    verify(&world.state(), None, |_| {}).unwrap();
}

#[test]
fn unneeded_contents_are_removed_and_old_drafts_expire() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let world = World::new(&[("a", "a\n"), ("b", "b\n")]);
    let store = world.open();
    let (applied, _) = drafted(&store, "a", "new\n");
    let open = request(&store, "b");
    world.at(9 * DAY);
    assert_eq!(store.tidy().unwrap(), 0);
    assert_eq!(store.status(&worker(), open).unwrap().state, DraftState::Expired);
    let words = store.write(&worker(), open, DraftEdit::Delete, None).unwrap_err().to_string();
    assert_eq!(words, "draft is expired and cannot be written");
    world.at(40 * DAY);
    assert_eq!(store.tidy().unwrap(), 3);
    assert!(matches!(store.undo(&person(), applied), Err(DraftError::ContentGone(_))));
}

/// Regression test: a long summary was scanned completely while the store was locked.
#[test]
fn long_summary_is_cut_before_it_is_scanned() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let store = world.open();
    let id = request(&store, "a.py");
    write(&store, id, "a = 2\n");
    let begun = std::time::Instant::now();
    // A credential beyond the limit is cut off, so the summary is not withheld.
    let summary = format!("{}{}", "\\".repeat(8 << 20), token());
    let submitted = store.submit(&worker(), &[id], &summary).unwrap();
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    let kept = &submitted.drafts[0].submission.as_ref().unwrap().summary;
    assert_eq!(*kept, "\\".repeat(2_000));
}

#[test]
fn a_clock_that_goes_back_changes_no_order() {
    let world = World::new(&[("a", "a\n")]);
    let store = world.open();
    let id = request(&store, "a");
    world.at(5);
    write(&store, id, "b\n");
    assert_eq!(states(&submit(&store, &[id])), [DraftState::Applied]);
    let again = world.open();
    assert_eq!(again.status(&worker(), id).unwrap(), store.status(&worker(), id).unwrap());
    verify(&world.state(), None, |_| {}).unwrap();
}
