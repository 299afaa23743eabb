//! Messages about submissions for the program that opened a store.

use std::sync::{Arc, Mutex};

use moothall_core::drafts::{DraftId, ReviewDecision};
use moothall_workspace::{
    DraftStore, DraftStoreOptions, FileRequirement, SubmissionNotice, SubmissionNoticeKind,
};

use crate::world::{World, person, token, worker, write};

type Notices = Arc<Mutex<Vec<SubmissionNotice>>>;

fn listening(world: &World) -> (DraftStore, Notices) {
    let notices = Notices::default();
    let heard = Arc::clone(&notices);
    let listener = move |notice: &SubmissionNotice| heard.lock().unwrap().push(notice.clone());
    let options = DraftStoreOptions { listener: Some(Box::new(listener)), ..world.options() };
    (DraftStore::open(options).unwrap(), notices)
}

fn submit(store: &DraftStore, path: &str, text: &str, summary: &str) -> DraftId {
    let (draft, _) = store.request(&worker(), "t1", path, FileRequirement::Must).unwrap();
    write(store, draft.id, text);
    store.submit(&worker(), &[draft.id], summary).unwrap();
    draft.id
}

#[test]
fn a_submission_that_needs_review_and_its_review_are_reported_once() {
    let world = World::new(&[("Makefile", "all:\n"), ("a.txt", "a\n")]);
    let (store, notices) = listening(&world);
    // Another process only reads what this one records.
    let (other, of_other) = listening(&world);
    submit(&store, "a.txt", "b\n", "allowed");
    assert_eq!(*notices.lock().unwrap(), []);
    let id = submit(&store, "Makefile", "all: swordfish\n", "builds by default");
    other.list(&person()).unwrap();
    store.shown(&person(), id).unwrap();
    let heard = notices.lock().unwrap().drain(..).collect::<Vec<_>>();
    assert_eq!(heard.len(), 1, "{heard:?}");
    let seal = store.status(&worker(), id).unwrap().submission.unwrap().seal;
    assert_eq!(
        heard[0],
        SubmissionNotice {
            kind: SubmissionNoticeKind::NeedsReview,
            draft: id,
            seal,
            title: "builds by default".to_owned(),
            path: "Makefile".to_owned(),
            more_files: 0,
            rules: vec!["path.protected".to_owned()],
            at_ms: heard[0].at_ms,
        }
    );
    assert!(!format!("{heard:?}").contains("swordfish"));
    store.review(&person(), id, seal, ReviewDecision::Reject, "no").unwrap();
    let heard = notices.lock().unwrap().drain(..).collect::<Vec<_>>();
    let by = person().principal.id;
    let decided = SubmissionNoticeKind::Decided { decision: ReviewDecision::Reject, by };
    assert_eq!(heard.iter().map(|one| &one.kind).collect::<Vec<_>>(), [&decided]);
    assert_eq!(*of_other.lock().unwrap(), []);
}

#[test]
fn a_summary_with_a_credential_is_not_reported() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let (store, notices) = listening(&world);
    let secret = token();
    submit(&store, "Makefile", "all: b\n", &format!("uses {secret}"));
    let heard = notices.lock().unwrap();
    assert_eq!(heard.len(), 1);
    assert!(!format!("{heard:?}").contains(&secret), "{heard:?}");
}

/// A policy that changed makes a reviewer's look judge the draft again.
#[test]
fn a_draft_that_is_judged_again_while_it_waits_is_not_reported_again() {
    let world = World::new(&[("Makefile", "all:\n")]);
    let (store, notices) = listening(&world);
    let id = submit(&store, "Makefile", "all: b\n", "b");
    drop(store);
    world.save(".moothall/policy.toml", "version = 1\n[limits]\nmax_file_bytes = 5000\n");
    let (store, again) = listening(&world);
    store.shown(&person(), id).unwrap();
    assert_eq!((notices.lock().unwrap().len(), again.lock().unwrap().len()), (1, 0));
}
