//! Review by hunk: partial approval, edits by the reviewer and comments on lines.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;

use moothall_core::Sha256Hex;
use moothall_core::drafts::{
    CommentSide, DraftId, DraftRefusal, DraftState, LineComment, MAX_COMMENTS, RelPath,
    ReviewDecision,
};
use moothall_core::gate::{GateAction, GateRule};
use moothall_workspace::{
    AmendResult, DraftEdit, DraftError, DraftStore, FailPoint, FileAmendment, SubmissionFile,
    verify,
};
use serde_json::Value;

use crate::world::{World, drafted, person, request, submit, token, worker, write};

/// Lines from 0, with other words at these places.
fn numbered(lines: usize, changed: &[usize]) -> String {
    let line = |at: usize| match changed.contains(&at) {
        true => format!("new {at}\n"),
        false => format!("line {at}\n"),
    };
    (0..lines).map(line).collect()
}

/// A waiting draft of `Makefile` with three hunks.
fn waiting() -> (World, DraftStore, DraftId, Sha256Hex) {
    let world = World::new(&[("Makefile", &numbered(40, &[]))]);
    let store = world.open();
    let (id, submitted) = drafted(&store, "Makefile", &numbered(40, &[2, 20, 38]));
    let seal = submitted.drafts[0].submission.as_ref().unwrap().seal;
    (world, store, id, seal)
}

/// Approves these hunks of a submission, by number, and rejects the others.
fn selection(
    store: &DraftStore,
    id: DraftId,
    numbers: &[usize],
) -> BTreeMap<DraftId, FileAmendment> {
    let files = store.shown(&person(), id).unwrap();
    let hunks = SubmissionFile::hunks(&files);
    let of_file = |draft: DraftId| {
        let chosen = hunks.iter().filter(|one| one.draft == draft && numbers.contains(&one.number));
        FileAmendment::Hunks(chosen.map(|one| one.hunk.id).collect::<BTreeSet<_>>())
    };
    files.iter().map(|file| (file.draft.id, of_file(file.draft.id))).collect()
}

fn content(id: DraftId, text: &str) -> BTreeMap<DraftId, FileAmendment> {
    BTreeMap::from([(id, FileAmendment::content(text))])
}

fn approve(
    store: &DraftStore,
    id: DraftId,
    seal: Sha256Hex,
    amendments: &BTreeMap<DraftId, FileAmendment>,
) -> AmendResult {
    store.amend(&person(), id, seal, amendments, None, "why").unwrap()
}

#[track_caller]
fn states(result: AmendResult) -> Vec<DraftState> {
    match result {
        AmendResult::Decided(drafts) => drafts.iter().map(|draft| draft.state).collect(),
        other => panic!("{other:?}"),
    }
}

fn last_record(world: &World, kind: &str) -> Value {
    let journal = world.journal();
    let mut records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.rfind(|record| record["kind"] == kind).unwrap()
}

#[test]
fn only_approved_hunks_reach_the_file_and_the_audit_log_names_them() {
    let (world, store, id, seal) = waiting();
    let chosen = selection(&store, id, &[1, 3]);
    assert_eq!(states(approve(&store, id, seal, &chosen)), [DraftState::Applied]);
    let expected = numbered(40, &[2, 38]);
    assert_eq!(world.text("Makefile").unwrap(), expected);
    let record = last_record(&world, "amended");
    assert_eq!(record["actor"]["id"], "ada");
    assert_eq!(record["hunks"], serde_json::json!({ "approved": [1, 3], "of": 3 }));
    let applied = Sha256Hex::of(expected.as_bytes()).to_string();
    assert_eq!(record["files"][0]["change"]["file"]["sha256"], applied);
    assert_eq!(
        (&record["seal"], &record["files"][0]["edited"]),
        (&seal.to_string().into(), &Value::Null)
    );
    let draft = store.status(&worker(), id).unwrap();
    assert_eq!(record["result"], draft.submission.unwrap().seal.to_string());
    verify(&world.state(), None, |_| {}).unwrap();
    // The result is what is undone.
    store.undo(&person(), id).unwrap();
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
}

#[test]
fn approving_all_hunks_is_an_ordinary_approval() {
    let (world, store, id, seal) = waiting();
    let chosen = selection(&store, id, &[1, 2, 3]);
    assert_eq!(states(approve(&store, id, seal, &chosen)), [DraftState::Applied]);
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[2, 20, 38]));
    assert_eq!(last_record(&world, "reviewed")["say"], "approve");
    assert!(!world.journal().contains("\"amended\""));
}

#[test]
fn approving_no_hunk_is_refused_and_changes_nothing() {
    let (world, store, id, seal) = waiting();
    let none = selection(&store, id, &[]);
    let refused = store.amend(&person(), id, seal, &none, None, "");
    assert!(matches!(refused, Err(DraftError::Refused(DraftRefusal::EmptyResult))), "{refused:?}");
    assert_eq!(store.status(&worker(), id).unwrap().state, DraftState::Escalated);
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
}

#[test]
fn hunks_of_a_version_that_was_replaced_are_refused() {
    let (world, store, id, seal) = waiting();
    let chosen = selection(&store, id, &[1]);
    write(&store, id, &numbered(40, &[2, 30]));
    submit(&store, &[id]);
    let stale = store.amend(&person(), id, seal, &chosen, None, "");
    assert!(matches!(stale, Err(DraftError::Refused(DraftRefusal::Seal { .. }))), "{stale:?}");
    // Even with the current seal, the hunks are those of another version.
    let now = store.status(&person(), id).unwrap().submission.unwrap().seal;
    let unknown = store.amend(&person(), id, now, &chosen, None, "");
    assert!(
        matches!(&unknown, Err(DraftError::Input(why)) if why.contains("unknown hunk")),
        "{unknown:?}"
    );
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
}

/// The proposal moves lines, which the gate does not count as deleted. Its first hunk alone deletes
/// them.
#[test]
fn the_combination_of_hunks_is_judged_as_a_whole() {
    let base = numbered(60, &[]);
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let reversed: String = lines[4..44].iter().rev().copied().collect();
    let moved = lines[..4].concat() + &lines[44..].concat() + &reversed;
    let world = World::new(&[("Makefile", &base)]);
    let store = world.open();
    let (id, submitted) = drafted(&store, "Makefile", &moved);
    let submission = submitted.drafts[0].submission.as_ref().unwrap();
    let is_ratio = |rule: GateRule| rule == GateRule::DiffDeletionRatio;
    assert!(submission.findings.iter().all(|one| !is_ratio(one.rule)), "{submission:?}");
    let files = store.shown(&person(), id).unwrap();
    let hunks = SubmissionFile::hunks(&files);
    assert_eq!(hunks.len(), 2, "{hunks:?}");
    let chosen = selection(&store, id, &[1]);
    let AmendResult::Unconfirmed(report) = approve(&store, id, submission.seal, &chosen) else {
        panic!("new findings were not reported")
    };
    assert!(report.unconfirmed.iter().any(|one| is_ratio(one.rule)), "{report:?}");
    assert_eq!(world.text("Makefile").unwrap(), base);
    assert_eq!(store.status(&worker(), id).unwrap().state, DraftState::Escalated);
    // Another hash confirms nothing, not even the seal of the result.
    let wrong = Some(report.seal);
    let again = store.amend(&person(), id, submission.seal, &chosen, wrong, "").unwrap();
    assert!(matches!(again, AmendResult::Unconfirmed(_)), "{again:?}");
    let confirmed = Some(report.confirm);
    let done = store.amend(&person(), id, submission.seal, &chosen, confirmed, "").unwrap();
    assert_eq!(states(done), [DraftState::Applied]);
    assert_eq!(last_record(&world, "amended")["result"], report.seal.to_string());
}

#[test]
fn edited_content_is_applied_and_recorded_as_edited_by_a_person() {
    let (world, store, id, seal) = waiting();
    let text = numbered(40, &[5]);
    assert_eq!(states(approve(&store, id, seal, &content(id, &text))), [DraftState::Applied]);
    assert_eq!(world.text("Makefile").unwrap(), text);
    let record = last_record(&world, "amended");
    assert_eq!((&record["files"][0]["edited"], &record["hunks"]), (&true.into(), &Value::Null));
    let proposed = Sha256Hex::of(numbered(40, &[2, 20, 38]).as_bytes()).to_string();
    assert_eq!(record["files"][0]["proposed"]["file"]["sha256"], proposed);
}

#[test]
fn edited_content_that_the_gate_rejects_is_neither_applied_nor_stored() {
    let (world, store, id, seal) = waiting();
    let secret = format!("{}KEY = {}\n", numbered(40, &[]), token());
    for text in [secret.as_str(), "all: \u{202e}evil\n", "<<<<<<< a\n=======\n>>>>>>> b\n"] {
        let AmendResult::Rejected(report) = approve(&store, id, seal, &content(id, text)) else {
            panic!("{text:?} was not rejected")
        };
        assert_eq!(report.judged.verdict.action, GateAction::Reject);
    }
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
    assert_eq!(store.status(&worker(), id).unwrap().state, DraftState::Escalated);
    assert!(!world.journal().contains("amended") && !world.journal().contains(&token()));
    let digits = Sha256Hex::of(secret.as_bytes()).to_string();
    assert!(!world.state().join("blobs").join(&digits[..2]).join(&digits).exists());
}

/// The reviewer saw a hidden character in one line. An edit that has one elsewhere is not the same.
#[test]
fn finding_at_another_line_of_an_edited_text_is_confirmed_again() {
    let world = World::new(&[("Makefile", &numbered(40, &[]))]);
    let store = world.open();
    let hide = |line: &str| numbered(40, &[]).replace(line, &format!("{line}\u{200b}x"));
    let (id, submitted) = drafted(&store, "Makefile", &hide("line 7\n"));
    let submission = submitted.drafts[0].submission.as_ref().unwrap();
    let is_invisible = |rule: GateRule| rule == GateRule::ContentInvisible;
    assert!(submission.findings.iter().any(|one| is_invisible(one.rule)), "{submission:?}");
    let edited = content(id, &hide("line 30\n"));
    let AmendResult::Unconfirmed(report) = approve(&store, id, submission.seal, &edited) else {
        panic!("the finding was not reported again")
    };
    assert!(report.unconfirmed.iter().any(|one| is_invisible(one.rule)), "{report:?}");
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
}

#[test]
fn file_that_changed_in_the_meantime_is_a_conflict_for_hunks_too() {
    let (world, store, id, seal) = waiting();
    let chosen = selection(&store, id, &[1]);
    world.save("Makefile", "mine\n");
    assert_eq!(states(approve(&store, id, seal, &chosen)), [DraftState::Conflict]);
    assert_eq!(world.text("Makefile").unwrap(), "mine\n");
}

#[test]
fn files_of_a_submission_without_approved_hunks_are_rejected() {
    let world = World::new(&[("Makefile", "all:\n"), ("src/a.py", "a = 1\n"), ("b.py", "b = 1\n")]);
    let store = world.open();
    let (make, code, other) =
        (request(&store, "Makefile"), request(&store, "src/a.py"), request(&store, "b.py"));
    write(&store, make, "all: build\n");
    write(&store, code, "a = 2\n");
    write(&store, other, "b = 2\n");
    let submitted = submit(&store, &[make, code, other]);
    let seal = submitted.drafts[0].submission.as_ref().unwrap().seal;
    // A file that was not approved can change without a conflict.
    world.save("Makefile", "mine:\n");
    let result = approve(&store, make, seal, &selection(&store, make, &[2]));
    assert_eq!(states(result), [DraftState::Rejected, DraftState::Applied, DraftState::Rejected]);
    assert_eq!(world.text("Makefile").unwrap(), "mine:\n");
    assert_eq!(world.text("src/a.py").unwrap(), "a = 2\n");
    // Only what was applied is undone.
    store.undo(&person(), code).unwrap();
    assert_eq!(world.text("src/a.py").unwrap(), "a = 1\n");
    assert_eq!(store.status(&worker(), make).unwrap().state, DraftState::Rejected);
}

#[test]
fn mode_of_a_file_is_approved_on_its_own() {
    let world = World::new(&[("run.sh", "echo 1\n")]);
    let store = world.open();
    let id = request(&store, "run.sh");
    write(&store, id, "echo 2\n");
    store.write(&worker(), id, DraftEdit::Executable(true), None).unwrap();
    let seal = submit(&store, &[id]).drafts[0].submission.as_ref().unwrap().seal;
    let lines = selection(&store, id, &[2]);
    assert_eq!(states(approve(&store, id, seal, &lines)), [DraftState::Applied]);
    let path = world.workspace().join("run.sh");
    assert_eq!(fs_err::metadata(path).unwrap().permissions().mode() & 0o111, 0);
    assert_eq!(world.text("run.sh").unwrap(), "echo 2\n");
}

#[test]
fn edited_content_keeps_the_mode_and_the_path_unless_they_were_approved() {
    let check = |approves_all: bool| {
        let world = World::new(&[("run.sh", "echo 1\n")]);
        let store = world.open();
        let id = request(&store, "run.sh");
        write(&store, id, "echo 2\n");
        store.write(&worker(), id, DraftEdit::Executable(true), None).unwrap();
        store.write(&worker(), id, DraftEdit::Rename("go.sh".to_owned()), None).unwrap();
        let seal = submit(&store, &[id]).drafts[0].submission.as_ref().unwrap().seal;
        let approved = (!approves_all).then(BTreeSet::new);
        let edit = FileAmendment::Content { text: "echo 3\n".to_owned(), approved };
        let result = approve(&store, id, seal, &BTreeMap::from([(id, edit)]));
        assert_eq!(states(result), [DraftState::Applied]);
        let mode = |name: &str| {
            let path = world.workspace().join(name);
            fs_err::metadata(path).unwrap().permissions().mode() & 0o111 != 0
        };
        match approves_all {
            true => (world.text("go.sh").unwrap(), mode("go.sh")),
            false => (world.text("run.sh").unwrap(), mode("run.sh")),
        }
    };
    assert_eq!(check(true), ("echo 3\n".to_owned(), true));
    assert_eq!(check(false), ("echo 3\n".to_owned(), false));
}

#[test]
fn workers_authors_and_people_who_may_not_approve_cannot_amend() {
    let (world, store, id, seal) = waiting();
    let chosen = selection(&store, id, &[1]);
    let by_worker = store.amend(&worker(), id, seal, &chosen, None, "");
    assert!(matches!(by_worker, Err(DraftError::Refused(DraftRefusal::NotHuman))));
    let comments = vec![comment(1, "no")];
    let by_worker = store.comment(&worker(), id, seal, comments);
    assert!(matches!(by_worker, Err(DraftError::Refused(DraftRefusal::NotHuman))));
    drop(store);
    world.save(".moothall/policy.toml", "version = 1\n[review]\napprovers = [\"uid:1\"]\n");
    let store = world.open();
    let shown = store.shown(&person(), id).unwrap();
    let seal = shown[0].draft.submission.as_ref().unwrap().seal;
    let refused = store.amend(&person(), id, seal, &chosen, None, "");
    assert!(matches!(refused, Err(DraftError::Refused(DraftRefusal::NotApprover { .. }))));
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
}

/// A process that dies after the decision leaves it to the next one, which applies the approved
/// hunks and not the proposal.
#[test]
fn interrupted_partial_approval_is_finished_with_the_approved_hunks() {
    let (world, store, id, seal) = waiting();
    let chosen = selection(&store, id, &[3]);
    drop(store);
    let mut options = world.options();
    options.reached = Box::new(|point| match point {
        FailPoint::BeforeIntent => Err(std::io::Error::other("killed")),
        _ => Ok(()),
    });
    let dying = DraftStore::open(options).unwrap();
    dying.amend(&person(), id, seal, &chosen, None, "").unwrap_err();
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[]));
    drop(dying);
    let store = world.open();
    assert_eq!(store.status(&worker(), id).unwrap().state, DraftState::Applied);
    assert_eq!(world.text("Makefile").unwrap(), numbered(40, &[38]));
}

fn comment(line: usize, text: &str) -> LineComment {
    let path = RelPath::parse("Makefile").unwrap();
    LineComment { path, side: CommentSide::New, line, text: text.to_owned() }
}

#[test]
fn comments_on_lines_reach_the_worker_and_stay_until_it_submits_again() {
    let (world, store, id, seal) = waiting();
    store
        .comment(&person(), id, seal, vec![comment(3, "why \u{202e}here\u{200b}?\u{1b}[2J")])
        .unwrap();
    store.review(&person(), id, seal, ReviewDecision::SendBack, "see comments").unwrap();
    let told =
        |store: &DraftStore| store.status(&worker(), id).unwrap().submission.unwrap().comments;
    let comments = told(&store);
    assert_eq!(comments.len(), 1);
    assert_eq!(comments[0].by.id, "ada");
    // Hidden characters are cleaned.
    assert_eq!(comments[0].comment.text, "why \u{fffd}here?\u{fffd}[2J");
    assert_eq!((comments[0].comment.line, comments[0].comment.side), (3, CommentSide::New));
    // Another process reads the same from the journal.
    assert_eq!(told(&world.open()), comments);
    write(&store, id, &numbered(40, &[2]));
    assert_eq!(told(&store).len(), 1);
    submit(&store, &[id]);
    assert_eq!(told(&store), []);
}

#[test]
fn invalid_comments_are_refused() {
    let (_world, store, id, seal) = waiting();
    let said = |comments: Vec<LineComment>| store.comment(&person(), id, seal, comments);
    let refused = |comments: Vec<LineComment>, why: &str| {
        let error = said(comments).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(vec![], "no comment");
    refused(vec![comment(1, " \u{200b}\n")], "the comment is empty");
    refused(vec![comment(1, &"x".repeat(2_001))], "too long");
    refused(vec![comment(0, "x")], "has no line 0");
    refused(vec![comment(41, "x")], "has no line 41");
    let elsewhere = LineComment { path: RelPath::parse("b").unwrap(), ..comment(1, "x") };
    refused(vec![elsewhere], "the submission does not contain b");
    let error = store.comment(&person(), id, Sha256Hex::of(b"old"), vec![comment(1, "x")]);
    assert!(matches!(error, Err(DraftError::Refused(DraftRefusal::Seal { .. }))));
    said((0..MAX_COMMENTS).map(|_| comment(40, "x")).collect()).unwrap();
    refused(vec![comment(1, "x")], "too many comments");
    let secret = store.status(&worker(), id).unwrap().submission.unwrap();
    assert_eq!(secret.comments.len(), MAX_COMMENTS);
}

#[test]
fn comment_that_may_contain_a_credential_is_withheld() {
    let (world, store, id, seal) = waiting();
    store.comment(&person(), id, seal, vec![comment(1, &format!("use {}", token()))]).unwrap();
    assert!(!world.journal().contains(&token()));
    let comments = store.status(&worker(), id).unwrap().submission.unwrap().comments;
    assert_eq!(comments[0].comment.text, "(withheld: may contain a credential)");
}
