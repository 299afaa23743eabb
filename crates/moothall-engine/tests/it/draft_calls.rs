//! Draft calls of an agent: files with credentials are not read, and a submission made before a
//! crash is not repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use moothall_core::drafts::{
    CommentSide, DraftState, LineComment, Principal, RelPath, ReviewDecision, TaskId,
};
use moothall_core::edit::{DraftCall, DraftReply, EditProposal, FileText, SubmissionStatus};
use moothall_core::{Effect, EffectResult, Sha256Hex};
use moothall_engine::{DraftPerformer, EffectPerformer as _};
use moothall_workspace::{DraftCaller, DraftStore, FileAmendment};

use crate::support::Counting;
use crate::world::{World, person, unending, worker};

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// Uses a new performer, as after a crash.
async fn perform(world: &World, call: DraftCall) -> DraftReply {
    let task = TaskId::parse("edit-1").unwrap();
    let models = Arc::new(Counting::default());
    let performer = DraftPerformer::new(models, world.open(), worker(), task);
    let id = "attempt-1/submit".parse().unwrap();
    match performer.perform(&id, &Effect::Draft(Box::new(call))).await.result {
        EffectResult::Drafted(reply) => *reply,
        other => panic!("{other:?}"),
    }
}

fn change(name: &str, text: &str) -> DraftCall {
    let files = BTreeMap::from([(path(name), Some(text.to_owned()))]);
    DraftCall::Submit(EditProposal { summary: "why".to_owned(), files })
}

async fn submitted(world: &World, call: DraftCall) -> SubmissionStatus {
    match perform(world, call).await {
        DraftReply::Submitted(said) => said,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn listed_files_exclude_build_output_and_reserved_directories() {
    let world = World::new(&[("src/a.py", "a\n"), ("target/x", "x"), ("_handoff/y", "y")]);
    world.save(".git/config", "");
    let reply = perform(&world, DraftCall::Files).await;
    assert_eq!(reply, DraftReply::Files { paths: vec![path("src/a.py")] });
}

#[tokio::test]
async fn a_file_with_a_credential_is_not_shown_to_a_model() {
    let token = format!("ghp_{}", &Sha256Hex::of(b"a token of nobody").to_string()[..36]);
    let world = World::new(&[("a.py", "a = 1\n"), ("b.py", &format!("KEY = \"{token}\"\n"))]);
    let paths = ["a.py", "b.py", "c.py"].map(path).to_vec();
    let DraftReply::Read { files, refused } = perform(&world, DraftCall::Read { paths }).await
    else {
        panic!("nothing was read")
    };
    let text = |name: &str, text: &str| FileText { path: path(name), text: text.to_owned() };
    // A file that does not exist yet is empty.
    assert_eq!(files, [text("a.py", "a = 1\n"), text("c.py", "")]);
    assert_eq!(refused, ["b.py: it may hold a credential"]);
}

#[tokio::test]
async fn a_change_applied_before_a_crash_is_not_submitted_again() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let first = submitted(&world, change("a.py", "a = 2\n")).await;
    let records = world.journal().lines().count();
    let again = submitted(&world, change("a.py", "a = 2\n")).await;
    assert_eq!((first.state, &again), (DraftState::Applied, &first));
    assert_eq!(world.journal().lines().count(), records);
    assert_eq!(world.text("a.py").unwrap(), "a = 2\n");
}

#[tokio::test]
async fn a_waiting_draft_call_receives_the_reviewers_decision() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let said = submitted(&world, change("Makefile", "all: build\n")).await;
    assert_eq!(said.state, DraftState::Escalated);
    let wait = |seconds| DraftCall::Wait { drafts: said.drafts.clone(), seconds };
    assert_eq!(submitted(&world, wait(0)).await, said);
    let store = world.open();
    let seal = store.status(&person(), said.drafts[0]).unwrap().submission.unwrap().seal;
    store.review(&person(), said.drafts[0], seal, ReviewDecision::SendBack, "keep it").unwrap();
    let heard = submitted(&world, wait(600)).await;
    assert_eq!((heard.state, heard.comment.as_deref()), (DraftState::Editing, Some("keep it")));
}

#[tokio::test]
async fn comments_on_lines_reach_the_agent_with_the_decision() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let said = submitted(&world, change("Makefile", "all: build\n")).await;
    let store = world.open();
    let seal = store.status(&person(), said.drafts[0]).unwrap().submission.unwrap().seal;
    let comment = LineComment {
        path: path("Makefile"),
        side: CommentSide::New,
        line: 1,
        text: "which build?".to_owned(),
    };
    store.comment(&person(), said.drafts[0], seal, vec![comment.clone()]).unwrap();
    store.review(&person(), said.drafts[0], seal, ReviewDecision::SendBack, "").unwrap();
    let wait = DraftCall::Wait { drafts: said.drafts.clone(), seconds: 600 };
    let heard = submitted(&world, wait).await;
    assert_eq!((heard.state, heard.comments), (DraftState::Editing, vec![comment]));
}

#[tokio::test]
async fn a_partly_approved_change_is_not_submitted_again_after_a_crash() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let said = submitted(&world, change("Makefile", "all: build\n")).await;
    let (store, id) = (world.open(), said.drafts[0]);
    let seal = store.status(&person(), id).unwrap().submission.unwrap().seal;
    let edited = BTreeMap::from([(id, FileAmendment::content("all: test\n"))]);
    store.amend(&person(), id, seal, &edited, None, "").unwrap();
    let records = world.journal().lines().count();
    let again = submitted(&world, change("Makefile", "all: build\n")).await;
    assert_eq!((again.state, again.drafts), (DraftState::Applied, vec![id]));
    assert_eq!(world.journal().lines().count(), records);
    assert_eq!(world.text("Makefile").unwrap(), "all: test\n");
}

/// Regression: the file that the reviewer rejected did not count as submitted.
#[tokio::test]
async fn a_change_of_which_one_file_was_rejected_is_not_submitted_again_after_a_crash() {
    let world = World::new(&[("Makefile", "all:\n"), ("a.py", "a = 1\n")]);
    let both = || {
        let files = [("Makefile", "all: build\n"), ("a.py", "a = 2\n")];
        let files = files.map(|(name, text)| (path(name), Some(text.to_owned())));
        let files = BTreeMap::from(files);
        DraftCall::Submit(EditProposal { summary: "why".to_owned(), files })
    };
    let said = submitted(&world, both()).await;
    let (store, id) = (world.open(), said.drafts[0]);
    let seal = store.status(&person(), id).unwrap().submission.unwrap().seal;
    let none = BTreeMap::from([(id, FileAmendment::Hunks(BTreeSet::new()))]);
    store.amend(&person(), id, seal, &none, None, "not the Makefile").unwrap();
    let records = world.journal().lines().count();
    let again = submitted(&world, both()).await;
    assert_eq!((again.state, again.drafts), (DraftState::Applied, said.drafts));
    assert_eq!(world.journal().lines().count(), records);
    let [makefile, code] = ["Makefile", "a.py"].map(|name| world.text(name).unwrap());
    assert_eq!((makefile.as_str(), code.as_str()), ("all:\n", "a = 2\n"));
}

#[tokio::test]
async fn a_change_that_a_person_rejected_is_not_submitted_again_after_a_crash() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let said = submitted(&world, change("Makefile", "all: build\n")).await;
    let (store, id) = (world.open(), said.drafts[0]);
    let seal = store.status(&person(), id).unwrap().submission.unwrap().seal;
    store.review(&person(), id, seal, ReviewDecision::Reject, "keep it").unwrap();
    let again = submitted(&world, change("Makefile", "all: build\n")).await;
    assert_eq!((again.state, again.drafts), (DraftState::Rejected, vec![id]));
    assert_eq!(again.comment.as_deref(), Some("keep it"));
}

#[tokio::test]
async fn a_draft_in_conflict_is_discarded_so_the_file_is_read_again() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    perform(&world, DraftCall::Read { paths: vec![path("a.py")] }).await;
    world.save("a.py", "a = 9\n");
    assert_eq!(submitted(&world, change("a.py", "a = 2\n")).await.state, DraftState::Conflict);
    let DraftReply::Read { files, .. } =
        perform(&world, DraftCall::Read { paths: vec![path("a.py")] }).await
    else {
        panic!("nothing was read")
    };
    assert_eq!(files[0].text, "a = 9\n");
}

/// A change that was being checked when its run ended is not submitted afterwards.
#[tokio::test]
async fn a_run_that_ends_during_a_check_submits_nothing() {
    let world = World::new(&[("a.py", "a = 1\n")]);
    let (options, begun) = unending(&world);
    let task = TaskId::parse("edit-1").unwrap();
    let store = DraftStore::open(options).unwrap();
    let performer = DraftPerformer::new(Arc::new(Counting::default()), store, worker(), task);
    let (id, effect) =
        ("attempt-1/submit".parse().unwrap(), Effect::Draft(Box::new(change("a.py", "a = 2\n"))));
    tokio::select! {
        performed = performer.perform(&id, &effect) => panic!("{performed:?}"),
        begun = tokio::task::spawn_blocking(move || begun.recv()) => begun.unwrap().unwrap(),
    }
    // The store's thread is not awaited; the next call only waits for its lock.
    drop(performer);
    fs_err::remove_file(world.workspace().join(".moothall/policy.toml")).unwrap();
    let store = world.open();
    let draft = store.list(&worker()).unwrap().remove(0);
    assert_eq!((draft.state, draft.submission), (DraftState::Editing, None));
    assert_eq!(submitted(&world, change("a.py", "a = 2\n")).await.state, DraftState::Applied);
}

#[tokio::test]
async fn after_a_conflict_all_files_are_read_again_and_not_only_the_touched_ones() {
    let world = World::new(&[("a.py", "a = 1\n"), ("b.py", "b = 1\n")]);
    let read = || DraftCall::Read { paths: ["a.py", "b.py"].map(path).to_vec() };
    perform(&world, read()).await;
    // Both files change; the model's change touches only one.
    world.save("a.py", "a = 9\n");
    world.save("b.py", "b = 9\n");
    assert_eq!(submitted(&world, change("a.py", "a = 2\n")).await.state, DraftState::Conflict);
    let DraftReply::Read { files, .. } = perform(&world, read()).await else {
        panic!("nothing was read")
    };
    let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
    assert_eq!(texts, ["a = 9\n", "b = 9\n"]);
}

#[tokio::test]
async fn a_draft_call_does_not_read_paths_denied_by_the_policy() {
    let world = World::new(&[("a.py", "a = 1\n"), ("secrets/b.py", "b = 1\n")]);
    world.save(".moothall/policy.toml", "version = 1\n[paths]\ndeny = [\"secrets/**\"]\n");
    let paths = ["a.py", "secrets/b.py"].map(path).to_vec();
    let reply = perform(&world, DraftCall::Read { paths }).await;
    let files = vec![FileText { path: path("a.py"), text: "a = 1\n".to_owned() }];
    let why = "secrets/b.py: the policy does not allow workers to read or change it";
    assert_eq!(reply, DraftReply::Read { files, refused: vec![why.to_owned()] });
}

#[tokio::test]
async fn a_draft_of_another_worker_is_unknown_to_a_draft_call() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let other = DraftCaller::new(Principal::worker("somebody else"));
    let store = world.open();
    let must = moothall_workspace::FileRequirement::Must;
    let (draft, _) = store.request(&other, "edit-1", "Makefile", must).unwrap();
    let reply = perform(&world, DraftCall::Wait { drafts: vec![draft.id], seconds: 0 }).await;
    assert_eq!(reply, DraftReply::Refused { why: "draft not found".to_owned() });
}
