use super::*;
use crate::drafts::{
    AuditRecord, DraftEvent, DraftNotificationKind, FileState, Principal, ProposedChange, RelPath,
};

fn file(text: &str) -> FileState {
    FileState { sha256: Sha256Hex::of(text.as_bytes()), executable: false }
}

fn id(number: u8) -> DraftId {
    DraftId::new([number; 16])
}

fn task(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

fn drafts(events: Vec<DraftEvent>) -> DraftSet {
    let mut drafts = DraftSet::default();
    for (at, event) in events.into_iter().enumerate() {
        let actor = Principal::worker("ada/w".to_owned());
        drafts.evolve(&AuditRecord { ts: at as u64, actor, client: None, event });
    }
    drafts
}

fn requested(number: u8, path: &str, of: &str) -> DraftEvent {
    let path = RelPath::parse(path).unwrap();
    DraftEvent::Requested { draft: id(number), task: task(of), path, base: Some(file("old")) }
}

#[test]
fn an_open_draft_is_named_after_its_file_and_task() {
    let drafts = drafts(vec![requested(1, "src/watchdog.py", "phase10")]);
    let name = "watchdog.py.phase10.draft".to_owned();
    assert_eq!(handoff_files(&drafts), [(name, HandoffFile::Draft(file("old").sha256))].into());
}

#[test]
fn drafts_with_clashing_or_long_names_are_named_by_their_ids() {
    let long = format!("{}.py", "x".repeat(200));
    let drafts = drafts(vec![
        requested(1, "a/x.py", "t"),
        requested(2, "b/x.py", "t"),
        requested(3, &long, "t"),
        requested(4, "y.py", "t"),
    ]);
    let names: Vec<String> = handoff_files(&drafts).into_keys().collect();
    let handles = [1, 2, 3].map(|number| format!("{}.draft", id(number)));
    assert_eq!(names, [handles.as_slice(), &["y.py.t.draft".to_owned()]].concat());
}

#[test]
fn a_closed_or_deleting_draft_has_no_handoff_file() {
    let gone = ProposedChange { file: None, rename_to: None };
    let drafts = drafts(vec![
        requested(1, "a.py", "t"),
        DraftEvent::Withdrawn { draft: id(1) },
        requested(2, "b.py", "t"),
        DraftEvent::Written { draft: id(2), change: gone, bytes: 0 },
    ]);
    assert_eq!(handoff_files(&drafts), BTreeMap::new());
}

#[test]
fn a_handoff_submission_lists_its_drafts_and_their_state() {
    let change = ProposedChange { file: Some(file("new")), rename_to: None };
    let seal = Sha256Hex::of(b"seal");
    let drafts = drafts(vec![
        requested(1, "src/a.py", "t"),
        DraftEvent::Written { draft: id(1), change, bytes: 3 },
        DraftEvent::Submitted { drafts: vec![id(1)], seal, summary: "mends a".to_owned() },
    ]);
    let files = handoff_files(&drafts);
    let Some(HandoffFile::Submissions(text)) = files.get("t.submission.json") else {
        panic!("{files:?}");
    };
    let read: serde_json::Value = serde_json::from_str(text).unwrap();
    let expected = json!({
        "task_id": "t",
        "submissions": [{
            "drafts": [{
                "draft_id": id(1), "draft_path": id(1), "file": "a.py.t.draft",
                "original_path": "src/a.py", "rename_to": null,
                "original_hash": file("old").sha256, "new_hash": file("new").sha256,
                "state": "submitted",
            }],
            "change_summary": "mends a", "submitted_at_ms": 2, "seal": seal,
            "verdict": null, "findings": [], "reviewed": null,
        }],
    });
    assert_eq!(read, expected);
}

#[test]
fn the_handoff_shows_only_the_most_recent_tasks() {
    let mut events = Vec::new();
    for number in 0..=MAX_TASKS as u8 {
        let drafts = vec![id(number)];
        events.push(requested(number, "a.py", &format!("t{number}")));
        let (seal, summary) = (Sha256Hex::of(&[number]), String::new());
        events.push(DraftEvent::Submitted { drafts, seal, summary });
        events.push(DraftEvent::Withdrawn { draft: id(number) });
    }
    let files = handoff_files(&drafts(events));
    assert_eq!((files.len(), files.contains_key("t0.submission.json")), (MAX_TASKS, false));
}

#[test]
fn a_transition_is_one_line() {
    let news = DraftNotification {
        kind: DraftNotificationKind::DraftEscalated,
        draft: id(1),
        task: task("t"),
        path: RelPath::parse("Makefile").unwrap(),
        reasons: vec!["path.protected: a\nb".to_owned()],
        base: None,
        after: None,
    };
    let line = transition(7, 8, &news);
    let expected = json!({
        "seq": 7, "at_ms": 8, "event": "draft_escalated", "draft_id": id(1), "task_id": "t",
        "path": "Makefile", "reasons": ["path.protected: a\nb"],
    });
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), expected);
}
